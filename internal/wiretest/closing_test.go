package wiretest

import (
	"errors"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// When this side is to close, what the peer had asked for is answered first; when
// the memory for it goes, the close is not graceful, and a Terminate says why.
//
// Claims: R-7.1-1 R-7.1-4
func TestASourceRevokedWhileClosingSpoilsTheClose(t *testing.T) {
	for _, w := range Wires[:3] {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			buf, mr := s.big(32<<20, verbs.LocalRead|verbs.RemoteRead)
			s.Peer = s.ln.Connect(s.QP)
			s.must(s.Send(iwarptest.ReadRequest(1, readOf(7, 0, uint32(len(buf)), uint32(mr.STag()), 0))))
			first, err := s.Next()
			s.must(err)
			closed := make(chan error, 1)
			go func() { closed <- s.QP.Close(t.Context()) }()
			s.must(mr.Deallocate())
			_, _, whole := s.responseToTerminate(first)
			_ = s.Peer.Close() // it may be reset, if a segment had left in part
			s.Reach(verbs.Error)
			if err := nettest.Await(t, closed); err == nil {
				t.Error("Close succeeded")
			}
			if whole && !errors.Is(s.QP.Err(), &rdmap.TerminateError{EType: rdmap.RemoteProtection, Code: rdmap.CodeInvalidSTag}) {
				t.Errorf("the queue pair's error is %v", s.QP.Err())
			}
			s.anyEvent()
			s.serves()
		})
	}
}

// The answer to a large Read is finished before the FIN.
//
// Claims: R-5.2.1-11
func TestACloseWaitsForTheAnswersThatThePeerIsOwed(t *testing.T) {
	for _, w := range Wires[:3] {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			buf, mr := s.big(8<<20, verbs.LocalRead|verbs.RemoteRead)
			s.Peer = s.ln.Connect(s.QP)
			s.must(s.Send(iwarptest.ReadRequest(1, readOf(7, 0, 100, uint32(mr.STag()), 0)), iwarptest.ReadRequest(2, readOf(7, 0, uint32(len(buf)), uint32(mr.STag()), 0))))
			s.next(iwarptest.ReadResponse(7, 0, buf[:100]...)) // so the requests have been delivered
			closed := make(chan error, 1)
			go func() { closed <- s.QP.Close(t.Context()) }()
			m, err := s.NextMessage()
			s.must(err)
			if string(m.Payload) != string(buf) {
				t.Errorf("the answer is %v, or of other octets", m)
			}
			s.ExpectEvent(verbs.EventLLPCloseComplete)
			s.answered()
			s.must(s.CloseWrite())
			if err := nettest.Await(t, closed); err != nil {
				t.Errorf("Close: %v", err)
			}
			s.Reach(verbs.Idle)
		})
	}
}
