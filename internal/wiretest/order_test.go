package wiretest

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// ordered runs a test of order in a bubble, so that silence can be distinguished from
// slowness, over a connection in memory that is open.
func ordered(t *testing.T, cfg verbs.QPConfig, test func(s *stage)) {
	t.Helper()
	for _, w := range []Wire{Wires[2], {Name: "memory", Memory: true}} {
		t.Run(w.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := setStage(t, w, cfg)
				s.Peer = s.ln.Connect(s.QP)
				s.open()
				test(s)
			})
		})
	}
}

// silent checks that Weft has sent nothing that was not read, and will not
// before something happens.
func (s *stage) silent() {
	s.t.Helper()
	synctest.Wait()
	if n := s.Buffered() + s.Conn.(*iwarptest.Conn).Unread(); n > 0 {
		u, err := s.Next()
		s.t.Fatalf("%d octets came, expected none: % x, %v", n, u, err)
	}
}

// incomplete checks that no work request completes for now.
func (s *stage) incomplete(cq *verbs.CQ) {
	s.t.Helper()
	synctest.Wait()
	var wc [1]verbs.WC
	if cq.Poll(wc[:]) > 0 {
		s.t.Fatalf("%v %d completed (%v), expected nothing yet", wc[0].Op, wc[0].ID, wc[0].Status)
	}
}

// ask posts a Read of one octet into octet number id of the exposed region, and
// answer is what the Peer says to it.
func (s *stage) ask(id uint64, flags verbs.Flags) (request []byte) {
	s.Post(verbs.SendWR{ID: id, Op: verbs.OpRead, Flags: flags, SGL: []verbs.SGE{s.exposed.SGE(int(id), 1)}, Remote: verbs.Remote{STag: 1, TO: 2}})
	return iwarptest.ReadRequest(uint32(id)+1, readOf(s.exposedTag, s.exposedTO+id, 1, 1, 2))
}

func (s *stage) answer(id uint64) []byte {
	s.Expect(exposedOff+int(id), 0xEE)
	return iwarptest.ReadResponse(s.exposedTag, s.exposedTO+id, 0xEE)
}

// More Reads than ORD wait, and with them what was posted behind them; none
// fails.
//
// Claims: R-6.1-6 R-6.1-8 R-5.2.1-7 R-5.5-16 R-5.5-18 R-5.5-25 R-5.5-11
// Claims: V-6.5-4 V-6.5-5
// Claims: R-6.1-3 ME-3-1 ME-4.1-1
func TestReadsBeyondORDWait(t *testing.T) {
	ordered(t, verbs.QPConfig{ORD: 2}, func(s *stage) {
		var requests [][]byte
		for id := range uint64(5) {
			requests = append(requests, s.ask(id, 0))
		}
		s.Post(verbs.SendWR{ID: 5, Op: verbs.OpSend})
		s.next(requests[0], requests[1])
		s.silent()
		s.incomplete(s.SendCQ)
		for id := range uint64(3) {
			s.must(s.Send(s.answer(id)))
			s.next(requests[2+id])
			if id < 2 {
				s.silent()
			}
			s.Statuses(s.SendCQ, id, verbs.Success)
		}
		s.next(iwarptest.Send(1)) // goes out with two Reads under way, and completes after them
		s.silent()
		s.incomplete(s.SendCQ)
		s.must(s.Send(s.answer(3)))
		s.Statuses(s.SendCQ, 3, verbs.Success)
		s.incomplete(s.SendCQ)
		s.must(s.Send(s.answer(4)))
		s.Statuses(s.SendCQ, 4, verbs.Success, verbs.Success)
		s.farewell()
	})
}

// Atomics and Reads share ORD, queue 1 and its MSNs.
//
// Claims: X-5.2-1 X-5.2.1-14 X-5.2.1-19 X-5.2.2-8 X-5.2.2-9 X-5.4-2 X-5.4-9
// Claims: X-5.1.1-9
func TestAtomicsCountAsReadsDo(t *testing.T) {
	ordered(t, verbs.QPConfig{ORD: 2}, func(s *stage) {
		add := func(id uint64) []byte {
			s.Post(verbs.SendWR{ID: id, Op: verbs.OpFetchAdd, SGL: []verbs.SGE{s.exposed.SGE(8*int(id), 8)}, Remote: verbs.Remote{STag: 1, TO: 2}, Atomic: verbs.Atomic{Data: 5}})
			return iwarptest.AtomicRequest(uint32(id)+1, iwarptest.Atomic{ID: uint32(id), STag: 1, TO: 2, Data: 5, CompareMask: 1<<64 - 1})
		}
		requests := [][]byte{add(0), s.ask(1, 0), add(2)}
		s.next(requests[0], requests[1])
		s.silent()
		s.incomplete(s.SendCQ)
		s.must(s.Send(iwarptest.AtomicResponse(1, 0, 0x77)))
		s.Statuses(s.SendCQ, 0, verbs.Success)
		s.next(requests[2])
		s.silent()
		// The answer to the Read places octet 1 of what the first atomic found.
		s.Expect(exposedOff, binary.NativeEndian.AppendUint64(nil, 0x77)...)
		s.must(s.Send(s.answer(1)))
		s.Statuses(s.SendCQ, 1, verbs.Success)
		s.incomplete(s.SendCQ)
		s.Expect(exposedOff+16, binary.NativeEndian.AppendUint64(nil, 0x88)...)
		s.must(s.Send(iwarptest.AtomicResponse(2, 2, 0x88)))
		s.Statuses(s.SendCQ, 2, verbs.Success)
		s.farewell()
	})
}

