package wiretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// closeTimeout is that of a verbs.Config that has none.
const closeTimeout = 5 * time.Second

// postRead posts a Read and has the Peer read the request.
func (s *stage) postRead(id uint64) {
	s.t.Helper()
	s.Post(verbs.SendWR{ID: id, Op: verbs.OpRead, SGL: []verbs.SGE{s.exposed.SGE(0, 16)}, Remote: verbs.Remote{STag: 1, TO: 2}})
	if m, err := s.NextMessage(); err != nil || m.Opcode != 1 {
		s.t.Fatalf("expected a Read Request, got %v, %v", m, err)
	}
}

// Verbs §6.2.2: a FIN with work outstanding is an error, which is reported on the half
// that is still open.
//
// Claims: DDP-6.2.1-5 R-7-4
// Claims: V-6.2.2.2-1 V-6.2.2.3-3
// Claims: V-9.5.3-23 V-8.3.3-8
func TestAFinWithWorkOutstandingIsAnError(t *testing.T) {
	for _, w := range Wires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			s.Receives(s.recv, 0, recvSize, 1)
			s.Peer = s.ln.Connect(s.QP)
			s.open()
			s.postRead(0)
			s.ExpectEvent(verbs.EventBadLLPClose)
			s.must(s.CloseWrite())
			s.answered(iwarptest.Terminate(0, 2, 7, iwarptest.NoHeaders, nil))
			s.must(s.Peer.Close())
			s.Reach(verbs.Error)
			s.wantError(0, 2, 7)
			s.Statuses(s.SendCQ, 0, verbs.Flushed)
			s.Statuses(s.RecvCQ, 100, verbs.Flushed)
			s.serves()
		})
	}
}

// What the peer had asked for before its FIN is still answered.
//
// Claims: DDP-6.2.1-5 R-5.2.1-11 DDP-6.2.1-4
func TestAFinBehindAReadRequestWaitsForTheAnswer(t *testing.T) {
	for _, w := range Wires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			s.Peer = s.ln.Connect(s.QP)
			s.must(s.Send(iwarptest.ReadRequest(1, readOf(1, 2, 100, s.exposedTag, s.exposedTO))))
			s.must(s.CloseWrite())
			s.ExpectEvent(verbs.EventLLPCloseComplete)
			s.answered(iwarptest.ReadResponse(1, 2, s.Expected(exposedOff, 100)...))
			s.must(s.Peer.Close())
			s.Reach(verbs.Idle)
		})
	}
}

// A FIN inside an FPDU is the loss of the connection, wherever it comes:
// no Terminate can be sent any more, and nothing of the FPDU is used.
//
// Claims: DDP-6.2.2-1 R-5.5-19
// Claims: V-9.5.3-5 V-8.3.3-4
func TestAFinInsideAnFPDULosesTheConnection(t *testing.T) {
	for _, w := range Wires[:3] {
		length := len((&iwarptest.Peer{Out: iwarptest.Framing{Markers: w.Markers}}).Frame(iwarptest.Send(1, 1, 2, 3)))
		for cut := 1; cut < length; cut++ {
			t.Run(fmt.Sprintf("%s/%d", w.Name, cut), func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				s.Receives(s.recv, 0, recvSize, 1)
				s.Peer = s.ln.Connect(s.QP)
				s.ExpectEvent(verbs.EventLLPLost)
				s.must(s.SendRaw(s.Frame(iwarptest.Send(1, 1, 2, 3))[:cut]))
				s.must(s.CloseWrite())
				if said := saidBeforeClose(t, s.Peer); len(said) > 0 {
					t.Errorf("answered with % x", said)
				}
				s.Reach(verbs.Error)
				if err := s.QP.Err(); !hasCode(err, mpa.CodeClosed) {
					t.Errorf("the queue pair's error is %v", err)
				}
				s.Statuses(s.RecvCQ, 100, verbs.Flushed)
			})
		}
	}
}

// Claims: DDP-6.2.2-1 DDP-6.2.2-2
// Claims: V-6.2.2.4-2 V-6.6.2.5-2
// Claims: V-9.5.3-4 V-8.3.3-4
// Claims: R-6.2-3
func TestAResetFlushesEverything(t *testing.T) {
	for _, w := range Wires {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/busy %t", w.Name, busy), func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				s.Receives(s.recv, 0, recvSize, 2)
				s.Peer = s.ln.Connect(s.QP)
				s.open()
				var sends []verbs.Status
				if busy {
					s.postRead(0)
					sends = append(sends, verbs.Flushed)
				}
				s.must(s.Reset())
				s.ExpectEvent(verbs.EventLLPReset)
				s.Reach(verbs.Error)
				if err := s.QP.Err(); !hasCode(err, mpa.CodeClosed) {
					t.Errorf("the queue pair's error is %v", err)
				}
				s.Statuses(s.SendCQ, 0, sends...)
				s.Statuses(s.RecvCQ, 100, verbs.Flushed, verbs.Flushed)
				s.serves()
			})
		}
	}
}

