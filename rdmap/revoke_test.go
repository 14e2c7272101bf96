package rdmap

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/internal/nettest"
)

// stuck has the transport accept n segments and then block Writer. It calls happen, and
// then lets the transport accept everything.
func (r *rig) stuck(happen func()) {
	r.t.Helper()
	r.line.wait = func() { r.line.takes = -1; happen() }
	r.writer()
}

// Memory that is revoked under segments that wait to be written: those are
// dropped, those before stay, and a Terminate follows, at a boundary.
//
// Claims: R-5.4-8
func TestRevokedOperationEndsTheStreamAtABoundary(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes = 1 })
	r.send(sendOf(100), writeOf(300), sendOf(1))
	r.stuck(func() { r.hold.revoke(2) })
	// Case 1 of RFC 5040 §7.1: no segment of the peer is reported.
	if m := r.terminated(); m.M || m.DDPHeader != nil || m.R {
		t.Errorf("Terminate %+v, want no headers", m)
	}
	want(t, "sent", r.sent(), "Send 0#1+0 100.", "Terminate 2#1+0 4.")
	want(t, "told", r.ulp.told(), "sent 1", "failed 2")
	want(t, "shut", r.line.shut, "CloseWrite")
	if len(r.ended) != 1 || r.ended[0] != nil {
		t.Errorf("ended with %v, want once with nil", r.ended)
	}
	if len(r.hold.uses) > 0 {
		t.Errorf("memory is still held for %+v", r.hold.uses)
	}
}

// The segments of a message that have left stay, the rest is never sent: the
// message has no last segment and is not delivered.
func TestRevokedInTheMiddleOfAMessage(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes = 2 })
	r.send(writeOf(400))
	r.stuck(func() { r.hold.revoke(1) })
	want(t, "sent", r.sent(),
		"RDMA Write 0x22:0x1000 114...", "RDMA Write 0x22:0x1072 114...", "Terminate 2#1+0 4.")
	want(t, "told", r.ulp.told(), "failed 1")
}

// Each of several elements is held for the segments that it is in, however many were cut
// together: the first one may go when its octets have left, and when the second one goes, what
// is in front of it has not been damaged.
func TestElementsAreHeldForTheirOwnSegments(t *testing.T) {
	for key, sent := range map[uint64][]string{
		1: {"RDMA Write 0x22:0x1000 114...", "RDMA Write 0x22:0x1072 114...", "RDMA Write 0x22:0x10e4 114...", "RDMA Write 0x22:0x1156 58."},
		2: {"RDMA Write 0x22:0x1000 114...", "RDMA Write 0x22:0x1072 114...", "Terminate 2#1+0 4."},
	} {
		r := newRig(t, func(_ *Config, l *line) { l.takes = 2 })
		r.ulp.second = 228
		r.send(writeOf(400))
		r.stuck(func() { r.hold.revoke(key) })
		want(t, "sent", r.sent(), sent...)
	}
}

// A segment that has left in part cannot be completed correctly: the stream is reset.
//
// Claims: V-6.4-3
func TestRevokedInTheMiddleOfASegmentEndsInAnError(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes = 1 })
	r.send(writeOf(400))
	r.stuck(func() { r.hold.revoke(1); r.line.begun = true })
	want(t, "sent", r.sent(), "RDMA Write 0x22:0x1000 114...")
	want(t, "told", r.ulp.told())
	if len(r.ended) != 1 || !errors.Is(r.ended[0], errRevoked) {
		t.Errorf("ended with %v, want once with %v", r.ended, errRevoked)
	}
}

// The source of a Read Response is revoked while it waits to be written: the
// Terminate reports what was left of the Read.
func TestRevokedReadResponseTellsWhatWasLeft(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes = 2 })
	r.region(0x33, 8, 400, '.')
	r.take(asks(1, 400), asks(2, 1))
	r.stuck(func() { r.hold.revoke(0x33) })
	m := r.terminated()
	if left := (ReadRequest{0x77, 0x700 + 228, 400 - 228, 0x33, 8 + 228}); !m.R || m.ReadRequest != left {
		t.Errorf("%+v was left, want %+v", m.ReadRequest, left)
	}
	want(t, "sent", r.sent(), "RDMA Read Response 0x77:0x700 114...", "RDMA Read Response 0x77:0x772 114...", "Terminate 2#1+0 52.")
	want(t, "told", r.ulp.told(), "unanswered")
}

// Memory may be revoked between one segment of a batch and the next. What the
// Terminate says was left of the Read is what did not leave, the segments that
// were in the batch by then included if they had to be dropped.
func TestReadResponseRevokedAsItIsCutTellsWhatWasLeft(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		r := newRig(t, func(_ *Config, l *line) { l.fenced = true })
		m := r.region(0x33, 8, 400, '.')
		r.take(asks(1, 400))
		m.fault, m.good = ddp.FaultSTag, 2*114
		r.line.fenced = false
		gone, left := []string{"RDMA Read Response 0x77:0x700 114...", "RDMA Read Response 0x77:0x772 114..."}, uint64(228)
		if dropped {
			r.line.flush = func() { r.hold.revoke(0x33) }
			gone, left = nil, 0
		}
		r.Kick()
		if len(r.out.handoff) > 0 {
			r.writer()
		}
		said := r.terminated()
		if want := (ReadRequest{0x77, 0x700 + left, 400 - uint32(left), 0x33, 8 + left}); !said.R || said.ReadRequest != want {
			t.Errorf("dropped %v: %+v was left, want %+v", dropped, said.ReadRequest, want)
		}
		want(t, "sent", r.sent(), append(gone, "Terminate 2#1+0 52.")...)
		want(t, "told", r.ulp.told(), "unanswered")
	}
}

