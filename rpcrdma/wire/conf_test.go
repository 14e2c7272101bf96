package wire_test

import (
	"bytes"
	"testing"

	"github.com/weft-rdma/weft/rpcrdma/internal/worked"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// Claims: P-6.2-1 P-6.2-2 P-6.2-3 P-12-6
func TestTheWorkedConfigurationIsReadAndWrittenOctetForOctet(t *testing.T) {
	call := wire.ConfCall{MaxCallSendSize: 4096, MaxReplySendSize: 4096, MaxRDMARead: 16}
	m15 := worked.Unhex(t, worked.Messages[14].Payload)
	var gotCall wire.ConfCall
	if err := gotCall.Parse(m15[40:]); err != nil || gotCall != call {
		t.Errorf("M15: %+v %v, want %+v", gotCall, err, call)
	}
	if got := call.Append(m15[:40:40]); !bytes.Equal(got, m15) {
		t.Errorf("M15: % x, want % x", got, m15)
	}
	if program := worked.Unhex(t, "00018841 00000001 00000001"); !bytes.Equal(m15[12:24], program) || wire.ConfProgram != 0x18841 || wire.ConfVersion != 1 || wire.ConfRDMA != 1 || wire.ConfNull != 0 {
		t.Errorf("program, version, procedure % x, want % x", m15[12:24], program)
	}

	reply := wire.ConfReply{MaxCallSendSize: 4096, Align: 256, MaxRDMARead: 4}
	m16 := worked.Unhex(t, worked.Messages[15].Payload)
	var gotReply wire.ConfReply
	if err := gotReply.Parse(m16[24:]); err != nil || gotReply != reply {
		t.Errorf("M16: %+v %v, want %+v", gotReply, err, reply)
	}
	if got := reply.Append(m16[:24:24]); !bytes.Equal(got, m16) {
		t.Errorf("M16: % x, want % x", got, m16)
	}
}

func TestConfigurationOfWrongSizeIsRefused(t *testing.T) {
	for _, n := range []int{0, 8, 11, 13, 16} {
		call, reply := wire.ConfCall{MaxRDMARead: 9}, wire.ConfReply{MaxRDMARead: 9}
		worked.WantFault(t, call.Parse(make([]byte, n)), wire.FaultStream)
		worked.WantFault(t, reply.Parse(make([]byte, n)), wire.FaultStream)
		if call != (wire.ConfCall{MaxRDMARead: 9}) || reply != (wire.ConfReply{MaxRDMARead: 9}) {
			t.Errorf("%d octets changed %+v, %+v", n, call, reply)
		}
	}
}

// Claims: P-6.2-5 P-6.2-6 P8166-3.3.2-1 P8797-4.2-2
func TestThresholdsAreTheLesserOfWhatIsSentAndTaken(t *testing.T) {
	for _, c := range []struct{ send, receive, want uint32 }{
		{4096, 4096, 4096}, {4096, 2048, 2048}, {2048, 4096, 2048}, {4096, 0, 1024}, {100, 4096, 1024}, {1<<32 - 1, 1<<32 - 2, 1<<32 - 2},
	} {
		call := wire.ConfReply{MaxCallSendSize: c.receive}.CallThreshold(wire.ConfCall{MaxCallSendSize: c.send})
		reply := wire.ConfCall{MaxReplySendSize: c.receive}.ReplyThreshold(c.send)
		private := wire.PrivateData{SendSize: c.send}.Threshold(wire.PrivateData{ReceiveSize: c.receive})
		if call != c.want || reply != c.want || private != c.want {
			t.Errorf("%d sent, %d taken: %d for calls, %d for replies, %d by private data, want %d", c.send, c.receive, call, reply, private, c.want)
		}
	}
}

func FuzzConf(f *testing.F) {
	f.Add(worked.Unhex(f, "00001000 00001000 00000010"))
	f.Add(worked.Unhex(f, "00001000 00000100 00000004 00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var call wire.ConfCall
		var reply wire.ConfReply
		errCall, errReply := call.Parse(b), reply.Parse(b)
		if valid := len(b) == wire.ConfLen; (errCall == nil) != valid || (errReply == nil) != valid {
			t.Fatalf("%d octets: %v, %v", len(b), errCall, errReply)
		}
		if errCall == nil && (!bytes.Equal(call.Append(nil), b) || !bytes.Equal(reply.Append(nil), b)) {
			t.Errorf("% x: %+v, %+v", b, call, reply)
		}
		if n := reply.CallThreshold(call); n < wire.MinThreshold {
			t.Errorf("threshold %d", n)
		}
	})
}
