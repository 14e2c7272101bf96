package wiretest

import (
	"bytes"
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// zero is a ULPDU with version 0 of DDP and RDMAP.
func zero(u []byte) []byte { return iwarptest.Overwrite(u, 0, u[0]&^3, u[1]&0x3F) }

// On a stream of the RDMA Consortium all versions are 0, in both directions and
// in Terminates, and RFC 7306 is not known. Versions are never mixed (RFC 5044
// appendix C).
//
// Claims: R-4.1-7 R-7.2-3 X-8.2-3 X-4.1-1 D-6.1-1
// Claims: X-1.1-6
func TestAStreamOfTheConsortiumIsOfVersionZero(t *testing.T) {
	w := Wire{Name: "memory", Memory: true, CRC: true, Markers: true, Consortium: true}
	send := zero(iwarptest.Send(2, 1))
	for name, tt := range map[string]struct {
		culprit            []byte
		layer, etype, code byte
		event              verbs.EventID
	}{
		"DDP version 1":             {iwarptest.Send(2, 1), 1, 2, 6, verbs.EventDDPVersion},
		"DDP version 1, tagged":     {iwarptest.Write(1, 2, 3), 1, 1, 4, verbs.EventDDPVersion},
		"RDMAP version 1":           {iwarptest.Overwrite(send, 1, 0x43), 0, 2, 5, verbs.EventRDMAVersion},
		"Immediate Data":            {zero(iwarptest.Immediate(2, Fill(8, 0)...)), 0, 2, 6, verbs.EventOpcode},
		"an Atomic Request":         {zero(iwarptest.AtomicRequest(2, iwarptest.Atomic{})), 0, 2, 6, verbs.EventOpcode},
		"an Atomic Response":        {zero(iwarptest.AtomicResponse(1, 0, 0)), 0, 2, 6, verbs.EventOpcode},
		"a bad STag on that stream": {zero(iwarptest.Write(0x100, 2, 3)), 1, 1, 0, verbs.EventProtectionSTag},
	} {
		t.Run(name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			s.Receives(s.recv, 0, recvSize, 2)
			s.Peer = s.ln.Connect(s.QP)
			s.must(s.Send(zero(iwarptest.Send(1, 9)), zero(iwarptest.ReadRequest(1, readOf(1, 2, 4, s.exposedTag, s.exposedTO)))))
			s.Expect(recvOff, 9)
			if u, err := s.Next(); err != nil || !bytes.Equal(u, zero(iwarptest.ReadResponse(1, 2, s.Expected(exposedOff, 4)...))) {
				t.Fatalf("answer % x, %v", u, err)
			}
			s.ExpectEvent(tt.event)
			s.must(s.Send(tt.culprit))
			s.answered(zero(iwarptest.Terminate(tt.layer, tt.etype, tt.code, iwarptest.DDPHeader, tt.culprit)))
			s.must(s.Peer.Close())
			s.Reach(verbs.Error)
			s.wantError(tt.layer, tt.etype, tt.code)
			s.Statuses(s.RecvCQ, 100, verbs.Success, verbs.Flushed)
		})
	}
}

// RFC 7306 is of version 1 alone: over a stream of the Consortium its operations
// fail before anything of them is sent.
//
// Claims: X-4.1-1
// Claims: V-9.5.2-3
func TestNoExtensionLeavesOnAStreamOfTheConsortium(t *testing.T) {
	w := Wire{Name: "memory", Memory: true, CRC: true, Markers: true, Consortium: true}
	for _, op := range []verbs.Op{verbs.OpImmediate, verbs.OpImmediateSE, verbs.OpFetchAdd, verbs.OpCmpSwap} {
		t.Run(op.String(), func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			s.Peer = s.ln.Connect(s.QP)
			s.must(s.Send(zero(iwarptest.Write(0, 0))))
			s.ready()
			wr := verbs.SendWR{Op: op}
			if op == verbs.OpFetchAdd || op == verbs.OpCmpSwap {
				wr.SGL = []verbs.SGE{s.exposed.SGE(0, 8)}
			}
			s.Post(wr)
			s.answered(zero(iwarptest.Terminate(0, 0, 0, iwarptest.NoHeaders, nil)))
			s.must(s.Peer.Close())
			s.Reach(verbs.Error)
			s.Statuses(s.SendCQ, 0, verbs.InvalidWQE)
		})
	}
}
