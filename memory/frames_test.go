package memory

import (
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// sender is a Holder with three regions, whose frames 10 to 15 use the first,
// 12 the second, and 14 and 15 the third, some of them looked up together.
type sender struct {
	Holder
	table   *Table
	pd      *PD
	regions [3]*Region
}

func newSender(t *testing.T) *sender {
	s := &sender{table: NewTable(Config{})}
	s.pd = s.table.AllocPD()
	s.Init(s.table, s.pd, 0)
	for i := range s.regions {
		s.regions[i] = register(t, s.table, s.pd, make([]byte, 8), RegionConfig{Access: LocalRead})
	}
	for _, run := range [][2]uint64{{10, 11}, {12, 12}, {13, 13}, {14, 15}} {
		s.SetFrames(run[0], run[1])
		s.resolve(t, 0)
		switch run[0] {
		case 12:
			s.resolve(t, 1)
		case 14:
			s.resolve(t, 2)
		}
	}
	return s
}

func (s *sender) resolve(t *testing.T, i int) {
	t.Helper()
	if _, fault := s.Resolve(nil, uint32(s.regions[i].STag()), 0, 8, LocalRead); fault != ddp.NoFault {
		t.Fatal(fault)
	}
}

// revoke invalidates region i, which the sender must not hold.
func (s *sender) revoke(t *testing.T, i int) {
	t.Helper()
	if fault := s.table.Invalidate(uint32(s.regions[i].STag()), s.pd, 0, false); fault != ddp.NoFault {
		t.Fatal(fault)
	}
}

// holders is how often each region is held.
func (s *sender) holders() (n [3]uint32) {
	for i, r := range s.regions {
		n[i] = r.current.Load().word.Load() &^ revokedBit
	}
	return n
}

func TestReleaseRemembersForAcquire(t *testing.T) {
	s := newSender(t)
	for range 2 {
		if n := s.holders(); n != [3]uint32{1, 1, 1} {
			t.Errorf("held %v", n)
		}
		s.Release()
		if n := s.holders(); n != [3]uint32{} || len(s.uses) == 0 {
			t.Errorf("held %v, used %v after Release", n, len(s.uses) > 0)
		}
		for range 2 { // what is held already is not held twice
			if !s.Acquire() {
				t.Fatal("nothing was revoked, and yet Acquire failed")
			}
		}
	}
	s.Release()
	s.resolve(t, 1) // takes the hold of one again
	if n := s.holders(); n != [3]uint32{0, 1, 0} {
		t.Errorf("held %v after Resolve", n)
	}
	s.Forget()
	if !s.Acquire() {
		t.Error("nothing remembered, and yet Acquire failed")
	}
	if n := s.holders(); n != [3]uint32{} || len(s.uses) > 0 {
		t.Errorf("held %v, used %v after Forget", n, len(s.uses) > 0)
	}
	if _, _, ok := s.Revoked(); ok {
		t.Error("something revoked, and nothing remembered")
	}
}

func TestAcquireOfRevokedMemoryHoldsNothingAndTellsTheFrame(t *testing.T) {
	for _, c := range []struct {
		name   string
		revoke []int
		frame  uint64
		stag   int
	}{
		{"first region", []int{0}, 10, 0},
		{"second region", []int{1}, 12, 1},
		{"third region", []int{2}, 14, 2},
		{"two regions", []int{2, 1}, 12, 1},
	} {
		s := newSender(t)
		s.Release()
		for _, i := range c.revoke {
			s.revoke(t, i)
		}
		if s.Acquire() {
			t.Fatalf("%s: Acquire succeeded", c.name)
		}
		if n := s.holders(); n != [3]uint32{} {
			t.Errorf("%s: held %v", c.name, n)
		}
		stag, frame, ok := s.Revoked()
		if !ok || frame != c.frame || stag != s.regions[c.stag].STag() {
			t.Errorf("%s: STag %v frame %d ok %v, want frame %d", c.name, stag, frame, ok, c.frame)
		}
		s.Truncate(frame)
		if !s.Acquire() {
			t.Errorf("%s: Acquire fails after the frames from %d on have gone", c.name, frame)
		}
		s.Forget()
	}
}

func TestDoneForgetsWhatNoFrameRefersTo(t *testing.T) {
	for _, c := range []struct {
		done uint64
		held [3]uint32
	}{
		{10, [3]uint32{1, 1, 1}},
		{12, [3]uint32{1, 1, 1}},
		{13, [3]uint32{1, 0, 1}},
		{15, [3]uint32{1, 0, 1}},
		{16, [3]uint32{0, 0, 0}},
	} {
		s := newSender(t)
		s.Done(c.done)
		if n := s.holders(); n != c.held {
			t.Errorf("frames below %d done: held %v, want %v", c.done, n, c.held)
		}
		s.Release()
		s.revoke(t, 1) // its only frame is 12
		if ok, want := s.Acquire(), c.done > 12; ok != want {
			t.Errorf("frames below %d done: Acquire %v, want %v", c.done, ok, want)
		}
		s.Release()
		s.revoke(t, 0)
		if _, frame, ok := s.Revoked(); ok && frame < c.done {
			t.Errorf("frames below %d done: frame %d is blamed", c.done, frame)
		}
		s.Forget()
	}
}

func TestTruncateForgetsWhatNoFrameRefersTo(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		held [3]uint32
	}{
		{16, [3]uint32{1, 1, 1}},
		{15, [3]uint32{1, 1, 1}},
		{14, [3]uint32{1, 1, 0}},
		{12, [3]uint32{1, 0, 0}},
		{10, [3]uint32{0, 0, 0}},
		{0, [3]uint32{0, 0, 0}},
	} {
		s := newSender(t)
		s.Truncate(c.n)
		if n := s.holders(); n != c.held {
			t.Errorf("frames from %d dropped: held %v, want %v", c.n, n, c.held)
		}
		s.Done(c.n) // the frames left are done as well
		if n := s.holders(); n != [3]uint32{} {
			t.Errorf("frames from %d dropped, the rest done: held %v", c.n, n)
		}
		s.Forget()
	}
}

