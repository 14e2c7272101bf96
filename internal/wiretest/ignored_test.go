package wiretest

import (
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// From its own Terminate on a queue pair takes nothing more from the peer, in
// order though it be: nothing is placed, answered or delivered (Verbs §6.2.3, §6.4).
//
// Claims: V-6.2.3-1 V-6.4-4
func TestWhatComesBehindOurTerminateIsIgnored(t *testing.T) {
	for _, w := range Wires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			s.Receives(s.recv, 0, recvSize, 2)
			s.Peer = s.ln.Connect(s.QP)
			s.must(s.Send(More(Send(1, 1, 2, 3)))) // placed, and never delivered
			s.Expect(recvOff, 1, 2, 3)
			<-s.QP.Ready()
			s.must(s.Send(Write(s.exposedTag, s.exposedTO, 7), ReadRequest(1, Read{1, 2, 1, s.exposedTag, s.exposedTO})))
			s.Expect(exposedOff, 7)
			s.next(ReadResponse(1, 2, 7)) // so all that has arrived
			s.must(s.QP.Terminate())
			end := Untagged(3, 0, 0, 1, 3, 4)
			s.must(s.Send(Write(s.exposedTag, s.exposedTO, 0xEE), ReadRequest(2, Read{1, 2, 1, s.exposedTag, s.exposedTO}), end, Send(2, 5), SendInvalidate(3, s.exposedTag, 6)))
			s.answered(TerminateOf(0, 0, 0, NoHeaders, nil))
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
