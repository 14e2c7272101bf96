package rdmap

import (
	"errors"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
)

// ORD may change while requests are outstanding. There are never more on the wire than the
// new number, and requests that wait go out when it grows.
func TestORDChangesUnderOutstandingReads(t *testing.T) {
	r := newRig(t, func(c *Config, _ *line) { c.ORD = 2 })
	r.region(0x11, 0x100, 4, 0)
	r.send(readOf(4), readOf(4), readOf(4), readOf(4), readOf(4), sendOf(0))
	want(t, "sent with ORD 2", r.sent(), "RDMA Read Request 1#1+0 28.", "RDMA Read Request 1#2+0 28.")
	r.SetORD(3)
	r.Kick()
	want(t, "sent with ORD 3", r.sent(), "RDMA Read Request 1#3+0 28.")
	r.SetORD(1)
	answer := tagged(OpReadResponse, 0x11, 0x100, true, octets(4))
	r.take(answer, answer)
	want(t, "sent with one of ORD 1 outstanding", r.sent())
	r.take(answer)
	want(t, "sent with none outstanding", r.sent(), "RDMA Read Request 1#4+0 28.")
	if n := r.ORD(); n != 1 {
		t.Errorf("ORD is %d, expected 1", n)
	}
}

// A Read that waits when ORD becomes 0 fails, as it would wait forever.
func TestAReadThatWaitsForAnORDOf0Fails(t *testing.T) {
	r := newRig(t, func(c *Config, _ *line) { c.ORD = 1 })
	r.send(readOf(4), readOf(4), sendOf(0))
	r.sent()
	r.SetORD(0)
	r.Kick()
	want(t, "told", r.ulp.told(), "failed 2")
	if !errors.Is(r.ulp.failed, ErrNoORD) {
		t.Errorf("it failed with %v, expected ErrNoORD", r.ulp.failed)
	}
}

// The peer may have as many requests outstanding as IRD allows now. Requests that arrived
// before it shrank are answered.
func TestIRDChangesUnderRequests(t *testing.T) {
	r := newRig(t, func(c *Config, _ *line) { c.IRD = 1 })
	r.region(0x11, 0, 8, 'r')
	ask := func(msn uint32) []byte { return readRequestTo(msn, ReadRequest{SourceSTag: 0x11, Size: 1}) }
	r.line.fenced = true // nothing leaves, so that requests pile up
	r.SetIRD(3)
	r.take(ask(1), ask(2), ask(3))
	answered := r.Answered()
	r.SetIRD(2)
	r.line.fenced = false
	r.Kick()
	if n := len(r.sent()); n != 3 || !r.Idle() {
		t.Errorf("%d answers left and idle %v, expected 3", n, r.Idle())
	}
	nettest.Await(t, answered)
	r.SetIRD(0)
	if err := r.feed(ask(4)); codeOf(t, err) != code(1, 2, 3) {
		t.Errorf("the request beyond IRD ends with %v, expected 1/2/03", err)
	}
}

// The request that a Terminate message reports is found if it is outstanding. A request
// that was never sent, has been answered, or differs in its parameters is not.
func TestTheCulpritOfATerminateIsFound(t *testing.T) {
	r := newRig(t)
	r.region(0x11, 0x100, 4, 0)
	r.send(readOf(4), readOf(4), fetchAdd(), readOf(4))
	r.take(tagged(OpReadResponse, 0x11, 0x100, true, octets(4)))
	header := func(op Opcode, msn uint32) []byte { return whole(op, msn, nil) }
	asked := func(msn, size uint32) *ReadRequest {
		return &ReadRequest{SinkSTag: 0x11, SinkTO: 0x100 + uint64(4-size), Size: size, SourceSTag: 0x33, SourceTO: 8}
	}
	for _, tt := range []struct {
		name   string
		header []byte
		read   *ReadRequest
		ticket uint64 // 0 is none
	}{
		{"the oldest", header(OpReadRequest, 2), asked(2, 4), 2},
		{"what was left of it", header(OpReadRequest, 2), asked(2, 1), 2},
		{"without the Read Request", header(OpReadRequest, 2), nil, 2},
		{"the youngest", header(OpReadRequest, 4), asked(4, 4), 4},
		{"an atomic", header(OpAtomicRequest, 3), nil, 3},
		{"an answered one", header(OpReadRequest, 1), asked(1, 4), 0},
		{"one that was not sent", header(OpReadRequest, 5), asked(5, 4), 0},
		{"a Read where an atomic was sent", header(OpReadRequest, 3), asked(3, 4), 0},
		{"another sink", header(OpReadRequest, 2), &ReadRequest{SinkSTag: 0x12, SinkTO: 0x100, Size: 4}, 0},
		{"more than was asked for", header(OpReadRequest, 2), &ReadRequest{SinkSTag: 0x11, SinkTO: 0xff, Size: 5}, 0},
		{"a Send", header(OpSend, 2), nil, 0},
		{"a Write", tagged(OpWrite, 0x11, 0x100, true, nil), nil, 0},
		{"no header", nil, asked(2, 4), 0},
	} {
		ticket, ok := r.TerminatedRequest(&TerminateError{DDPHeader: tt.header, ReadRequest: tt.read})
		if ok != (tt.ticket != 0) || ok && ticket != tt.ticket {
			t.Errorf("%s: found %v, ticket %d, expected %d", tt.name, ok, ticket, tt.ticket)
		}
	}
}