func TestForgetKeepsNoMemoryAlive(t *testing.T) {
	for name, forget := range map[string]func(s *sender){
		"Forget": func(s *sender) { s.Forget() },
		"Done":   func(s *sender) { s.Done(100) },
	} {
		s := newSender(t)
		forget(s)
		for i, u := range append(s.inline[:], s.uses[:cap(s.uses)]...) {
			if u.reg != nil {
				t.Errorf("use %d is kept after %s", i, name)
			}
		}
	}
}

// Between two frames that refer to a region others may go that do not: when
// the first has been written, the region's revocation is the second's concern.
func TestRevokedNamesAFrameThatRefersToTheRegion(t *testing.T) {
	tab := NewTable(Config{})
	pd := tab.AllocPD()
	a, err := tab.Register(pd, make([]byte, 8), RegionConfig{Access: LocalRead})
	if err != nil {
		t.Fatal(err)
	}
	b, err := tab.Register(pd, make([]byte, 8), RegionConfig{Access: LocalRead})
	if err != nil {
		t.Fatal(err)
	}
	var h Holder
	h.Init(tab, pd, 0)
	for frame, r := range []*Region{a, b, b, b, a, b} {
		h.SetFrames(uint64(frame), uint64(frame))
		if _, f := h.Resolve(nil, uint32(r.STag()), 0, 8, LocalRead); f != ddp.NoFault {
			t.Fatal(f)
		}
	}
	h.Release()
	h.Done(2)
	if err := tab.Deallocate(a); err != nil {
		t.Fatal(err)
	}
	if _, frame, ok := h.Revoked(); !ok || frame != 4 {
		t.Errorf("frame %d, %v, want 4", frame, ok)
	}
	h.Truncate(4)
	if _, frame, ok := h.Revoked(); ok {
		t.Errorf("frame %d after it was dropped", frame)
	}
	if !h.Acquire() {
		t.Error("the frames that are left cannot be sent")
	}
	h.Forget()
}