// A fence holds a request back until all earlier Reads are answered; without
// one it overtakes their answers.
//
// Claims: R-5.5-15 R-5.5-18
// Claims: R-2.4-7
func TestAFenceWaitsForEarlierReads(t *testing.T) {
	for _, op := range []verbs.Op{verbs.OpWrite, verbs.OpSend, verbs.OpRead} {
		t.Run(op.String(), func(t *testing.T) {
			ordered(t, verbs.QPConfig{}, func(s *stage) {
				r0, r1 := s.ask(0, 0), s.ask(1, 0)
				var fenced []byte
				switch op {
				case verbs.OpWrite:
					s.Post(verbs.SendWR{ID: 2, Op: op, Flags: verbs.ReadFence, Remote: verbs.Remote{STag: 7, TO: 8}})
					fenced = iwarptest.Write(7, 8)
				case verbs.OpSend:
					s.Post(verbs.SendWR{ID: 2, Op: op, Flags: verbs.ReadFence})
					fenced = iwarptest.Send(1)
				default:
					fenced = s.ask(2, verbs.ReadFence)
				}
				s.next(r0, r1)
				s.silent()
				s.must(s.Send(s.answer(0)))
				s.silent()
				s.must(s.Send(s.answer(1)))
				s.next(fenced)
				if op == verbs.OpRead {
					s.must(s.Send(s.answer(2)))
				}
				s.Statuses(s.SendCQ, 0, verbs.Success, verbs.Success, verbs.Success)
				s.farewell()
			})
		})
	}
}

// A Read completes when its whole Response is in place, and no sooner.
//
// Claims: R-5.5-22 R-5.5-18 R-5.2.2-4 R-5.2.2-9
// Claims: V-4-3
// Claims: R-2.4-1
func TestAReadCompletesWithTheLastSegmentOfItsResponse(t *testing.T) {
	ordered(t, verbs.QPConfig{}, func(s *stage) {
		s.Post(verbs.SendWR{ID: 0, Op: verbs.OpRead, SGL: []verbs.SGE{s.exposed.SGE(0, 100)}, Remote: verbs.Remote{STag: 1, TO: 2}})
		s.Post(verbs.SendWR{ID: 1, Op: verbs.OpSend})
		s.next(iwarptest.ReadRequest(1, readOf(s.exposedTag, s.exposedTO, 100, 1, 2)), iwarptest.Send(1))
		for i, u := range iwarptest.Split(iwarptest.ReadResponse(s.exposedTag, s.exposedTO, Fill(100, 0xEE)...), 30) {
			s.incomplete(s.SendCQ)
			s.must(s.Send(u))
			s.Expect(exposedOff+30*i, Fill(min(30, 100-30*i), 0xEE)...)
		}
		s.Statuses(s.SendCQ, 0, verbs.Success, verbs.Success)
		s.farewell()
	})
}

// A receive completes with the last segment of its message.
//
// Claims: R-5.5-19 DDP-5.4-2 R-5.3-2 R-5.3-5 R-5.3-12 X-6.3-2 X-6.3-3
// Claims: V-4-3
// Claims: R-2.4-1 X-3-3 X-6-1
func TestAReceiveCompletesWithTheLastSegmentOfItsMessage(t *testing.T) {
	ordered(t, verbs.QPConfig{}, func(s *stage) {
		s.Receives(s.recv, 0, recvSize, 6)
		for i, u := range iwarptest.Split(iwarptest.Send(1, Fill(100, 0xEE)...), 30) {
			s.incomplete(s.RecvCQ)
			s.must(s.Send(u))
			s.Expect(recvOff+30*i, Fill(min(30, 100-30*i), 0xEE)...)
		}
		if wc := s.Statuses(s.RecvCQ, 100, verbs.Success)[0]; wc.Bytes != 100 {
			t.Errorf("%d octets", wc.Bytes)
		}
		s.must(s.Send(iwarptest.Send(2), iwarptest.Immediate(3, Fill(8, 3)...), iwarptest.Untagged(5, 0, 0, 4, 0, 4), iwarptest.Untagged(6, s.writableTag, 0, 5, 0), iwarptest.Overwrite(iwarptest.Immediate(6, Fill(8, 6)...), 1, 0x49)))
		s.Expect(recvOff+3*recvSize, 4)
		wcs := s.Statuses(s.RecvCQ, 101, slices.Repeat([]verbs.Status{verbs.Success}, 5)...)
		for i, want := range []verbs.WC{
			{Op: verbs.OpRecv}, {Op: verbs.OpRecvImmediate, Bytes: 8, Immediate: [8]byte{3, 3, 3, 3, 3, 3, 3, 3}},
			{Op: verbs.OpRecv, Bytes: 1, Solicited: true}, {Op: verbs.OpRecv, Solicited: true, HasInvalidated: true, Invalidated: s.writable.STag()},
			{Op: verbs.OpRecvImmediate, Bytes: 8, Solicited: true, Immediate: [8]byte{6, 6, 6, 6, 6, 6, 6, 6}},
		} {
			got := wcs[i]
			if got.Op != want.Op || got.Bytes != want.Bytes || got.Solicited != want.Solicited || got.HasInvalidated != want.HasInvalidated ||
				got.Invalidated != want.Invalidated || got.Immediate != want.Immediate {
				t.Errorf("completion %d is %+v, expected %+v", i, got, want)
			}
		}
		s.farewell()
	})
}