// A peer that stops reading stalls the queue and nothing else: posting does not
// wait, what it sends is taken, memory can be deallocated, and Close keeps to
// its context.
//
// Claims: R-5.5-17 R-8.1.1-6
func TestAPeerThatStopsReadingHoldsNothingUp(t *testing.T) {
	for _, w := range Wires[:3] {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			s.Receives(s.recv, 0, recvSize, 1)
			buf, mr := s.big(64<<20, verbs.LocalRead)
			s.Peer = s.ln.Connect(s.QP)
			s.open()
			for id := range uint64(8) {
				s.Post(verbs.SendWR{ID: id, Op: verbs.OpSend, SGL: []verbs.SGE{mr.SGE(0, len(buf))}})
			}
			// The other direction goes on.
			s.must(s.Send(iwarptest.Send(1, 7)))
			s.Expect(recvOff, 7)
			s.Statuses(s.RecvCQ, 100, verbs.Success)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.QP.Close(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Close: %v", err)
			}
			s.Reach(verbs.Error)
			s.Statuses(s.SendCQ, 0, slices.Repeat([]verbs.Status{verbs.Flushed}, 8)...)
			s.serves()
		})
	}
}

// Deallocate does not wait for a peer that has stopped reading in the middle of
// a message from the memory; what has not left is not sent.
//
// Claims: R-8.1.1-6 DDP-8.3.1-6
func TestMemoryOfAMessageThatIsStuckCanBeDeallocated(t *testing.T) {
	for _, w := range Wires[:3] {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			buf, mr := s.big(32<<20, verbs.LocalRead)
			before := slices.Clone(buf)
			s.Peer = s.ln.Connect(s.QP)
			s.open()
			s.Post(verbs.SendWR{ID: 0, Op: verbs.OpWrite, SGL: []verbs.SGE{mr.SGE(0, len(buf))}, Remote: verbs.Remote{STag: 0x100}})
			first, err := s.Next()
			s.must(err)
			s.must(mr.Deallocate())
			clear(buf) // the consumer's again: nothing of it may be seen
			message, terminate, ok := s.responseToTerminate(first)
			if !bytes.Equal(message, before[:len(message)]) {
				t.Error("octets written after the deallocation were sent")
			}
			if ok && !bytes.Equal(terminate, iwarptest.Terminate(0, 0, 0, iwarptest.NoHeaders, nil)) {
				t.Errorf("Terminate % x", terminate)
			}
			_ = s.Peer.Close() // it may be reset
			s.Reach(verbs.Error)
			wc := s.Take(s.SendCQ, 1)[0]
			if wc.Status != verbs.InvalidSTag && (ok || wc.Status != verbs.Flushed) {
				t.Errorf("completion %v, the stream ended by a Terminate: %t", wc.Status, ok)
			}
			if !ok {
				s.anyEvent()
			}
			s.serves()
		})
	}
}

// A peer that trickles cannot keep memory from being deallocated: Deallocate
// returns in the middle of the FPDU, and from then on no octet is placed.
//
// Claims: R-8.1.1-6 DDP-8.3.1-6 DDP-8.3-2 D-10.3-2
func TestMemoryThatAPeerTricklesIntoCanBeDeallocated(t *testing.T) {
	for _, w := range Wires[:3] {
		for _, n := range []int{10, 19, 5000, 39000} {
			t.Run(fmt.Sprintf("%s/%d octets", w.Name, n), func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				s.Peer = s.ln.Connect(s.QP)
				s.open()
				opened := int(s.ln.conn.Stats().OctetsIn)
				culprit := iwarptest.Write(s.exposedTag, s.exposedTO, Fill(40000, 0xEE)...)
				fpdu := s.Frame(culprit)
				s.must(s.SendRaw(fpdu[:n]))
				s.received(opened + n)
				s.must(s.exposed.Deallocate())
				// Without CRC what has come may be in place: no more than that.
				placed := slices.Clone(s.Arena[exposedOff : exposedOff+exposedLen])
				if i := bytes.LastIndexByte(placed, 0xEE); i >= n && !bytes.Equal(placed[n:], s.Expected(exposedOff+n, exposedLen-n)) || w.CRC && !bytes.Equal(placed, s.Expected(exposedOff, exposedLen)) {
					t.Errorf("octet %d is in place before it came", i)
				}
				s.Expect(exposedOff, placed...)
				s.ExpectEvent(verbs.EventProtectionSTag)
				s.Trickle = true
				s.must(s.SendRaw(fpdu[n : n+100]))
				s.Trickle = false
				_ = s.SendRaw(fpdu[n+100:])
				s.answered(iwarptest.Terminate(1, 1, 0, iwarptest.DDPHeader, culprit))
				s.must(s.Peer.Close())
				s.Reach(verbs.Error)
				s.CheckMemory()
				s.wantError(1, 1, 0)
			})
		}
	}
}

// received waits until Weft has taken n octets from the connection.
func (s *stage) received(n int) {
	s.t.Helper()
	for end := time.Now().Add(iwarptest.DefaultTimeout); s.ln.conn.Stats().OctetsIn < uint64(n); runtime.Gosched() {
		if time.Now().After(end) {
			s.t.Fatalf("%d octets arrived, expected %d", s.ln.conn.Stats().OctetsIn, n)
		}
	}
}

