package rdmap

import (
	"bytes"
	"io"
	"testing"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/internal/nettest"
)

// invalidating is a message of no octets that asks for the invalidation of 0xdead.
func invalidating(op Opcode, msn uint32) []byte { return whole(op, msn, []byte("x")) }

// Messages of queue 0 take the posted receives in order, one each, empty ones
// too, and are delivered when the last segment is in place.
//
// Claims: R-5.3-2 R-5.3-5 R-5.3-12 R-5.3-14 R-5.5-10 R-5.5-19 X-6.3-2 X-6.3-3 D-10.3-13 R-4.1-13
func TestMessagesTakeTheReceivesInOrder(t *testing.T) {
	r := newRig(t)
	r.receive(200, 0, 3, 2, 1, 0, 3) // Immediate Data leaves its receive alone, however small
	r.region(0xdead, 0, 8, 0)
	buffers := r.ulp.receives
	sink := r.region(0x11, 0x100, 4, '.')

	r.take(tagged(OpWrite, 0x11, 0x100, true, []byte("data")), untagged(OpSend, 1, 0, false, octets(110)))
	want(t, "told before the last segment", r.ulp.told())
	r.take(untagged(OpSend, 1, 110, true, octets(5)))
	if string(sink.data) != "data" {
		t.Errorf("the Write before the Send left %q", sink.data)
	}
	r.take(
		whole(OpSend, 2, nil),
		whole(OpImmediate, 3, []byte("12345678")),
		whole(OpSendSE, 4, []byte("ab")),
		invalidating(OpSendInvalidate, 5),
		whole(OpImmediateSE, 6, []byte("ABCDEFGH")),
	)
	r.region(0xdead, 0, 8, 0)
	r.take(invalidating(OpSendSEInvalidate, 7))
	want(t, "told", r.ulp.told(),
		"delivered Send 115",
		"delivered Send 0",
		"delivered Immediate Data 8 31 32 33 34 35 36 37 38",
		"delivered Send with SE 2",
		"invalidated 0xdead", "delivered Send with Invalidate 1 without 0xdead",
		"delivered Immediate Data with SE 8 41 42 43 44 45 46 47 48",
		"invalidated 0xdead", "delivered Send with SE and Invalidate 1 without 0xdead",
	)
	if string(buffers[0][:115]) != string(octets(115)) || string(buffers[3]) != "ab" || string(buffers[2]) != string(make([]byte, 3)) {
		t.Errorf("receives hold %q", buffers)
	}
	if n := r.Stats.MessagesIn.Load(); n != 8 {
		t.Errorf("%d messages counted, want 8", n)
	}
}

// A Write is not reported to the ULP. An empty one may name any STag.
//
// Claims: R-5.1-2
// Claims: R-3.2-6 S-2.2.6-1
func TestWritesAreNotDelivered(t *testing.T) {
	r := newRig(t)
	target := r.region(0x11, 0x100, 8, '.')
	r.take(
		tagged(OpWrite, 0x11, 0x101, false, []byte("ab")), tagged(OpWrite, 0x11, 0x103, false, []byte("cd")),
		// Untagged messages may come in between.
		readRequestTo(1, ReadRequest{}),
		tagged(OpWrite, 0x11, 0x105, true, []byte("e")),
		tagged(OpWrite, 0x99, 1<<64-1, true, nil),
	)
	if string(target.data) != ".abcde.." {
		t.Errorf("target %q", target.data)
	}
	want(t, "told", r.ulp.told())
	if in, empty := r.Stats.MessagesIn.Load(), r.Stats.EmptyWrites.Load(); in != 3 || empty != 1 {
		t.Errorf("%d messages counted, %d empty Writes; want 3, 1", in, empty)
	}
}

