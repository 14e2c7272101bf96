package verbs_test

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// Regions are deallocated under full load, in all roles that memory can have.
// After Deallocate has returned the memory is its owner's alone: the race
// detector sees the write here against any access of the stack, and no octet of
// it changes any more.
//
// Claims: R-3.2-12
func TestDeallocateEndsAllUseOfTheMemory(t *testing.T) {
	const size = 16 << 10
	type role struct {
		name  string
		op    verbs.Op
		local bool // the region is the poster's, or else the peer's
	}
	for _, r := range []role{
		{"source of a Write", verbs.OpWrite, true},
		{"target of a Write", verbs.OpWrite, false},
		{"sink of a Read", verbs.OpRead, true},
		{"source of a Read", verbs.OpRead, false},
		{"source of a Send", verbs.OpSend, true},
		{"receive", verbs.OpSend, false},
	} {
		t.Run(r.name, func(t *testing.T) {
			overWires(t, func(t *testing.T, w wire) {
				seed := rand.Uint64()
				rng := rand.New(rand.NewPCG(seed, 0))
				for round := range 4 {
					cfg := verbs.QPConfig{SendDepth: 64, RecvDepth: 64, IRD: 8, ORD: 8, PauseOnEmptyRQ: true}
					a, b := newSide(t, cfg), newSide(t, cfg)
					owner := b
					if r.local {
						owner = a
					}
					mine := make([]byte, size)
					mr := must(owner.pd.Register(mine, allRights))(t)
					w.connect(t, a.qp, b.qp, cm.Params{})
					var completed atomic.Int32
					end := make(chan struct{})
					go func() { // keep the receives coming
						defer close(end)
						for {
							rwr := verbs.RecvWR{SGL: []verbs.SGE{b.mr.SGE(0, size)}}
							if !r.local {
								rwr.SGL[0] = mr.SGE(0, size)
							}
							if b.qp.PostRecv(rwr) == nil {
								continue
							}
							if b.recvCQ.Wait(t.Context()) != nil {
								return
							}
							var wcs [16]verbs.WC
							for _, wc := range wcs[:b.recvCQ.Poll(wcs[:])] {
								if wc.Status != verbs.Success {
									return
								}
							}
						}
					}()
					sender := make(chan struct{})
					go func() {
						defer close(sender)
						wr := verbs.SendWR{Op: r.op, Flags: verbs.Signaled, SGL: []verbs.SGE{a.mr.SGE(0, size)}, Remote: b.mr.Remote(0)}
						if r.local {
							wr.SGL[0] = mr.SGE(0, size)
						} else {
							wr.Remote = mr.Remote(0)
						}
						for posted := int32(0); ; posted++ {
							for a.qp.PostSend(wr) != nil {
								if a.sendCQ.Wait(t.Context()) != nil {
									return
								}
								var wcs [64]verbs.WC
								for _, wc := range wcs[:a.sendCQ.Poll(wcs[:])] {
									if wc.Status != verbs.Success {
										return
									}
									completed.Add(1)
								}
							}
						}
					}()
					for after := int32(rng.IntN(60)); completed.Load() < after; {
						select {
						case <-sender:
							t.Fatalf("seed %#x round %d: it ended by itself: %v, %v", seed, round, a.qp.Err(), b.qp.Err())
						default:
							runtime.Gosched()
						}
					}
					check(t, mr.Deallocate())
					for i := range mine {
						mine[i] = 0xA5
					}
					nettest.Await(t, sender) // the next use of the region failed
					if _, err := a.qp.WaitState(t.Context(), verbs.Error); err != nil {
						t.Fatal(err)
					}
					if _, err := b.qp.WaitState(t.Context(), verbs.Error); err != nil {
						t.Fatal(err)
					}
					for i, v := range mine {
						if v != 0xA5 {
							t.Fatalf("seed %#x round %d: octet %d of the memory was written after Deallocate", seed, round, i)
						}
					}
					check(t, a.rnic.Close())
					check(t, b.rnic.Close())
					nettest.Await(t, end)
				}
			})
		})
	}
}

// A peer that reads nothing does not hold up Deallocate.
func TestAPeerCannotHoldUpARevocation(t *testing.T) {
	const size = 4 * iwarptest.DefaultBuffer
	for _, tt := range []struct {
		name string
		do   func(s *table) *verbs.MR // begins what the peer leaves half done
	}{
		{"Write that is not read", func(s *table) *verbs.MR {
			mr := s.a.region(0, size, allRights)
			s.x.Hold()
			s.a.post(verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{mr.SGE(0, size)}, Remote: s.b.mr.Remote(0)})
			return mr
		}},
		{"Read Response that is not read", func(s *table) *verbs.MR {
			mr := s.a.region(0, size, allRights)
			s.x.Hold()
			s.b.post(verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{s.b.mr.SGE(0, size)}, Remote: mr.Remote(0)})
			return mr
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, reads, reads, func(t *testing.T, s *table) {
				s.a.receives(1, 1, 8)
				// The initiator has sent, so that the responder may.
				s.a.post(s.a.write(0, s.b, 0, 0))
				quiesce()
				mr := tt.do(s)
				quiesce()
				check(t, mr.Deallocate()) // would wait forever, in a bubble
				s.a.qp.Abort()
				s.b.qp.Abort()
			})
		})
	}
}
