// This file is the side under test.

package wiretest

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// ArenaLen is the length in octets of a Side's memory.
const ArenaLen = 256 << 10

// VA is the tagged offset of the first octet of a Side's memory. It is not 0, so that a
// tagged offset is not mistaken for an offset in a region.
const VA = 0x7000_0000_0000

// AllRights are all rights of a region.
const AllRights = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic

// A Side is an RNIC with a queue pair. All of its memory is in one arena, so that a write
// outside of what was exposed is noticed. At its end the test fails if the arena or the
// events are not as expected, or if completions or goroutines are left.
type Side struct {
	t       testing.TB
	RNIC    *verbs.RNIC
	PD      *verbs.PD
	Foreign *verbs.PD // a domain that the queue pair does not belong to
	SendCQ  *verbs.CQ
	RecvCQ  *verbs.CQ
	QP      *verbs.QP

	Arena []byte
	want  []byte // expected content of the arena

	mu       sync.Mutex
	events   []verbs.EventID
	expected []verbs.EventID
	anything bool // any events are right
}

// NewSide opens an RNIC with a queue pair that is not connected. An IRD or ORD of 0 in cfg
// is 4. closeTimeout, if not 0, is the RNIC's CloseTimeout.
func NewSide(t testing.TB, cfg verbs.QPConfig, closeTimeout time.Duration) *Side {
	t.Helper()
	s := &Side{t: t, Arena: make([]byte, ArenaLen)}
	for i := range s.Arena {
		s.Arena[i] = byte(i>>8) ^ byte(i) ^ 0x5A
	}
	s.want = slices.Clone(s.Arena)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.checkEnd) // runs last
	nettest.CheckLeaks(t)
	var err error
	s.RNIC, err = verbs.Open(verbs.Config{CloseTimeout: closeTimeout})
	must(err)
	t.Cleanup(func() {
		if err := s.RNIC.Close(); err != nil {
			t.Error(err)
		}
	})
	must(s.RNIC.SetAsyncHandler(func(e verbs.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e.ID)
	}))
	s.PD, err = s.RNIC.AllocPD()
	must(err)
	s.Foreign, err = s.RNIC.AllocPD()
	must(err)
	s.SendCQ, err = s.RNIC.CreateCQ(verbs.CQConfig{Entries: 1024})
	must(err)
	s.RecvCQ, err = s.RNIC.CreateCQ(verbs.CQConfig{Entries: 1024})
	must(err)
	s.QP = s.NewQP(cfg)
	return s
}

