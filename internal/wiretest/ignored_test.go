package wiretest

import (
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// From its own Terminate on a queue pair takes nothing more from the peer, in
// order though it be: nothing is placed, answered or delivered (Verbs §6.2.3, §6.4).
//
// Claims: V-6.2.3-1 V-6.4-4
// Claims: DDP-6.2-2
func TestWhatComesBehindOurTerminateIsIgnored(t *testing.T) {
	for _, w := range Wires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			s.Receives(s.recv, 0, recvSize, 2)
			s.Peer = s.ln.Connect(s.QP)
			s.must(s.Send(iwarptest.ClearLast(iwarptest.Send(1, 1, 2, 3)))) // placed, and never delivered
			s.Expect(recvOff, 1, 2, 3)
			s.ready()
			s.must(s.Send(iwarptest.Write(s.exposedTag, s.exposedTO, 7), iwarptest.ReadRequest(1, readOf(1, 2, 1, s.exposedTag, s.exposedTO))))
			s.Expect(exposedOff, 7)
			s.next(iwarptest.ReadResponse(1, 2, 7)) // so all that has arrived
			s.must(s.QP.Terminate())
			end := iwarptest.Untagged(3, 0, 0, 1, 3, 4)
			s.must(s.Send(iwarptest.Write(s.exposedTag, s.exposedTO, 0xEE), iwarptest.ReadRequest(2, readOf(1, 2, 1, s.exposedTag, s.exposedTO)), end, iwarptest.Send(2, 5), iwarptest.SendInvalidate(3, s.exposedTag, 6)))
			s.answered(iwarptest.Terminate(0, 0, 0, iwarptest.NoHeaders, nil))
			s.must(s.Peer.Close())
			s.Reach(verbs.Error)
			s.Statuses(s.RecvCQ, 100, verbs.Flushed, verbs.Flushed)
			if !s.exposed.Valid() {
				t.Error("an STag was invalidated")
			}
			s.CheckMemory()
			s.serves()
		})
	}
}

// Of several segments with a fault the first is reported, whatever the others are;
// and a segment counts when all of it is there (Verbs §6.4).
//
// Claims: V-6.4-9
func TestTheFirstSegmentWithAFaultIsToldOf(t *testing.T) {
	for _, w := range Wires {
		t.Run(w.Name, func(t *testing.T) {
			faults := func(s *stage) [][]byte {
				return [][]byte{
					iwarptest.Write(s.unknownTag, 1, 1), iwarptest.Write(s.exposedTag, s.exposedEnd, 2), iwarptest.ReadRequest(1, readOf(1, 2, 1, s.foreignTag, s.exposedTO)),
					iwarptest.Send(1, 3), iwarptest.Overwrite(iwarptest.Send(1, 4), 1, 0x4F),
				}
			}
			codes := [][3]byte{{1, 1, 0}, {1, 1, 1}, {0, 1, 3}, {1, 2, 2}, {0, 2, 6}}
			events := []verbs.EventID{verbs.EventProtectionSTag, verbs.EventProtectionBounds, verbs.EventIRRQPD, verbs.EventRQMSNRange, verbs.EventOpcode}
			for first, code := range codes {
				s := setStage(t, w, verbs.QPConfig{})
				s.Peer = s.ln.Connect(s.QP)
				all := faults(s)
				headers := iwarptest.DDPHeader
				if first == 2 {
					headers = iwarptest.ReadHeader
				}
				s.ExpectEvent(events[first])
				s.must(s.Send(append([][]byte{iwarptest.Write(s.exposedTag, s.exposedTO, 7)}, append(all[first:], all[:first]...)...)...))
				s.Expect(exposedOff, 7)
				s.answered(iwarptest.Terminate(code[0], code[1], code[2], headers, all[first]))
				s.must(s.Peer.Close())
				s.Reach(verbs.Error)
				s.CheckMemory()
			}
		})
	}
}

// While a segment with a fault is still arriving, a failure of our own acts at
// once, and is what the peer is told (Verbs §6.4).
//
// Claims: V-6.4-10
func TestAFailureOfOursDoesNotWaitForASegment(t *testing.T) {
	for _, w := range Wires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			s.Peer = s.ln.Connect(s.QP)
			s.open()
			fpdu := s.Frame(iwarptest.Write(s.unknownTag, 1, Fill(100, 0xEE)...))
			s.must(s.SendRaw(fpdu[:len(fpdu)/2]))
			s.Post(verbs.SendWR{ID: 1, Op: verbs.OpSend, SGL: []verbs.SGE{{STag: s.local.STag() ^ 1, Length: 1}}})
			s.next(iwarptest.Terminate(0, 0, 0, iwarptest.NoHeaders, nil))
			s.must(s.SendRaw(fpdu[len(fpdu)/2:]))
			s.answered()
			s.must(s.Peer.Close())
			s.Reach(verbs.Error)
			s.Statuses(s.SendCQ, 1, verbs.InvalidSTag)
			s.serves()
		})
	}
}
