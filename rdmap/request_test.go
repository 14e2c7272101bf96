package rdmap

import (
	"slices"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
)

// Operations that most tests send.

func sendOf(n uint32) Operation { return Operation{Opcode: OpSend, Length: n} }

func writeOf(n uint32) Operation {
	return Operation{Opcode: OpWrite, Length: n, RemoteSTag: 0x22, RemoteTO: 0x1000}
}

func readOf(n uint32) Operation {
	return Operation{Opcode: OpReadRequest, Length: n, RemoteSTag: 0x33, RemoteTO: 8, SinkSTag: 0x11, SinkTO: 0x100}
}

func fetchAdd() Operation {
	return Operation{Opcode: OpAtomicRequest, RemoteSTag: 0x44, RemoteTO: 16, Atomic: AtomicRequest{Data: 1}}
}

func immediateOf(b byte) Operation {
	return Operation{Opcode: OpImmediate, Immediate: [8]byte{b}}
}

func fenced(op Operation) Operation { op.Fence = true; return op }

// Every operation goes out in the order in which it was posted, one message
// each, on its queue with the queue's next MSN, whole before the next begins,
// and completes in that order when it has left.
//
// Claims: R-3.1-1 R-4.1-5 R-4.1-6 R-5.1-1 R-5.1-5 R-5.1-7 R-5.2-1 R-5.2.1-1 R-5.2.1-6 R-5.2.1-7 R-5.2.1-9 R-5.3-1 R-5.3-9 R-5.3-10
// Claims: R-5.3-13 R-5.5-16 R-6.1-2 X-5.2-1 X-5.2.1-13 X-5.2.1-18 X-5.2.1-19 X-6.3-1 X-6.3-4 X-6.3-5 X-6.3-6 DDP-5.3-1
// Claims: R-1.1-5
func TestOperationsLeaveInTheOrderPosted(t *testing.T) {
	r := newRig(t)
	r.send(
		sendOf(3),
		writeOf(200),
		readOf(500),
		Operation{Opcode: OpSendInvalidate, Length: 1, InvalidateSTag: 0xbeef},
		fetchAdd(),
		Operation{Opcode: OpSendSE},
		immediateOf(1),
		writeOf(0),
		Operation{Opcode: OpImmediateSE},
		Operation{Opcode: OpSendSEInvalidate, Length: 111, InvalidateSTag: 0xcafe},
		readOf(0),
	)
	want(t, "sent", r.sent(),
		"Send 0#1+0 3.",
		"RDMA Write 0x22:0x1000 114...", "RDMA Write 0x22:0x1072 86.",
		"RDMA Read Request 1#1+0 28.",
		"Send with Invalidate 0#2+0 without 0xbeef 1.",
		"Atomic Request 1#2+0 52.",
		"Send with SE 0#3+0 0.",
		"Immediate Data 0#4+0 8.",
		"RDMA Write 0x22:0x1000 0.",
		"Immediate Data with SE 0#5+0 8.",
		"Send with SE and Invalidate 0#6+0 without 0xcafe 110...", "Send with SE and Invalidate 0#6+110 without 0xcafe 1.",
		"RDMA Read Request 1#3+0 28.",
	)
	want(t, "told", r.ulp.told(), "sent 10")
	if n := r.Stats.MessagesOut.Load(); n != 11 || !r.idle() {
		t.Errorf("%d messages counted, idle %v; want 11, idle", n, r.idle())
	}
}

// The message has the fields of its operation.
//
// Claims: R-3.1-8 X-5.2.1-2 X-5.2.1-12
func TestRequestsCarryWhatTheOperationSays(t *testing.T) {
	r := newRig(t)
	op := fetchAdd()
	op.Atomic = AtomicRequest{AOpCode: AOpCmpSwap, ID: 99, STag: 99, TO: 99, Data: 1, Mask: 2, Compare: 3, CompareMask: 4}
	r.send(readOf(500), op, Operation{Opcode: OpImmediate, Immediate: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}}, sendOf(2))

	var read ReadRequest
	if err := read.Parse(r.line.written[0].payload); err != nil || read != (ReadRequest{0x11, 0x100, 500, 0x33, 8}) {
		t.Errorf("Read Request %+v, %v", read, err)
	}
	var a AtomicRequest
	if err := a.Parse(r.line.written[1].payload); err != nil || a != (AtomicRequest{AOpCmpSwap, 2, 0x44, 16, 1, 2, 3, 4}) {
		t.Errorf("Atomic Request %+v, %v", a, err)
	}
	if got := string(r.line.written[2].payload); got != "\x01\x02\x03\x04\x05\x06\x07\x08" {
		t.Errorf("Immediate Data % x", got)
	}
	if got := string(r.line.written[3].payload); got != "44" {
		t.Errorf("payload %q", got)
	}
}