// NewQP creates another queue pair with the same completion queues.
func (s *Side) NewQP(cfg verbs.QPConfig) *verbs.QP {
	s.t.Helper()
	cfg.SendCQ, cfg.RecvCQ, cfg.Extensions = s.SendCQ, s.RecvCQ, true
	if cfg.IRD == 0 {
		cfg.IRD = 4
	}
	if cfg.ORD == 0 {
		cfg.ORD = 4
	}
	qp, err := s.PD.CreateQP(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return qp
}

// Register registers octets [off, off+n) of the arena at tagged offset VA+off.
func (s *Side) Register(off, n int, access memory.Access) *verbs.MR {
	s.t.Helper()
	return s.RegisterAs(s.PD, VA+uint64(off), off, n, access)
}

// RegisterAs is Register with any domain and tagged offset.
func (s *Side) RegisterAs(pd *verbs.PD, to uint64, off, n int, access memory.Access) *verbs.MR {
	s.t.Helper()
	mr, err := pd.RegisterMR(verbs.MRConfig{Buf: s.Arena[off : off+n : off+n], Access: access, VA: to, Key: 0x5C})
	if err != nil {
		s.t.Fatal(err)
	}
	return mr
}

// Bind is Register for one queue pair only.
func (s *Side) Bind(qp *verbs.QP, off, n int, access memory.Access) *verbs.MR {
	s.t.Helper()
	mr, err := s.PD.RegisterMR(verbs.MRConfig{Buf: s.Arena[off : off+n : off+n], Access: access, VA: VA + uint64(off), Key: 0x5C, QP: qp})
	if err != nil {
		s.t.Fatal(err)
	}
	return mr
}

// Expect expects these octets in the arena from off on.
func (s *Side) Expect(off int, octets ...byte) { copy(s.want[off:], octets) }

// Expected returns the expected octets [off, off+n) of the arena.
func (s *Side) Expected(off, n int) []byte { return slices.Clone(s.want[off : off+n]) }

// ExpectEvent expects asynchronous events, in order.
func (s *Side) ExpectEvent(ids ...verbs.EventID) { s.expected = append(s.expected, ids...) }

// IgnoreEvents allows any events.
func (s *Side) IgnoreEvents() { s.anything = true }

// Events waits until n events have come and returns them.
func (s *Side) Events(n int) []verbs.EventID {
	s.t.Helper()
	for end := time.Now().Add(iwarptest.DefaultTimeout); ; runtime.Gosched() {
		s.mu.Lock()
		events := slices.Clone(s.events)
		s.mu.Unlock()
		if len(events) >= n {
			return events[:n]
		}
		if time.Now().After(end) {
			s.t.Fatalf("events %v, expected %d", events, n)
		}
	}
}

// CheckMemory compares the arena with its expected content. Nobody may use it meanwhile.
func (s *Side) CheckMemory() {
	s.t.Helper()
	if bytes.Equal(s.Arena, s.want) {
		return
	}
	for i := range s.Arena {
		if s.Arena[i] != s.want[i] {
			end := min(i+32, len(s.Arena))
			s.t.Errorf("memory from octet %#x is % x, expected % x", i, s.Arena[i:end], s.want[i:end])
			return
		}
	}
}

// Receives posts n receives of one element each, of length octets from off on
// and in that order, with IDs from 100 on.
func (s *Side) Receives(mr *verbs.MR, off, length, n int) {
	s.t.Helper()
	for i := range n {
		wr := verbs.RecvWR{ID: uint64(100 + i), SGL: []verbs.SGE{mr.SGE(off+i*length, length)}}
		if err := s.QP.PostRecv(wr); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Post posts a signaled work request to the send queue.
func (s *Side) Post(wr verbs.SendWR) {
	s.t.Helper()
	wr.Flags |= verbs.Signaled
	if err := s.QP.PostSend(wr); err != nil {
		s.t.Fatal(err)
	}
}

// Take waits for n completions.
func (s *Side) Take(cq *verbs.CQ, n int) []verbs.WC {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), iwarptest.DefaultTimeout)
	defer cancel()
	wcs := make([]verbs.WC, n)
	for got := 0; got < n; {
		if err := cq.Wait(ctx); err != nil {
			s.t.Fatalf("%d of %d completions came: %v (queue pair %v: %v)", got, n, err, s.QP.State(), s.QP.Err())
		}
		got += cq.Poll(wcs[got:])
	}
	return wcs
}

// Statuses waits for completions of work requests with IDs from first on, in order, with
// these statuses.
func (s *Side) Statuses(cq *verbs.CQ, first uint64, want ...verbs.Status) []verbs.WC {
	s.t.Helper()
	wcs := s.Take(cq, len(want))
	for i, wc := range wcs {
		if wc.ID != first+uint64(i) || wc.Status != want[i] {
			s.t.Errorf("completion %d is of %v %d: %v, expected %d: %v", i, wc.Op, wc.ID, wc.Status, first+uint64(i), want[i])
		}
	}
	return wcs
}

// Reach waits until the queue pair is in a state.
func (s *Side) Reach(state verbs.State) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), iwarptest.DefaultTimeout)
	defer cancel()
	if at, err := s.QP.WaitState(ctx, state); err != nil {
		s.t.Fatalf("the queue pair is %v, expected %v: %v", at, state, s.QP.Err())
	}
}

// checkEnd checks events, completions and memory when nothing runs any more.
func (s *Side) checkEnd() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.anything && !slices.Equal(s.events, s.expected) {
		s.t.Errorf("events %v, expected %v", s.events, s.expected)
	}
	var left [8]verbs.WC
	for name, cq := range map[string]*verbs.CQ{"send": s.SendCQ, "receive": s.RecvCQ} {
		if cq == nil {
			continue
		}
		if n := cq.Poll(left[:]); n > 0 {
			s.t.Errorf("%d completions left in the %s CQ, the first of %v %d: %v", n, name, left[0].Op, left[0].ID, left[0].Status)
		}
	}
	s.CheckMemory()
}
