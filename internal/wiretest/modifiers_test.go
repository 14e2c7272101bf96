package wiretest

import (
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// A work request may carry what its operation has no use for, and none of that
// is looked at: elements that name nothing, more of them than the queue takes,
// STags, offsets and operands (Verbs §9.3.1.1).
//
// Claims: V-9.3.1.1-2
// Claims: V-9.3.1.1-17 V-9.3.1.1-18 V-8.2.2.2-3
func TestModifiersThatAnOperationDoesNotHaveAreIgnored(t *testing.T) {
	for _, w := range Wires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			s.Peer = s.ln.Connect(s.QP)
			s.open()
			bogus := make([]verbs.SGE, 100)
			for i := range bogus {
				bogus[i] = verbs.SGE{STag: memory.STag(s.unknownTag), TO: 1<<64 - 1, Length: 1 << 31}
			}
			full := verbs.SendWR{
				SGL: bogus, Remote: verbs.Remote{STag: memory.STag(s.unknownTag), TO: 1<<64 - 1}, Invalidate: s.local.STag(),
				Immediate: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}, Atomic: verbs.Atomic{Data: 1, Mask: 2, Compare: 3, CompareMask: 4},
			}
			own := func(op verbs.Op, sgl ...verbs.SGE) verbs.SendWR {
				wr := full
				wr.Op, wr.Flags = op, verbs.LocalFence
				if len(sgl) > 0 {
					wr.SGL = sgl
				}
				return wr
			}
			write := own(verbs.OpWrite, s.exposed.SGE(0, 2))
			write.Remote = verbs.Remote{STag: 7, TO: 8}
			read := own(verbs.OpRead, s.exposed.SGE(0, 1))
			read.Remote = verbs.Remote{STag: 9, TO: 10}
			for i, wr := range []verbs.SendWR{
				own(verbs.OpInvalidate), own(verbs.OpImmediate), own(verbs.OpSend, s.exposed.SGE(0, 2)), own(verbs.OpSendSE, s.exposed.SGE(0, 2)), write, read,
			} {
				wr.ID = uint64(i)
				s.Post(wr)
			}
			sent := s.Expected(exposedOff, 2)
			se := iwarptest.Send(3, sent...)
			se[1] = 0x45
			s.next(iwarptest.Immediate(1, 1, 2, 3, 4, 5, 6, 7, 8), iwarptest.Send(2, sent...), se, iwarptest.Write(7, 8, sent...), iwarptest.ReadRequest(1, readOf(s.exposedTag, s.exposedTO, 1, 9, 10)))
			s.must(s.Send(iwarptest.ReadResponse(s.exposedTag, s.exposedTO, 0xEE)))
			s.Expect(exposedOff, 0xEE)
			s.Statuses(s.SendCQ, 0, make([]verbs.Status, 6)...)
			if s.local.Valid() {
				t.Error("the STag that was to be invalidated is valid")
			}
			s.farewell()
		})
	}
}