// Claims: R-6.1-6 R-6.1-8 S-6.4.3.3-2
func TestQueueStallsAtORDAndGoesOnWithTheAnswer(t *testing.T) {
	r := newRig(t, func(c *Config, _ *line) { c.ORD = 2 })
	r.region(0x11, 0x100, 4, 0)
	r.send(readOf(4), fetchAdd(), sendOf(0), readOf(4), sendOf(0))
	want(t, "sent", r.sent(), "RDMA Read Request 1#1+0 28.", "Atomic Request 1#2+0 52.", "Send 0#1+0 0.")
	r.Kick()
	want(t, "sent with ORD outstanding", r.sent())

	r.take(tagged(OpReadResponse, 0x11, 0x100, true, octets(4)))
	want(t, "sent after an answer", r.sent(), "RDMA Read Request 1#3+0 28.", "Send 0#2+0 0.")
	want(t, "told", r.ulp.told(), "sent 3", "responded 1 0x0", "sent 5")
	if len(r.ended) > 0 {
		t.Errorf("ended with %v", r.ended)
	}
}

// As many requests as were negotiated are outstanding at a time, Reads and atomics in any
// mixture, and all complete.
//
// Claims: R-6.1-6 R-5.2.2-4 R-5.5-11 R-5.5-25 X-5.2.2-8 X-5.2.2-9
func TestAllOfORDIsUsable(t *testing.T) {
	r := newRig(t, func(c *Config, _ *line) { c.ORD = 5 })
	r.region(0x11, 0x100, 4, 0)
	for range 3 { // the ring wraps
		base := uint32(len(r.ulp.payload))
		r.send(readOf(4), fetchAdd(), fetchAdd(), readOf(0), fetchAdd())
		if n := len(r.sent()); n != 5 {
			t.Fatalf("%d requests left, want 5", n)
		}
		atomics := base / 5 * 3
		r.take(
			tagged(OpReadResponse, 0x11, 0x100, true, octets(4)),
			atomicResponse(atomics+1, base+2, 20), atomicResponse(atomics+2, base+3, 21),
			tagged(OpReadResponse, 0, 0, true, nil),
			atomicResponse(atomics+3, base+5, 22),
		)
	}
	want(t, "told", r.ulp.told(),
		"responded 1 0x0", "responded 2 0x14", "responded 3 0x15", "responded 4 0x0", "responded 5 0x16",
		"responded 6 0x0", "responded 7 0x14", "responded 8 0x15", "responded 9 0x0", "responded 10 0x16",
		"responded 11 0x0", "responded 12 0x14", "responded 13 0x15", "responded 14 0x0", "responded 15 0x16",
	)
}

// Claims: R-5.5-15
func TestFenceWaitsForEveryAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		behind Operation
		line   string
	}{
		{"Send", sendOf(1), "Send 0#1+0 1."},
		{"Write", writeOf(1), "RDMA Write 0x22:0x1000 1."},
		{"Read", readOf(1), "RDMA Read Request 1#3+0 28."},
		{"atomic", fetchAdd(), "Atomic Request 1#3+0 52."},
		{"Immediate Data", immediateOf(1), "Immediate Data 0#1+0 8."},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.region(0x11, 0x100, 4, 0)
			r.send(readOf(4), fetchAdd(), fenced(c.behind))
			r.sent()
			r.take(tagged(OpReadResponse, 0x11, 0x100, false, octets(3)))
			r.take(tagged(OpReadResponse, 0x11, 0x103, true, octets(1)))
			want(t, "sent with an atomic outstanding", r.sent())
			r.take(atomicResponse(1, 2, 0))
			want(t, "sent with all answered", r.sent(), c.line)
		})
	}
	t.Run("an answer that is being reported to the ULP", func(t *testing.T) {
		r := newRig(t)
		r.send(fetchAdd(), fenced(sendOf(1)))
		r.sent()
		r.ulp.respond = func() {
			r.Kick() // as a consumer's post would, at that moment
			want(t, "sent before the value is in place", r.sent())
		}
		r.take(atomicResponse(1, 1, 0))
		want(t, "sent with all answered", r.sent(), "Send 0#1+0 1.")
	})
	t.Run("nothing outstanding", func(t *testing.T) {
		r := newRig(t)
		r.send(sendOf(1), fenced(sendOf(2)))
		want(t, "sent", r.sent(), "Send 0#1+0 1.", "Send 0#2+0 2.")
	})
}