// Every end that depends on the peer has its limit.
//
// Claims: V-6.2.3-4 V-6.2.3-5 V-6.2.5-9
// Claims: R-6.2.1-2
func TestAPeerThatDoesNotLetTheStreamEndIsCutOff(t *testing.T) {
	tests := map[string]struct {
		end   func(s *stage)
		event []verbs.EventID
		sends []verbs.Status
	}{
		"after our Terminate it keeps the connection": {
			end: func(s *stage) {
				s.must(s.Send(iwarptest.Send(2, 1)))
				s.answered(iwarptest.Terminate(1, 2, 3, iwarptest.DDPHeader, iwarptest.Send(2, 1)))
			},
			event: []verbs.EventID{verbs.EventRQMSNRange},
		},
		"after its Terminate it keeps the connection": {
			end: func(s *stage) {
				s.must(s.Send(terminate(1, 1, 0, 0)))
				s.answered()
			},
			event: []verbs.EventID{verbs.EventTerminateReceived},
		},
		"it does not read our Terminate": {
			end: func(s *stage) {
				_, mr := s.big(1<<20, verbs.LocalRead)
				s.Post(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{mr.SGE(0, 1<<20)}})
				synctest.Wait()
				s.must(s.Send(iwarptest.Send(2, 1)))
			},
			event: []verbs.EventID{verbs.EventRQMSNRange}, sends: []verbs.Status{verbs.Flushed},
		},
		"it does not answer our FIN": {
			end: func(s *stage) {
				closed := make(chan error, 1)
				go func() { closed <- s.QP.Close(context.Background()) }()
				s.answered()
				if err := <-closed; err == nil {
					s.t.Error("Close succeeded")
				}
			},
			event: []verbs.EventID{verbs.EventLLPLost},
		},
		"we close, it closes and does not read its answer": {
			end: func(s *stage) {
				_, mr := s.big(1<<20, verbs.LocalRead|verbs.RemoteRead)
				s.must(s.Send(iwarptest.ReadRequest(1, iwarptest.Read{SinkSTag: 0x100, Size: 1 << 20, SourceSTag: uint32(mr.STag())})))
				synctest.Wait() // it is being answered
				closed := make(chan error, 1)
				go func() { closed <- s.QP.Close(context.Background()) }()
				synctest.Wait()
				s.must(s.CloseWrite())
				if err := <-closed; err == nil {
					s.t.Error("Close calls a reset in the middle of an answer graceful")
				}
			},
		},
		"it closes its half and does not read": {
			end: func(s *stage) {
				_, mr := s.big(1<<20, verbs.LocalRead)
				s.Post(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{mr.SGE(0, 1<<20)}})
				synctest.Wait()
				s.must(s.CloseWrite())
			},
			sends: []verbs.Status{verbs.Flushed},
		},
	}
	for name, tt := range tests {
		for _, w := range Wires[2:4] { // in memory
			t.Run(name+"/"+w.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := setStage(t, w, verbs.QPConfig{})
					s.Peer = s.ln.Connect(s.QP)
					s.open()
					synctest.Wait() // what opens the stream has arrived
					begun := time.Now()
					tt.end(s)
					s.Reach(verbs.Error)
					if d := time.Since(begun); d != closeTimeout {
						t.Errorf("over after %v, expected %v", d, closeTimeout)
					}
					if err := s.QP.Err(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("the queue pair's error is %v", err)
					}
					s.Statuses(s.SendCQ, 0, tt.sends...)
					if tt.event != nil {
						s.ExpectEvent(tt.event...)
					} else {
						s.anyEvent()
					}
					s.serves()
				})
			})
		}
	}
}

// While the stream closes the peer has nothing to say any more (Verbs §6.2.5).
//
// Claims: DDP-6.2.1-3 DDP-6.2.1-2
// Claims: V-6.2.5-3 V-6.2.5-7 V-6.2.5-10
// Claims: V-9.5.3-22 V-8.3.3-8
func TestAMessageWhileClosingIsABadClose(t *testing.T) {
	for _, w := range Wires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			s.Receives(s.recv, 0, recvSize, 1)
			s.Peer = s.ln.Connect(s.QP)
			s.open()
			closed := make(chan error, 1)
			go func() { closed <- s.QP.Close(t.Context()) }()
			s.answered() // FIN: the queue pair is Closing
			if err := s.QP.PostSend(verbs.SendWR{Op: verbs.OpSend}); !errors.Is(err, verbs.ErrState) {
				t.Errorf("posting while closing: %v, expected %v", err, verbs.ErrState)
			}
			s.ExpectEvent(verbs.EventBadClose)
			s.must(s.Send(iwarptest.Send(1, 1)))
			saidBeforeClose(t, s.Peer)
			if err := nettest.Await(t, closed); err == nil {
				t.Error("Close succeeded")
			}
			s.Reach(verbs.Error)
			s.Statuses(s.RecvCQ, 100, verbs.Flushed)
			s.serves()
		})
	}
}
