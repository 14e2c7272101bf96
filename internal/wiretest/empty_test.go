package wiretest

import (
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// An access of no octets needs no memory: STags and offsets are not looked at,
// nor are the rights of the queue pair (RFC 5040 §5.2.1, RFC 5041 §5.2).
//
// Claims: DDP-5.2-9 DDP-5.2-10 DDP-5.2-11 R-5.2.1-14 R-5.2.1-15
// Claims: V-8.1.3.2-4
// Claims: S-6.3.5-3
func TestAccessesOfNoOctetsNeedNoMemory(t *testing.T) {
	for _, w := range Wires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{IRD: 16, NoRemoteRead: true, NoRemoteWrite: true})
			s.Peer = s.ln.Connect(s.QP)
			tags := []uint32{0, 1, 0xFFFFFFFF, s.unknownTag, s.staleKeyTag, s.revokedTag, s.foreignTag, s.siblingTag, s.localTag, s.exposedTag}
			for i, stag := range tags {
				s.must(s.Send(iwarptest.Write(stag, 1<<64-1), iwarptest.ReadRequest(uint32(i)+1, readOf(stag, uint64(i), 0, stag, 1<<64-1))))
			}
			for i, stag := range tags {
				s.next(iwarptest.ReadResponse(stag, uint64(i)))
			}
			nothing := []verbs.SGE{{STag: memory.STag(s.unknownTag), TO: 1<<64 - 1}}
			for id, op := range []verbs.Op{verbs.OpSend, verbs.OpWrite, verbs.OpRead} {
				s.Post(verbs.SendWR{ID: uint64(id), Op: op, SGL: nothing, Remote: verbs.Remote{STag: 5, TO: 6}})
			}
			s.next(iwarptest.Send(1), iwarptest.Write(5, 6), iwarptest.ReadRequest(1, readOf(s.unknownTag, 1<<64-1, 0, 5, 6)))
			s.must(s.Send(iwarptest.ReadResponse(7, 8)))
			s.Statuses(s.SendCQ, 0, verbs.Success, verbs.Success, verbs.Success)
			s.farewell()
		})
	}
}
