package wiretest

import (
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// A peer-to-peer stream is accepted when its first message has arrived in order.
// One that is at fault, a Terminate, or the peer's end makes Accept fail, and
// the peer gets the answer that it would get later (RFC 6581 §8, §9.2).
//
// Claims: ME-8-1 ME-9.2-10
func TestAFirstMessageAtFaultIsNoReadyToReceive(t *testing.T) {
	type answer struct {
		layer, etype, code byte
		headers            iwarptest.Headers
		silent             bool // FIN and nothing before it
		event              verbs.EventID
		state              verbs.State
	}
	refused := func(layer, etype, code byte, event verbs.EventID) answer {
		return answer{layer, etype, code, iwarptest.DDPHeader, false, event, verbs.Error}
	}
	for _, tt := range []struct {
		name  string
		first []byte // none: the end
		answer
	}{
		{"a Terminate", terminate(0x20, 7, 0, 0), answer{silent: true, event: verbs.EventTerminateReceived, state: verbs.Error}},
		{"another DDP version", iwarptest.Overwrite(iwarptest.Write(0, 0), 0, 0xC0), refused(1, 1, 4, verbs.EventDDPVersion)},
		{"another RDMAP version", iwarptest.Overwrite(iwarptest.Write(0, 0), 1, 0), refused(0, 2, 5, verbs.EventRDMAVersion)},
		{"a reserved opcode", iwarptest.Tagged(0xC, 0, 0), refused(0, 2, 6, verbs.EventOpcode)},
		{"an STag that is unknown", iwarptest.Write(0, 0, 1), refused(1, 1, 0, verbs.EventProtectionSTag)},
		{"a Read of an unknown STag", iwarptest.ReadRequest(1, iwarptest.Read{Size: 1}), answer{0, 1, 0, iwarptest.ReadHeader, false, verbs.EventIRRQSTag, verbs.Error}},
		{"message 2", iwarptest.Send(2), refused(1, 2, 3, verbs.EventRQMSNRange)},
		{"too short", []byte{0xC1}, answer{1, 0, 0, iwarptest.NoHeaders, false, verbs.EventSegmentSize, verbs.Error}},
		{"the end", nil, answer{silent: true, event: verbs.EventLLPCloseComplete, state: verbs.Idle}},
	} {
		for _, w := range startupWires {
			t.Run(tt.name+"/"+w.Name, func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				accepted := make(chan error, 1)
				go func() {
					req, err := s.ln.Accept(t.Context())
					if err == nil {
						_, err = req.Accept(t.Context(), s.QP, cm.Params{MPA: w.Config()})
					}
					accepted <- err
				}()
				s.Peer = s.ln.Dial()
				startup := w.Startup()
				startup.Enhanced = []byte{0xC0, 4, 0xC0, 4}
				_, err := s.Initiate(startup)
				s.must(err)
				s.ExpectEvent(tt.event)
				if tt.first == nil {
					s.must(s.CloseWrite())
				} else {
					s.must(s.Send(tt.first))
				}
				if tt.silent {
					s.answered()
				} else {
					s.answered(iwarptest.Terminate(tt.layer, tt.etype, tt.code, tt.headers, tt.first))
				}
				s.must(s.Peer.Close())
				if err := nettest.Await(t, accepted); err == nil {
					t.Error("accepted")
				}
				s.Reach(tt.state)
				s.CheckMemory()
				s.serves()
			})
		}
	}
}