// The initiator of a peer-to-peer stream opens it with an empty message of the
// kind agreed on, before all else, which completes nothing.
//
// Claims: ME-5-2 ME-9.2-9
func TestReadyToReceiveMessageComesFirst(t *testing.T) {
	for _, c := range []struct {
		name string
		rtr  RTR
		line string
		send string
	}{
		{"Send", RTRSend, "Send 0#1+0 0.", "Send 0#2+0 1."},
		{"Write", RTRWrite, "RDMA Write 0x0:0x0 0.", "Send 0#1+0 1."},
		{"Read", RTRRead, "RDMA Read Request 1#1+0 28.", "Send 0#1+0 1."},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, func(cfg *Config, _ *line) { cfg.RTR, cfg.ORD = c.rtr, 0 })
			r.send(sendOf(1))
			if c.rtr == RTRRead {
				if p := r.line.written[0].payload; string(p) != string(make([]byte, 28)) {
					t.Errorf("the Read asks % x, want nothing", p)
				}
			}
			want(t, "sent", r.sent(), c.line, c.send)
			if c.rtr == RTRRead {
				r.take(tagged(OpReadResponse, 0, 0, true, nil))
			}
			want(t, "told", r.ulp.told(), "sent 1")
			r.send(sendOf(1))
			if n := len(r.sent()); n != 1 {
				t.Errorf("%d segments later, want 1: the message is sent once", n)
			}
		})
	}
}

func TestReadThatOpensTheStreamCountsAgainstORD(t *testing.T) {
	r := newRig(t, func(c *Config, _ *line) { c.RTR, c.ORD = RTRRead, 1 })
	r.send(readOf(0))
	want(t, "sent", r.sent(), "RDMA Read Request 1#1+0 28.")
	r.take(tagged(OpReadResponse, 0, 0, true, nil))
	want(t, "sent after its answer", r.sent(), "RDMA Read Request 1#2+0 28.")
}

// Whoever opens the stream is the initiator.
func TestResponderSendsNoReadyToReceiveMessage(t *testing.T) {
	r := newRig(t, responder, func(c *Config, _ *line) { c.RTR = RTRSend | RTRWrite | RTRRead })
	r.Kick()
	want(t, "sent", r.sent())
}

// The responder holds its messages until the peer's first one, of any kind, has arrived.
func TestResponderWaitsForTheFirstMessage(t *testing.T) {
	r := newRig(t, responder, func(_ *Config, l *line) { l.fenced = true })
	r.send(sendOf(1))
	want(t, "sent", r.sent())
	if !r.idle() {
		t.Error("the outgoing half is not idle")
	}
	select {
	case <-r.Ready():
		t.Error("Ready before anything arrived")
	default:
	}
	r.line.fenced = false // MPA saw a good FPDU
	r.take(tagged(OpWrite, 0, 0, true, nil))
	nettest.Await(t, r.Ready())
	want(t, "sent", r.sent(), "Send 0#1+0 1.")
}

// What is not yet cut into segments follows a change of the MULPDU.
//
// Claims: DDP-3-1 DDP-5.2-1
func TestSegmentsFollowTheMULPDU(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.mulpdu, l.room = 1014, 1 })
	r.line.flush = func() { r.line.mulpdu = 214 }
	r.send(writeOf(1300))
	r.writer()
	want(t, "sent", r.sent(),
		"RDMA Write 0x22:0x1000 1000...", "RDMA Write 0x22:0x13e8 200...", "RDMA Write 0x22:0x14b0 100.")
}

