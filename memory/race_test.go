package memory

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/ddp"
)

// While somebody holds what was revoked, an object is not made valid again: who
// revoked it waits for one registration only.
func TestNothingBecomesValidBeforeItsLastUserIsGone(t *testing.T) {
	for _, c := range []struct {
		name  string
		valid func(table *Table, pd *PD, r *Region, w *Window) error
		of    func(r *Region, w *Window) *object
	}{
		{"fast-register", func(table *Table, pd *PD, r *Region, w *Window) error {
			return table.FastRegister(pd, 1, r.STag()^1, make([]byte, 8), RegionConfig{Access: LocalRead})
		}, func(r *Region, w *Window) *object { return &r.object }},
		{"reregister", func(table *Table, pd *PD, r *Region, w *Window) error {
			return table.Reregister(r, pd, make([]byte, 8), RegionConfig{Access: LocalRead})
		}, func(r *Region, w *Window) *object { return &r.object }},
		{"bind", func(table *Table, pd *PD, r *Region, w *Window) error {
			return table.Bind(pd, 1, Binding{Window: w.STag() ^ 1, Region: r.STag(), Length: 8, Access: RemoteRead})
		}, func(r *Region, w *Window) *object { return &w.object }},
	} {
		synctest.Test(t, func(t *testing.T) {
			table := NewTable(Config{})
			pd := table.AllocPD()
			r := register(t, table, pd, make([]byte, 8), RegionConfig{Access: anyLocal | RemoteRead | BindWindow})
			w := allocWindow(t, table, pd)
			bind(t, table, pd, 1, w, r, RemoteRead)
			o := c.of(r, w)
			if o == &r.object {
				table.Invalidate(uint32(w.STag()), pd, 1, false)
			}
			var h Holder
			h.Init(table, pd, 1)
			if _, fault := h.Resolve(nil, uint32(o.STag()), 0, 8, RemoteRead); fault != ddp.NoFault {
				t.Fatal(fault)
			}
			go table.Invalidate(uint32(o.STag()), pd, 1, false)
			synctest.Wait()
			done := make(chan error, 1)
			go func() { done <- c.valid(table, pd, r, w) }()
			synctest.Wait()
			if len(done) != 0 || o.Valid() {
				t.Errorf("%s: done while the memory is held: valid %v", c.name, o.Valid())
			}
			h.Forget()
			if err := <-done; err != nil || !o.Valid() {
				t.Errorf("%s: %v, valid %v", c.name, err, o.Valid())
			}
		})
	}
}

// Peers write and read through a window that is bound and revoked all the time. The
// race detector sees an octet that moves after a revocation.
//
// Claims: V-7.10.4.1-1 V-7.10.2-8
func TestNoOctetMovesThroughAWindowAfterRevocation(t *testing.T) {
	for _, c := range []struct {
		name   string
		revoke func(table *Table, pd *PD, w *Window) error
		gone   bool
	}{
		{"invalidate", func(table *Table, pd *PD, w *Window) error {
			return faultErr(table.Invalidate(uint32(w.STag()), pd, 1, false))
		}, false},
		{"remote invalidate", func(table *Table, pd *PD, w *Window) error {
			return faultErr(table.Invalidate(uint32(w.STag()), pd, 1, true))
		}, false},
		{"deallocate", func(table *Table, pd *PD, w *Window) error { return table.DeallocateWindow(w) }, true},
		{"close", func(table *Table, pd *PD, w *Window) error { table.Close(); return nil }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			rounds := 200
			if c.gone {
				rounds = 20
			}
			for range rounds {
				windowUnderTraffic(t, c.revoke, c.gone)
			}
		})
	}
}

func windowUnderTraffic(t *testing.T, revoke func(*Table, *PD, *Window) error, gone bool) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	buf := make([]byte, 64)
	r := register(t, table, pd, buf, RegionConfig{Access: anyLocal | BindWindow})
	w := allocWindow(t, table, pd)
	bindings := 5
	if gone {
		bindings = 1
	}
	for range bindings {
		bind(t, table, pd, 1, w, r, RemoteWrite)
		stag := uint32(w.STag())
		var started, ended sync.WaitGroup
		for i := range 2 { // each writer has its half
			started.Add(1)
			ended.Go(func() {
				var h Holder
				h.Init(table, pd, 1)
				defer h.Forget()
				var pieces [][]byte
				for n := 0; ; n++ {
					var fault ddp.Fault
					if pieces, fault = h.Resolve(pieces[:0], stag, uint64(32*i), 32, RemoteWrite); fault != ddp.NoFault {
						if n == 0 {
							started.Done()
						}
						return
					}
					copy(pieces[0], "what a peer writes into a window")
					if n == 0 {
						started.Done()
					}
					if n%3 == 0 {
						h.Forget()
					}
					runtime.Gosched()
				}
			})
		}
		started.Wait()
		if err := revoke(table, pd, w); err != nil {
			t.Fatal(err)
		}
		for i := range buf {
			buf[i] = 'o' // the owner's again
		}
		ended.Wait()
		if !bytes.Equal(buf, bytes.Repeat([]byte{'o'}, len(buf))) {
			t.Fatal("an octet was written after revocation")
		}
	}
}