// An Atomic Response refers to no memory, but may be dropped with segments
// that do.
func TestDroppedAtomicResponseTellsItsRequest(t *testing.T) {
	d := truncated{answer: request{opcode: OpAtomicRequest, op: AtomicRequest{STag: 0x44}, length: 70}}
	m := (&Stream{rv: 1}).newTerminate(d.fault(ddp.FaultSTag)).err
	if m.Code != CodeInvalidSTag || m.ReadRequest != nil || m.SegmentLength != 70 || !strings.Contains(m.Error(), "0x00000044") {
		t.Errorf("%v: %+v", m, m)
	}
}

// Memory of messages that have left whole may be revoked, even while others wait, without
// effect.
func TestRevocationAfterTheLastOctetDisturbsNothing(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes = 1 })
	r.region(0x33, 8, 100, '.')
	r.take(asks(1, 100))
	r.sent()
	r.line.takes = 0
	r.take(asks(2, 100))
	r.send(sendOf(1))
	waits := 0
	r.line.wait = func() {
		if waits++; waits == 1 {
			r.line.takes = 1
			return
		}
		r.line.takes = -1
		r.hold.revoke(0x33) // its response has left, the Send has not
	}
	r.writer()
	want(t, "sent", r.sent(), "RDMA Read Response 0x77:0x700 100.", "Send 0#1+0 1.")
	want(t, "told", r.ulp.told(), "sent 1")
	if len(r.ended) > 0 {
		t.Errorf("ended with %v", r.ended)
	}
}

// A Terminate that was dropped with segments before it is sent again, as the
// one message of its queue, and still reports the first error.
//
// Claims: R-5.4-3 R-7.1-6
func TestTerminateDroppedWithRevokedSegmentsIsSentAgain(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes = 0 })
	r.send(writeOf(100))
	r.Terminate(NewError(RemoteOperation, CodeOpcode, "first"))
	nettest.Await(t, r.out.handoff)
	r.out.run(false) // gathers the Terminate, too
	if n := len(r.line.pending); n != 2 {
		t.Fatalf("%d segments wait, want a Write and a Terminate", n)
	}
	r.stuck(func() { r.hold.revoke(1) })
	if m := r.terminated(); m.Code != CodeOpcode {
		t.Errorf("code %#x, want %#x", m.Code, CodeOpcode)
	}
	want(t, "sent", r.sent(), "Terminate 2#1+0 4.")
	want(t, "told", r.ulp.told(), "failed 1")
}

// Local memory that is refused as a message is cut ends it there.
func TestGatherThatFailsEndsTheStream(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.room = 2 })
	batches := 0
	r.line.flush = func() {
		if batches++; batches == 1 {
			r.ulp.refuses = errLocal
		}
	}
	r.send(writeOf(400), sendOf(1))
	r.terminated()
	want(t, "sent", r.sent(), "RDMA Write 0x22:0x1000 114...", "RDMA Write 0x22:0x1072 114...", "Terminate 2#1+0 4.")
	want(t, "told", r.ulp.told(), "failed 1")
}

// Memory found before the failure is not held: its owner learns of the failure, and may
// revoke the memory before the Terminate has left.
func TestGatherThatFailsLeavesNothingHeld(t *testing.T) {
	r := newRig(t)
	r.ulp.refuses = errLocal
	r.line.flush = func() { r.hold.revoke(1) }
	r.send(writeOf(100))
	r.terminated()
	if len(r.ended) != 1 || r.ended[0] != nil {
		t.Errorf("ended with %v, want once with nil", r.ended)
	}
}

// Nor is anything held for an answer that could not be given.
func TestSourceThatFailsLeavesNothingHeld(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.fenced = true })
	m := r.region(0x33, 8, 100, '.')
	r.take(asks(1, 100))
	m.fault = ddp.FaultSTag
	r.line.fenced = false
	r.line.flush = func() { r.hold.revoke(0x33) }
	r.Kick()
	r.terminated()
	if len(r.ended) != 1 || r.ended[0] != nil {
		t.Errorf("ended with %v, want once with nil", r.ended)
	}
}

// The memory of a copied response is released at once, so revoking it does not affect
// the stream.
func TestCopiedAnswerHoldsNoMemory(t *testing.T) {
	r := newRig(t, digests, func(_ *Config, l *line) { l.takes = 0 })
	m := r.region(0x33, 8, 200, '.')
	r.take(asks(1, 200))
	m.fault = ddp.FaultSTag
	r.stuck(func() { r.hold.revoke(0x33) })
	want(t, "sent", r.sent(), "RDMA Read Response 0x77:0x700 114...", "RDMA Read Response 0x77:0x772 86.")
	if len(r.ended) > 0 || r.term.Load() != nil {
		t.Errorf("ended with %v", r.ended)
	}
}

// So do the segments in front of one that cannot be read.
func TestWhatIsCopiedInFrontOfAFaultHoldsNoMemory(t *testing.T) {
	r := newRig(t, digests, unreadable('x'), func(_ *Config, l *line) { l.takes = 0 })
	m := r.region(0x33, 8, 400, '.')
	m.data[2*114] = 'x'
	r.take(asks(1, 400))
	r.stuck(func() { r.hold.revoke(0x33) })
	want(t, "sent", r.sent(), "RDMA Read Response 0x77:0x700 114...", "RDMA Read Response 0x77:0x772 114...", "Terminate 2#1+0 52.")
}