// The messages that open a peer-to-peer stream complete nothing, take no
// receive and need no IRD.
func TestReadyToReceiveMessageIsTheStreamsOwn(t *testing.T) {
	for _, c := range []struct {
		name string
		rtr  RTR
		in   []byte
		next uint32
		sent []string
	}{
		{"Send", RTRSend, whole(OpSend, 1, nil), 2, nil},
		{"Write", RTRWrite, tagged(OpWrite, 0, 0, true, nil), 1, nil},
		{"Read", RTRRead, readRequestTo(1, ReadRequest{}), 1, []string{"RDMA Read Response 0x0:0x0 0."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, responder, func(cfg *Config, _ *line) { cfg.RTR, cfg.IRD = c.rtr, 0 })
			r.take(c.in)
			nettest.Await(t, r.Ready())
			want(t, "told", r.ulp.told())
			want(t, "sent", r.sent(), c.sent...)
			// The next one like it is the peer's ULP's.
			r.receive(0)
			r.take(whole(OpSend, c.next, nil))
			want(t, "told", r.ulp.told(), "delivered Send 0")
		})
	}
}

// Only the RTR that was negotiated is taken for one.
func TestOrdinaryFirstSendTakesAReceive(t *testing.T) {
	for _, c := range []struct {
		name    string
		options func(*Config, *line)
		in      []byte
	}{
		{"Send was not agreed on", func(c *Config, _ *line) { c.Initiator, c.RTR = false, RTRWrite|RTRRead }, whole(OpSend, 1, nil)},
		{"the responder's", func(c *Config, _ *line) { c.RTR = RTRSend }, whole(OpSend, 1, nil)},
		{"not empty", func(c *Config, _ *line) { c.Initiator, c.RTR = false, RTRSend }, whole(OpSend, 1, octets(1))},
		{"with SE", func(c *Config, _ *line) { c.Initiator, c.RTR = false, RTRSend }, whole(OpSendSE, 1, nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := codeOf(t, newRig(t, c.options).feed(c.in)); got != "1/2/02" {
				t.Errorf("code %s without a receive, want 1/2/02", got)
			}
		})
	}
}

// bent returns u with octet at changed to b.
func bent(u []byte, at int, b byte) []byte {
	u[at] = b
	return u
}

