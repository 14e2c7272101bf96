package wiretest

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// A peer may write all that it has to say before it reads. What comes behind its
// mistake is dropped, so that it gets to read the Terminate (RFC 5041 §7.1).
//
// Claims: DDP-7.1-19
func TestATerminateReachesAPeerThatWritesBeforeItReads(t *testing.T) {
	for _, w := range []Wire{Wires[2], {Name: "memory", Memory: true}} {
		t.Run(w.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				buf, mr := s.big(1<<20, verbs.LocalRead)
				s.Peer = s.ln.Connect(s.QP)
				s.open()
				s.Post(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{mr.SGE(0, len(buf))}})
				synctest.Wait() // nothing of ours fits any more
				culprit := iwarptest.Write(s.unknownTag, 0, 1)
				s.must(s.Send(culprit))
				for range 50 { // more than the connection takes unread
					s.must(s.Send(iwarptest.Write(s.exposedTag, s.exposedTO, Fill(40000, 0xEE)...)))
				}
				_, terminate := s.readToTerminate()
				if want := iwarptest.Terminate(1, 1, 0, iwarptest.DDPHeader, culprit); string(terminate) != string(want) {
					t.Errorf("Terminate % x, expected % x", terminate, want)
				}
				s.must(s.Peer.Close())
				s.Reach(verbs.Error)
				s.ExpectEvent(verbs.EventProtectionSTag)
				s.Statuses(s.SendCQ, 0, verbs.Flushed)
				s.serves()
			})
		})
	}
}

// The first message may be a long one that comes in parts: when it is there, what
// the Responder had posted leaves.
//
// Claims: MPA-7.1-7
func TestAResponderSendsWhenALongFirstMessageHasArrived(t *testing.T) {
	for _, w := range Wires[:2] {
		for _, first := range []int{2 + 18, 1000, 20000} { // octets of the first part; 20 are length and header
			t.Run(fmt.Sprintf("%s/%d octets", w.Name, first), func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				s.must(s.QP.PostRecv(verbs.RecvWR{ID: 100, SGL: []verbs.SGE{s.exposed.SGE(0, 60000)}}))
				s.Post(verbs.SendWR{ID: 0, Op: verbs.OpSend})
				s.Peer = s.ln.Connect(s.QP)
				fpdu := s.Frame(iwarptest.Send(1, Fill(60000, 0xEE)...))
				s.must(s.SendRaw(fpdu[:first]))
				s.received(first)
				s.must(s.SendRaw(fpdu[first:]))
				s.Expect(exposedOff, Fill(60000, 0xEE)...)
				s.next(iwarptest.Send(1))
				s.Statuses(s.RecvCQ, 100, verbs.Success)
				s.Statuses(s.SendCQ, 0, verbs.Success)
				s.farewell()
			})
		}
	}
}

// While a message waits for a receive, all that came before it has its effect:
// the Responder may send, and requests are answered.
//
// Claims: MPA-7.1-7 R-5.2.1-11
func TestWhatComesBeforeAMessageThatWaitsForAReceiveIsServed(t *testing.T) {
	for _, w := range Wires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{PauseOnEmptyRQ: true})
			s.Post(verbs.SendWR{ID: 0, Op: verbs.OpSend}) // held until the first message
			s.Peer = s.ln.Connect(s.QP)
			s.must(s.Send(iwarptest.Send(1, 7)))
			s.next(iwarptest.Send(1))
			s.Receives(s.recv, 0, recvSize, 1)
			s.Statuses(s.RecvCQ, 100, verbs.Success)
			s.must(s.Send(iwarptest.ReadRequest(1, readOf(1, 2, 4, s.exposedTag, s.exposedTO)), iwarptest.Send(2, 8)))
			s.next(iwarptest.ReadResponse(1, 2, s.Expected(exposedOff, 4)...))
			s.Receives(s.recv, recvSize, recvSize, 1)
			s.Statuses(s.RecvCQ, 100, verbs.Success)
			s.Expect(recvOff, 7)
			s.Expect(recvOff+recvSize, 8)
			s.Statuses(s.SendCQ, 0, verbs.Success)
			s.farewell()
		})
	}
}