// A Send or Write completes when the transport has all of it.
//
// Claims: R-5.5-17
// Claims: DDP-5.4-1
func TestAMessageThatTheTransportHasNotTakenIsNotComplete(t *testing.T) {
	ordered(t, verbs.QPConfig{}, func(s *stage) {
		buf, mr := s.big(1<<20, verbs.LocalRead)
		s.Post(verbs.SendWR{ID: 0, Op: verbs.OpWrite, SGL: []verbs.SGE{mr.SGE(0, len(buf))}, Remote: verbs.Remote{STag: 0x100}})
		s.Post(verbs.SendWR{ID: 1, Op: verbs.OpSend})
		s.incomplete(s.SendCQ)
		if m, err := s.NextMessage(); err != nil || !bytes.Equal(m.Payload, buf) {
			t.Errorf("the message came as %v, %v", m, err)
		}
		s.next(iwarptest.Send(1))
		s.Statuses(s.SendCQ, 0, verbs.Success, verbs.Success)
		s.farewell()
	})
}

// Before the Initiator's first FPDU nothing is sent, whatever is posted.
//
// Claims: MPA-7.1-7
// Claims: ME-3-2
func TestAResponderHoldsWhatIsPostedUntilTheFirstFPDU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setStage(t, Wires[2], verbs.QPConfig{})
		s.Post(verbs.SendWR{ID: 0, Op: verbs.OpSend}) // in Idle
		s.Peer = s.ln.Connect(s.QP)
		s.Post(verbs.SendWR{ID: 1, Op: verbs.OpSend})
		s.silent()
		fpdu := s.Frame(iwarptest.Write(0, 0))
		s.must(s.SendRaw(fpdu[:len(fpdu)-1]))
		s.silent()
		s.must(s.SendRaw(fpdu[len(fpdu)-1:]))
		s.next(iwarptest.Send(1), iwarptest.Send(2))
		s.Statuses(s.SendCQ, 0, verbs.Success, verbs.Success)
		s.farewell()
	})
}

// Atomics of many streams on one word lose nothing: every value is found once.
//
// Claims: X-5-2 X-5.3-1 X-5.4-3
// Claims: X-3-2
func TestAtomicsOfManyStreamsAreAtomic(t *testing.T) {
	const peers, each = 4, 200
	s := setStage(t, Wires[0], verbs.QPConfig{})
	s.Arena[atomicOff] = 0
	clear(s.Arena[atomicOff : atomicOff+8])
	s.Expect(atomicOff, binary.NativeEndian.AppendUint64(nil, peers*each)...)
	found := make([][]uint64, peers)
	var wg sync.WaitGroup
	for i := range peers {
		qp := s.NewQP(verbs.QPConfig{IRD: 4})
		p := s.ln.Connect(qp)
		wg.Go(func() {
			for n := range uint32(each) {
				if err := p.Send(iwarptest.AtomicRequest(n+1, iwarptest.Atomic{ID: n, STag: uint32(s.atomic.STag()), TO: s.atomicTO, Data: 1})); err != nil {
					t.Error(err)
					return
				}
				u, err := p.Next()
				if err != nil || len(u) != 30 || !bytes.Equal(u[:22], iwarptest.AtomicResponse(n+1, n, 0)[:22]) {
					t.Errorf("answer % x, %v", u, err)
					return
				}
				found[i] = append(found[i], binary.BigEndian.Uint64(u[22:]))
			}
			s.must(p.CloseWrite())
			if rest, err := p.Rest(); err != nil || len(rest) > 0 {
				t.Errorf("at the end came % x, %v", rest, err)
			}
		})
		s.ExpectEvent(verbs.EventLLPCloseComplete)
	}
	nettest.AwaitGroup(t, &wg)
	all := slices.Concat(found...)
	slices.Sort(all)
	for i, v := range all {
		if v != uint64(i) {
			t.Fatalf("value %d was found, expected %d", v, i)
		}
	}
	s.Events(peers)
}