// Every message that RDMAP refuses ends the stream with its code, and the Terminate
// reports the segment.
//
// Claims: R-7.1-3 R-7.2-1 R-7.2-2 R-7.2-3 R-7.2-4 R-7.2-5 R-5.3-15 D-7.3-1 D-10.3-9 X-6.3-7 X-8.2-1 X-8.2-2 X-8.2-3 D-6.1-1
func TestBadMessagesEndTheStreamWithTheirCode(t *testing.T) {
	shared := func(f ddp.Fault) func(*rig) {
		return func(r *rig) { r.receive(8); r.region(0xdead, 0, 8, 0).fault = f }
	}
	one := func(r *rig) { r.receive(8); r.region(0x11, 0x100, 8, 0) }
	readOn := func(r *rig) {
		one(r)
		op := readOf(1)
		op.SinkTO += 2
		r.send(op)
	}
	for _, c := range []struct {
		name string
		code string
		with func(*rig)
		in   [][]byte
	}{
		{"RDMAP version 0, untagged", "0/2/05", one, [][]byte{bent(whole(OpSend, 1, nil), 1, 0x03)}},
		{"RDMAP version 2, tagged", "0/2/05", one, [][]byte{bent(tagged(OpWrite, 0x11, 0x100, true, octets(1)), 1, 0x80)}},
		{"RDMAP version 3, atomic", "0/2/05", one, [][]byte{bent(adds(1, 1), 1, 0xca)}},
		{"DDP version, tagged", "1/1/04", one, [][]byte{bent(tagged(OpWrite, 0x11, 0x100, true, octets(1)), 0, 0xc0)}},
		{"DDP version, untagged", "1/2/06", one, [][]byte{bent(whole(OpSend, 1, nil), 0, 0x42)}},
		{"opcode C, untagged", "0/2/06", one, [][]byte{bent(whole(OpSend, 1, nil), 1, 0x4c)}},
		{"opcode F, tagged", "0/2/06", one, [][]byte{bent(tagged(OpWrite, 0x11, 0x100, true, nil), 1, 0x4f)}},
		{"Send, tagged", "0/2/06", one, [][]byte{tagged(OpSend, 0x11, 0x100, true, octets(1))}},
		{"Write, untagged", "0/2/06", one, [][]byte{whole(OpWrite, 1, octets(1))}},
		{"Send on queue 1", "0/2/06", one, [][]byte{bent(whole(OpSend, 1, nil), 9, 1)}},
		{"Read Request on queue 0", "0/2/06", one, [][]byte{bent(asks(1, 1), 9, 0)}},
		{"Terminate on queue 0", "0/2/06", one, [][]byte{bent(whole(OpTerminate, 1, octets(4)), 9, 0)}},
		{"Atomic Request on queue 3", "0/2/06", one, [][]byte{bent(adds(1, 1), 9, 3)}},
		{"Immediate Data on queue 1", "0/2/06", one, [][]byte{bent(whole(OpImmediate, 1, octets(8)), 9, 1)}},
		{"queue 4", "1/2/01", one, [][]byte{bent(whole(OpSend, 1, nil), 9, 4)}},
		{"MSN 2 before 1", "1/2/03", one, [][]byte{whole(OpSend, 2, nil)}},
		{"MO in the middle", "1/2/04", one, [][]byte{untagged(OpSend, 1, 1, true, octets(1))}},
		{"no receive", "1/2/02", func(*rig) {}, [][]byte{whole(OpSend, 1, nil)}},
		{"no receive for Immediate Data", "1/2/02", func(*rig) {}, [][]byte{whole(OpImmediate, 1, octets(8))}},
		{"longer than the receive", "1/2/05", one, [][]byte{whole(OpSend, 1, octets(9))}},
		{"Write to no STag", "1/1/00", one, [][]byte{tagged(OpWrite, 0x12, 0x100, true, octets(1))}},
		{"Write out of bounds", "1/1/01", one, [][]byte{tagged(OpWrite, 0x11, 0x108, true, octets(1))}},

		{"another tagged message in between", "0/2/07", one, [][]byte{
			tagged(OpWrite, 0x11, 0x100, false, octets(2)), tagged(OpWrite, 0x11, 0x104, true, octets(2))}},
		{"another STag in between", "0/2/07", one, [][]byte{
			tagged(OpWrite, 0x11, 0x100, false, octets(2)), tagged(OpWrite, 0x12, 0x102, true, octets(2))}},
		{"Read Response in a Write", "0/2/07", readOn, [][]byte{
			tagged(OpWrite, 0x11, 0x100, false, octets(2)), tagged(OpReadResponse, 0x11, 0x102, true, octets(1))}},
		{"another type of Send in between", "0/2/07", one, [][]byte{
			untagged(OpSend, 1, 0, false, octets(2)), untagged(OpSendSE, 1, 2, true, octets(2))}},
		{"Immediate Data in a Send", "0/2/07", one, [][]byte{
			untagged(OpSend, 1, 0, false, nil), whole(OpImmediate, 1, octets(8))}},

		{"Read Request, short", "0/2/FF", one, [][]byte{whole(OpReadRequest, 1, octets(27))}},
		{"Read Request, long", "0/2/FF", one, [][]byte{whole(OpReadRequest, 1, octets(29))}},
		{"Read Request, empty", "0/2/FF", one, [][]byte{whole(OpReadRequest, 1, nil)}},
		{"Read Request, goes on", "0/2/07", one, [][]byte{untagged(OpReadRequest, 1, 0, false, octets(28))}},
		{"Read Request, in its middle", "1/2/04", one, [][]byte{untagged(OpReadRequest, 1, 28, true, octets(28))}},
		{"Atomic Request, short", "0/2/FF", one, [][]byte{whole(OpAtomicRequest, 1, octets(51))}},
		{"Atomic Request, long", "0/2/FF", one, [][]byte{whole(OpAtomicRequest, 1, octets(53))}},
		{"Immediate Data, short", "0/2/FF", one, [][]byte{whole(OpImmediate, 1, octets(7))}},
		{"Immediate Data, long", "0/2/FF", one, [][]byte{whole(OpImmediateSE, 1, octets(9))}},
		{"Immediate Data, goes on", "0/2/07", one, [][]byte{untagged(OpImmediate, 1, 0, false, octets(8))}},

		{"Invalidate of no STag", "0/1/00", one, [][]byte{invalidating(OpSendInvalidate, 1)}},
		{"Invalidate without rights", "0/1/02", shared(ddp.FaultAccess), [][]byte{invalidating(OpSendInvalidate, 1)}},
		{"Invalidate of a foreign STag", "0/1/09", shared(ddp.FaultAssociation), [][]byte{invalidating(OpSendSEInvalidate, 1)}},
		{"Invalidate of what may not be", "0/1/09", shared(ddp.FaultBounds), [][]byte{invalidating(OpSendInvalidate, 1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			c.with(r)
			err := r.feed(c.in...)
			r.Terminate(err)
			r.Kick()
			m := r.terminated()
			if got := code(m.Layer, m.EType, m.Code); got != c.code {
				t.Errorf("code %s, want %s: %v", got, c.code, err)
			}
			last := c.in[len(c.in)-1]
			header := last[:ddp.HeaderLen(last)]
			if at, ok := err.(interface{ Header() []byte }); !ok || !bytes.Equal(at.Header(), header) {
				t.Errorf("%v does not know the segment at fault", err)
			}
			if !m.M || int(m.SegmentLength) != len(last) || string(m.DDPHeader) != string(header) || m.R {
				t.Errorf("the Terminate reports %d octets with header % x, want %d and % x", m.SegmentLength, m.DDPHeader, len(last), header)
			}
			switch refused := c.code[:3] == "0/1"; {
			case refused:
				want(t, "told", r.ulp.told(), "refused") // the receive, and no delivery
			default:
				want(t, "told", r.ulp.told())
			}
		})
	}
}

// What the RDMA Consortium's version does not know is not taken on its streams.
func TestExtensionsAreUnknownToTheConsortiumsVersion(t *testing.T) {
	old := func(_ *Config, l *line) { l.version = 0 }
	for _, u := range [][]byte{whole(OpImmediate, 1, octets(8)), adds(1, 1)} {
		u[0] &^= 3 // DV
		u[1] &= 15 // RV
		r := newRig(t, old)
		r.receive(8)
		if got := codeOf(t, r.feed(u)); got != "0/2/06" {
			t.Errorf("%s: code %s, want 0/2/06", Opcode(u[1]), got)
		}
	}
	r := newRig(t, old)
	r.receive(1)
	r.take(bent(bent(whole(OpSend, 1, octets(1)), 0, 0x40), 1, 0x03))
	want(t, "told", r.ulp.told(), "delivered Send 1")
	if u := bent(bent(whole(OpSend, 2, nil), 0, 0x40), 1, 0x43); codeOf(t, r.feed(u)) != "0/2/05" {
		t.Error("the IETF's version was taken on a stream of the Consortium's")
	}
}

// Reserved bits and an Invalidate STag where there is none to be are ignored.
//
// Claims: R-4.1-10 X-4.1-2 X-4.1-3
func TestReservedBitsAreIgnored(t *testing.T) {
	r := newRig(t)
	r.receive(0, 8)
	r.region(0xdead, 0, 8, 0)
	r.take(bent(whole(OpSend, 1, nil), 1, 0x73), bent(whole(OpImmediate, 2, make([]byte, 8)), 1, 0x78))
	want(t, "told", r.ulp.told(), "delivered Send 0", "delivered Immediate Data 8 00 00 00 00 00 00 00 00")
}

// An error of the ULP's own memory is returned unchanged, with the segment.
func TestReceiveWhoseMemoryIsGoneEndsTheStream(t *testing.T) {
	r := newRig(t)
	r.receive(8)
	r.ulp.scatters = errLocal
	if err := r.feed(whole(OpSend, 1, octets(1))); err != errLocal {
		t.Errorf("the reception ended with %v, want %v", err, errLocal)
	}
}

// The peer's end is no error between messages, and one within a message.
func TestEndWithinAMessageIsAnError(t *testing.T) {
	for _, c := range []struct {
		name string
		in   [][]byte
		want error
	}{
		{"nothing", nil, io.EOF},
		{"between messages", [][]byte{whole(OpSend, 1, octets(8)), tagged(OpWrite, 0, 0, true, nil)}, io.EOF},
		{"in a Send", [][]byte{untagged(OpSend, 1, 0, false, octets(7))}, ErrUnfinished},
		{"in an empty Send", [][]byte{untagged(OpSend, 1, 0, false, nil)}, ErrUnfinished},
		{"in a Write", [][]byte{tagged(OpWrite, 0x11, 0x100, false, octets(8))}, ErrUnfinished},
		{"in a Terminate", [][]byte{untagged(OpTerminate, 1, 0, false, octets(4))}, ErrUnfinished},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.receive(8)
			r.region(0x11, 0x100, 8, 0)
			r.line.end = io.EOF
			if err := r.feed(c.in...); err != c.want {
				t.Errorf("the reception ended with %v, want %v", err, c.want)
			}
		})
	}
}

