package verbs_test

import (
	"encoding/binary"
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// An answer says that the peer has done everything before its question: messages have
// completed, Writes are placed, and answers come in the order of their questions
// (RFC 5040 appendix B, RFC 7306 §7).
//
// Claims: R-B-3 R-B-6 X-7-3 X-7-4 X-7-13 X-7-14
func TestAnAnswerComesAfterAllThatCameBeforeItsQuestion(t *testing.T) {
	for _, message := range []verbs.Op{verbs.OpSend, verbs.OpImmediate} {
		for _, question := range []verbs.Op{verbs.OpRead, verbs.OpFetchAdd, verbs.OpCmpSwap} {
			t.Run(message.String()+", "+question.String(), func(t *testing.T) {
				bubble(t, reads, reads, func(t *testing.T, s *table) {
					const rounds = 16
					s.b.receives(0, rounds, 0)
					for i := range uint64(rounds) {
						binary.NativeEndian.PutUint64(s.a.buf, i)
						ask := s.a.read(3, s.b, 0, 8)
						ask.Op, ask.SGL[0] = question, s.a.mr.SGE(100, 8)
						s.a.post(s.a.write(1, s.b, 0, 8), verbs.SendWR{ID: 2, Op: message, Flags: verbs.Signaled}, ask)
						wantDone(t, s.a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success})
						if got := binary.NativeEndian.Uint64(s.a.buf[100:]); got != i {
							t.Errorf("round %d: the answer says that %d is there", i, got)
						}
						var wcs [2]verbs.WC
						if n := s.b.recvCQ.Poll(wcs[:]); n != 1 || wcs[0].ID != i || wcs[0].Status != verbs.Success {
							t.Fatalf("round %d: with the answer %d messages had completed, the last as %d: %v", i, n, wcs[0].ID, wcs[0].Status)
						}
					}
				})
			})
		}
	}
}

// When a message of Immediate Data completes, the Writes before it are in place, as with a
// Send: together they are a Write with Immediate (RFC 7306 §1, §7).
//
// Claims: X-1-2 X-7-6
func TestImmediateDataTellsThatEarlierWritesArePlaced(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, reads)
		for round := range byte(20) {
			check(t, b.qp.PostRecv(verbs.RecvWR{ID: uint64(round)}))
			const n = 100000
			for i := range n {
				a.buf[i] = round + 1
			}
			a.post(a.write(1, b, 0, n), verbs.SendWR{ID: 2, Op: verbs.OpImmediate, Flags: verbs.Signaled, Immediate: [8]byte{7: round}})
			if wc := wantDone(t, b.recvCQ, done{uint64(round), verbs.Success})[0]; wc.Op != verbs.OpRecvImmediate || wc.Immediate != [8]byte{7: round} {
				t.Errorf("round %d: it completed as %v with % x", round, wc.Op, wc.Immediate)
			}
			for i, x := range b.buf[:n] {
				if x != round+1 {
					t.Fatalf("round %d: octet %d is not in place", round, i)
				}
			}
			wantDone(t, a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success})
		}
	})
}