// Every segment says the stream's version, DDP's and RDMAP's.
//
// Claims: R-4.1-7 D-6.1-1 X-4.1-1
func TestSegmentsSayTheStreamsVersion(t *testing.T) {
	for version, octets := range map[uint8][2]uint8{VersionConsortium: {0, 0}, VersionIETF: {1, 0x40}} {
		r := newRig(t, func(_ *Config, l *line) { l.version = version })
		r.send(sendOf(1), writeOf(1), readOf(1), fetchAdd(), immediateOf(1))
		r.Terminate(nil)
		r.Kick()
		for _, s := range r.line.written {
			if s.header[0]&3 != octets[0] || s.header[1]&0xf0 != octets[1] {
				t.Errorf("version %d: %s begins with % x", version, describe(&s), s.header[:2])
			}
		}
		if n := len(r.sent()); n != 6 {
			t.Errorf("%d segments were sent, want 6", n)
		}
	}
}

// A nudge is an empty Write that completes no work request. It is not sent in the middle
// of a message.
func TestANudgeIsAnEmptyWriteThatCompletesNothing(t *testing.T) {
	opened := 0
	r := newRig(t, func(c *Config, l *line) {
		c.Opened = func() { opened++ }
		l.takes, l.room = 0, 1 // stuck within the message
	})
	r.send(sendOf(200))
	r.Nudge()
	r.Nudge()
	if opened != 0 {
		t.Error("opened before anything left")
	}
	r.line.takes = -1
	r.writer()
	want(t, "sent", r.sent(), "Send 0#1+0 110...", "Send 0#1+110 90.", "RDMA Write 0x0:0x0 0.")
	r.Nudge()
	r.send(sendOf(1))
	want(t, "sent then", r.sent(), "RDMA Write 0x0:0x0 0.", "Send 0#2+0 1.")
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}
	for _, end := range []func(){r.Close, r.Abandon} {
		end()
		r.Nudge()
		want(t, "sent at the end", r.sent())
	}
}

// A signature is in what names no memory, and in nothing else.
func TestASignatureIsInEmptyWritesAlone(t *testing.T) {
	for _, rtr := range []RTR{0, RTRWrite, RTRRead, RTRSend} {
		var heard []Signature
		r := newRig(t, func(c *Config, _ *line) {
			c.RTR = rtr
			c.Signature = Signature{STag: 0x57, TO: 0x7306}
			c.Signed = func(s Signature) bool {
				heard = append(heard, s)
				return s.TO == 0x99
			}
		})
		r.Kick()
		opening := map[RTR]string{RTRWrite: "RDMA Write 0x57:0x7306 0.", RTRRead: "RDMA Read Request 1#1+0 28.", RTRSend: "Send 0#1+0 0."}[rtr]
		if got := r.sent(); len(got) > 0 && got[0] != opening || len(got) == 0 && rtr != 0 {
			t.Errorf("RTR %v is %q, expected %q", rtr, got, opening)
		}
		target := r.region(0x11, 0x100, 8, '.')
		r.take(
			tagged(OpWrite, 0x11, 0x100, false, []byte("ab")), tagged(OpWrite, 1, 2, true, nil), // the end of a message
			tagged(OpWrite, 1, 2, true, nil),
		)
		want(t, "in return for another", r.sent())
		r.take(tagged(OpWrite, 0x11, 0x99, true, nil))
		want(t, "in return", r.sent(), "RDMA Write 0x57:0x7306 0.")
		if !slices.Equal(heard, []Signature{{1, 2}, {0x11, 0x99}}) || string(target.data[:2]) != "ab" {
			t.Errorf("heard of %v", heard)
		}
	}
}

// Heard reports that any segment of the peer has arrived, even one that is refused.
func TestHeardIsWhatHasArrived(t *testing.T) {
	r := newRig(t)
	if r.Heard() {
		t.Error("heard of the peer before anything arrived")
	}
	_ = r.feed(tagged(OpAtomicRequest, 0, 0, true, nil))
	if !r.Heard() {
		t.Error("nothing was heard of the peer")
	}
}