// While the LLP reads straight into memory nothing is sent, whatever there is to
// send: a write that failed would have the connection closed from within its own
// read. What is to be sent is not forgotten.
func TestNothingIsSentFromWithinARead(t *testing.T) {
	r := newRig(t, responder)
	r.receive(60000)
	r.post(sendOf(1)) // its poster has not kicked yet
	message := whole(OpSend, 1, octets(60000))
	in := r.in.receiver
	skip, ok, err := in.Begin(message[:ddp.UntaggedLen], len(message))
	if err != nil || !ok {
		t.Fatalf("Begin: %v, %v", ok, err)
	}
	for off := skip; off < len(message); off += 20000 {
		if _, err := in.Window(nil, off); err != nil {
			t.Fatal(err)
		}
		in.Release()
	}
	want(t, "sent within the read", r.sent())
	if err := in.End(); err != nil {
		t.Fatal(err)
	}
	want(t, "sent within the delivery", r.sent())
	in.Idle()
	want(t, "sent", r.sent(), "Send 0#1+0 1.")
	want(t, "told", r.ulp.told(), "delivered Send 60000", "sent 1")
}

// What the peer has sent is confirmed by the answer to a Read or an atomic behind it.
func TestWhatThePeerSendsIsUnconfirmedUntilAnAnswer(t *testing.T) {
	r := newRig(t)
	wantIs := func(want bool, what string) {
		t.Helper()
		if got := r.Unconfirmed(); got != want {
			t.Errorf("%s: unconfirmed is %v", what, got)
		}
	}
	r.receive(8, 8)
	r.region(0x11, 0, 8, 0)
	r.region(0x44, 16, 8, 5)
	wantIs(false, "at first")
	r.take(tagged(OpWrite, 0x11, 0, true, []byte("data")))
	wantIs(true, "a Write")
	r.take(asks(1, 0))
	wantIs(false, "the answer to a Read")
	r.take(whole(OpSend, 1, []byte("x")))
	wantIs(true, "a Send")
	r.take(adds(2, 1))
	wantIs(false, "the answer to an atomic")
	r.take(whole(OpImmediate, 2, []byte("12345678")))
	wantIs(true, "Immediate Data")
	r.take(asks(3, 0), tagged(OpWrite, 0x11, 0, true, nil))
	wantIs(true, "a Write behind a Read")
}