// AnotherFrame finds what Resolve would find, for the frame behind the last one, and nothing where
// Resolve would have to look further.
//
// Claims: DDP-7.1-14
func TestAnotherFrameIsResolveForTheNextFrame(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	_, b := words(8)
	r := register(t, table, pd, b, RegionConfig{Access: LocalRead, VA: 100})
	other := register(t, table, pd, b, RegionConfig{Access: LocalRead | LocalWrite, VA: 100})
	stag := uint32(r.STag())
	var h Holder
	h.Init(table, pd, 0)
	h.SetFrames(7, 7)
	if h.AnotherFrame(stag, 100, 1, LocalRead) != nil {
		t.Error("something is found before the first Resolve")
	}
	if _, f := h.Resolve(nil, stag, 100, 8, LocalRead); f != ddp.NoFault {
		t.Fatal(f)
	}
	for name, p := range map[string][]byte{
		"another STag":      h.AnotherFrame(uint32(other.STag()), 100, 8, LocalRead),
		"another key":       h.AnotherFrame(stag+1, 100, 8, LocalRead),
		"before the region": h.AnotherFrame(stag, 99, 8, LocalRead),
		"behind it":         h.AnotherFrame(stag, 100+64-7, 8, LocalRead),
		"a wrap":            h.AnotherFrame(stag, 1<<64-1, 8, LocalRead),
		"no right":          h.AnotherFrame(stag, 100, 8, LocalWrite),
	} {
		if p != nil {
			t.Errorf("%s: %d octets are found", name, len(p))
		}
	}
	for i := range 5 {
		p := h.AnotherFrame(stag, 100+8*uint64(i), 8, LocalRead)
		if len(p) != 8 || cap(p) != 8 || &p[0] != &b[8*i] {
			t.Fatalf("octets from %d on are not found", 8*i)
		}
	}
	h.Release()
	if h.AnotherFrame(stag, 100, 8, LocalRead) != nil {
		t.Error("memory is found that is not held")
	}
	// Frames 7 to 12 refer to it.
	for n := uint64(7); n <= 13; n++ {
		if n > 7 {
			h.Done(n)
		}
		if left := len(h.uses) == 1; left != (n < 13) {
			t.Errorf("frames below %d have gone: it is remembered: %v", n, left)
		}
		if n < 13 && (h.uses[0].first() != n || h.uses[0].last() != 12) {
			t.Errorf("frames below %d have gone, and it is held for %d to %d", n, h.uses[0].first(), h.uses[0].last())
		}
	}
	h.SetFrames(13, 13)
	if _, f := h.Resolve(nil, stag, 100, 8, LocalRead); f != ddp.NoFault {
		t.Fatal(f)
	}
	r.current.Load().mark()
	if h.AnotherFrame(stag, 100, 8, LocalRead) != nil {
		t.Error("memory is found that was revoked")
	}
	h.Forget()
}

// Without frames, as in the receiving direction, accesses through several STags in turns leave
// nothing behind. With frames, those that have been written leave little.
func TestAHolderKeepsLittleOfAccessesInTurns(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	var stags []uint32
	for range Capacity - 1 {
		r := register(t, table, pd, make([]byte, 64), RegionConfig{Access: LocalRead})
		stags = append(stags, uint32(r.STag()))
	}
	var h Holder
	h.Init(table, pd, 0)
	kept := func() (runs int) {
		for _, u := range h.uses[:cap(h.uses)] {
			runs += cap(u.runs)
		}
		return runs
	}
	frame := uint64(0)
	access := func(frames bool) {
		for range 5000 {
			for _, stag := range stags {
				if frames {
					frame = h.last + 1
					h.SetFrames(frame, frame)
				}
				another := h.Another
				if frames {
					another = h.AnotherFrame
				}
				if _, f := h.Resolve(nil, stag, 0, 1, LocalRead); f != ddp.NoFault || another(stag, 0, 1, LocalRead) == nil {
					t.Fatalf("refused: %v", f)
				}
			}
		}
	}
	access(false)
	if n := kept(); n > Capacity {
		t.Errorf("%d runs are kept of accesses without frames, expected one of each STag", n)
	}
	h.Forget()
	h.SetFrames(0, 0)
	access(true)
	for i, u := range h.uses {
		if want := uint64(2*i + 1); u.stag != STag(stags[i]) || u.first() != want {
			t.Errorf("STag number %d: the first frame that refers to it is %d, expected %d", i, u.first(), want)
		}
	}
	for i, n := range []uint64{frame / 2, h.last + 1} { // some, and all have been written
		h.Done(n)
		if left := i == 0; (len(h.uses) > 0) != left {
			t.Errorf("frames below %d of %d have been written, and %d registrations are remembered", n, h.last, len(h.uses))
		}
	}
	if n := kept(); n > Capacity*fewRuns {
		t.Errorf("%d runs are kept of frames that have been written, expected at most %d of each STag", n, fewRuns)
	}
	access(true)
	h.Forget()
	if n := kept(); n > Capacity*fewRuns {
		t.Errorf("%d runs are kept of frames that are forgotten, expected at most %d of each STag", n, fewRuns)
	}
}
