package memory

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// script is a source of STag indices for tests: each index as three octets,
// then io.EOF.
func script(indices ...uint32) io.Reader {
	var b []byte
	for _, i := range indices {
		b = append(b, byte(i>>16), byte(i>>8), byte(i))
	}
	return bytes.NewReader(b)
}

// Claims: V-7.2-1 V-7.2-2 V-7.2-3
func TestSTagIsIndexThenKey(t *testing.T) {
	table := NewTable(Config{Rand: script(0xabcdef)})
	r, err := table.Register(table.AllocPD(), make([]byte, 8), RegionConfig{Access: LocalRead, Key: 0x42})
	if err != nil {
		t.Fatal(err)
	}
	s := r.STag()
	if s != 0xabcdef42 || s.Index() != 0xabcdef || s.Key() != 0x42 || s.String() != "0xabcdef42" {
		t.Errorf("STag %v, index %#x, key %#x", s, s.Index(), s.Key())
	}
}

// Claims: V-7.2.1-2 V-7.2.1-7
func TestIndexZeroIsNeverGiven(t *testing.T) {
	table := NewTable(Config{Rand: script(0, 0, 7)})
	r := register(t, table, table.AllocPD(), make([]byte, 8), RegionConfig{Access: LocalRead})
	if r.STag().Index() != 7 {
		t.Errorf("index %#x, want the first that is not zero, 7", r.STag().Index())
	}
}

// Claims: V-7.2.1-5 V-7.2.1-6 V-7.2.1-7
func TestIndexZeroIsNeverFound(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	// A region gone leaves a tombstone, which must not be found either.
	if err := table.Deallocate(register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead})); err != nil {
		t.Fatal(err)
	}
	var h Holder
	h.Init(table, pd, 0)
	for _, stag := range []uint32{0, 1, 0xff} {
		if _, fault := h.Resolve(nil, stag, 0, 1, LocalRead); fault != ddp.FaultSTag {
			t.Errorf("STag %#x: %v", stag, fault)
		}
		if fault := table.Invalidate(stag, pd, 0, false); fault != ddp.FaultSTag {
			t.Errorf("invalidate STag %#x: %v", stag, fault)
		}
	}
}

func TestIndexInUseIsNotGivenAgain(t *testing.T) {
	table := NewTable(Config{Rand: script(5, 5, 5, 6)})
	pd := table.AllocPD()
	a := register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead})
	b := register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead, Key: 1})
	if a.STag().Index() != 5 || b.STag().Index() != 6 {
		t.Errorf("indices %d and %d, want 5 and 6", a.STag().Index(), b.STag().Index())
	}
}

// Claims: S-6.1.1-6
func TestFreedIndexRestsForManyRegistrations(t *testing.T) {
	var indices []uint32
	indices = append(indices, 1)
	for i := range uint32(rests) {
		indices = append(indices, 1, i+2) // 1 is drawn, and refused, each time
	}
	indices = append(indices, 1)
	table := NewTable(Config{Rand: script(indices...)})
	pd := table.AllocPD()
	buf := make([]byte, 8)
	for i := range uint32(rests + 1) {
		r := register(t, table, pd, buf, RegionConfig{Access: LocalRead})
		if r.STag().Index() != i+1 {
			t.Fatalf("registration %d got index %d, want %d", i, r.STag().Index(), i+1)
		}
		if err := table.Deallocate(r); err != nil {
			t.Fatal(err)
		}
	}
	if r := register(t, table, pd, buf, RegionConfig{Access: LocalRead}); r.STag().Index() != 1 {
		t.Errorf("after %d others index 1 is still resting: got %d", rests, r.STag().Index())
	}
}

// Some indices are taken for one that rests. None of those is so for ever.
func TestIndicesTakenForOneThatRestsAreFreedWithIt(t *testing.T) {
	var r resting
	const index = 0x123456
	for range 300 { // more than a count counts
		r.add(index)
	}
	for i := range uint32(rests) {
		if !r.has(index) {
			t.Fatalf("it rests no more after %d others", i)
		}
		r.add(i + 1)
	}
	if !r.has(index) {
		t.Error("a count at its limit went down: nobody knows how many it stands for")
	}
	r = resting{}
	for i := range uint32(2 * rests) {
		r.add(1<<restBits + i)
		r.add(2<<restBits + i)
		if !r.has(i) {
			t.Errorf("%#x is not taken for one that rests", i)
		}
	}
	for i := range uint32(3*rests - rests/2) { // what was added last
		if rested := i >= 2*rests-rests/2 && i < 2*rests; r.has(i) != rested {
			t.Fatalf("%#x rests: %v, expected %v", i, r.has(i), rested)
		}
	}
}

// Claims: R-8.1.1-8 R-8.1.1-9 S-5.1.1-1 S-6.1.1-5
func TestSTagsAreUnpredictableAndSparse(t *testing.T) {
	const n = 2000
	table := NewTable(Config{})
	pd := table.AllocPD()
	buf := make([]byte, 1)
	var ones [indexBits]int // how often each bit of the index is set
	steps := map[uint32]int{}
	var last uint32
	for range n {
		index := register(t, table, pd, buf, RegionConfig{Access: LocalRead}).STag().Index()
		for bit := range ones {
			ones[bit] += int(index >> bit & 1)
		}
		steps[index-last]++
		last = index
	}
	// 1000 expected, standard deviation 22: ten deviations never happen by chance.
	for bit, count := range ones {
		if count < n/2-220 || count > n/2+220 {
			t.Errorf("bit %d of the index is set in %d of %d", bit, count, n)
		}
	}
	for step, count := range steps {
		if count > 3 {
			t.Errorf("%d consecutive indices differ by %d", count, int32(step))
		}
	}
}

func TestRegisterFailsWithoutRandomness(t *testing.T) {
	table := NewTable(Config{Rand: script()})
	pd := table.AllocPD()
	if _, err := table.Register(pd, make([]byte, 8), RegionConfig{Access: LocalRead}); !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want the source's", err)
	}
	if u := table.Usage(); u != (Usage{}) {
		t.Errorf("%+v are left", u)
	}
}