// A peer writes while a region is reregistered between two buffers, by the same STag:
// each access meets one registration or none, and never the one that ended.
//
// Claims: V-7.3.2.3-6 V-7.3.2.3-5
func TestReregisterUnderTrafficMovesNoOctetOfTheOldMemory(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	bufs := [2][]byte{make([]byte, 64), make([]byte, 64)}
	r := register(t, table, pd, bufs[0], RegionConfig{Access: anyLocal | RemoteWrite})
	stag := uint32(r.STag())
	end := make(chan struct{})
	var ended sync.WaitGroup
	for i := range 2 {
		ended.Go(func() {
			var h Holder
			h.Init(table, pd, 0)
			defer h.Forget()
			var pieces [][]byte
			for n := 0; ; n++ {
				select {
				case <-end:
					return
				default:
				}
				var fault ddp.Fault
				pieces, fault = h.Resolve(pieces[:0], stag, uint64(32*i), 32, RemoteWrite)
				switch fault {
				case ddp.NoFault:
					copy(pieces[0], "what a peer writes into a region")
				case ddp.FaultSTag: // it met none
				default:
					t.Errorf("fault %v", fault)
				}
				if n%3 == 0 || fault != ddp.NoFault {
					h.Forget()
				}
				runtime.Gosched()
			}
		})
	}
	for n := range 2000 {
		old := bufs[n%2]
		if err := table.Reregister(r, pd, bufs[1-n%2], RegionConfig{Access: anyLocal | RemoteWrite}); err != nil {
			t.Fatal(err)
		}
		for i := range old {
			old[i] = 'o'
		}
		runtime.Gosched()
		for i, v := range old {
			if v != 'o' {
				t.Fatalf("octet %d of the old memory was written", i)
			}
		}
	}
	close(end)
	ended.Wait()
}

// All verbs at once on one region and two windows, with users of the memory: what is
// counted comes out even, and everybody gets to the end.
// The one who revokes begins to wait while the last holder leaves.
func TestWhoWaitsForTheLastHolderIsWokenWheneverThatLeaves(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	for range 20_000 {
		r := register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead})
		g := r.current.Load()
		g.hold()
		g.mark()
		var waiters sync.WaitGroup
		for range 2 {
			waiters.Go(g.await)
		}
		g.release()
		waiters.Wait() // for ever, if it is not told
		if !g.drained() {
			t.Fatal("it is not drained")
		}
	}
}

func TestVerbsAtOnceKeepTheCounts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	for round := range 40 {
		table := NewTable(Config{MaxBytes: 64})
		pd := table.AllocPD()
		cfg := RegionConfig{Access: anyLocal | anyRemote | BindWindow}
		r := register(t, table, pd, make([]byte, 32), cfg)
		var windows [2]*Window
		for i := range windows {
			windows[i] = allocWindow(t, table, pd)
		}
		var all sync.WaitGroup
		for worker := range 4 {
			rng := rand.New(rand.NewPCG(seed, uint64(8*round+worker)))
			all.Go(func() {
				var h Holder
				h.Init(table, pd, 1)
				for range 150 {
					w := windows[rng.IntN(2)]
					switch rng.IntN(10) {
					case 0:
						table.Invalidate(uint32(r.STag()), pd, 1, false)
					case 1:
						_ = table.FastRegister(pd, 1, r.STag(), make([]byte, 32), cfg)
					case 2:
						_ = table.Reregister(r, pd, make([]byte, 16), cfg)
					case 3, 4:
						_ = table.Bind(pd, 1, Binding{Window: w.STag(), Region: r.STag(), Length: 16, Access: RemoteRead})
					case 5:
						table.Invalidate(uint32(w.STag()), pd, 1, true)
					case 6:
						if err := table.RetireStream(1); err == nil {
							table.ForgetStream(1)
						}
					case 7, 8:
						_, _ = h.Resolve(nil, uint32(w.STag()), 0, 8, RemoteRead)
						_, _ = h.Resolve(nil, uint32(r.STag()), 0, 8, RemoteRead)
						h.Release()
						h.Acquire()
						h.Forget()
					case 9:
						if rng.IntN(20) == 0 {
							_ = table.DeallocateWindow(w)
						}
					}
				}
			})
		}
		all.Wait()
		want := Usage{Regions: 1}
		bound := 0
		for _, w := range windows {
			if !w.gone {
				want.Windows++
			}
			if w.Valid() {
				bound++
			}
		}
		if r.Valid() {
			want.Bytes = r.Len()
		}
		if got := table.Usage(); got != want || r.windows != bound || table.bound[1] != bound || bound > 0 && !r.Valid() {
			t.Fatalf("round %d: usage %+v, want %+v; %d windows are bound, %d at the region, %d at the stream, which is Valid: %v",
				round, got, want, bound, r.windows, table.bound[1], r.Valid())
		}
		for _, w := range windows {
			if err := table.DeallocateWindow(w); err != nil && !errors.Is(err, ErrWindow) {
				t.Fatal(err)
			}
		}
		if err := errors.Join(table.Deallocate(r), table.FreePD(pd)); err != nil {
			t.Fatal(err)
		}
	}
}
