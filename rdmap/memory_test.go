package rdmap

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/internal/pages"
)

// errPages is a lower layer's error for memory that cannot be accessed.
var errPages = errors.New("a page is missing")

// unreadable makes payload that begins with b unreadable.
func unreadable(b byte) func(*Config, *line) {
	return func(_ *Config, l *line) { l.bad, l.faults = b, true }
}

// An operation whose memory cannot be read ends the stream, behind the last whole
// segment before it.
func TestAnOperationThatCannotBeReadFails(t *testing.T) {
	r := newRig(t, unreadable('2'), func(_ *Config, l *line) { l.fenced = true })
	r.send(writeOf(100), sendOf(200), sendOf(1))
	r.line.fenced = false
	r.Kick()
	r.terminated()
	want(t, "sent", r.sent(), "RDMA Write 0x22:0x1000 100.", "Terminate 2#1+0 4.")
	want(t, "told", r.ulp.told(), "failed 2", "sent 1")
	if e, f := (*MemoryError)(nil), (*pages.Fault)(nil); !errors.As(r.ulp.failed, &e) || !errors.As(e, &f) {
		t.Errorf("failed with %v, expected a MemoryError and its Fault", r.ulp.failed)
	}
	if len(r.hold.uses) > 0 {
		t.Errorf("memory is still held for %+v", r.hold.uses)
	}
}

// If the source of a Read cannot be read, the Terminate reports what was left of it.
//
// Claims: V-6.4-7
func TestAnAnswerThatCannotBeReadTellsWhatWasLeft(t *testing.T) {
	for name, option := range map[string]func(*Config, *line){"copied": digests, "referred to": func(*Config, *line) {}} {
		r := newRig(t, option, unreadable('x'))
		m := r.region(0x33, 8, 400, '.')
		m.data[2*114] = 'x'
		r.take(asks(1, 400))
		if len(r.out.handoff) > 0 {
			r.writer()
		}
		said := r.terminated()
		if said.EType != RemoteProtection || said.Code != CodeAccess || !said.R ||
			said.ReadRequest != (ReadRequest{0x77, 0x700 + 228, 400 - 228, 0x33, 8 + 228}) {
			t.Errorf("%s: %v, %+v was left", name, said, said.ReadRequest)
		}
		want(t, "sent", r.sent(), "RDMA Read Response 0x77:0x700 114...", "RDMA Read Response 0x77:0x772 114...", "Terminate 2#1+0 52.")
		want(t, "told", r.ulp.told(), "unanswered")
		if len(r.hold.uses) > 0 {
			t.Errorf("%s: memory is still held for %+v", name, r.hold.uses)
		}
	}
}

// The segments of an answer in front of the one that cannot be read may have to be dropped,
// too.
func TestAnAnswerThatCannotBeReadMayBeDroppedFromItsBeginning(t *testing.T) {
	r := newRig(t, unreadable('x'), func(_ *Config, l *line) { l.fenced = true })
	m := r.region(0x33, 8, 400, '.')
	m.data[2*114] = 'x'
	r.take(asks(1, 400))
	r.line.fenced = false
	r.line.flush = func() { r.hold.revoke(0x33) }
	r.Kick()
	if len(r.out.handoff) > 0 {
		r.writer()
	}
	said := r.terminated()
	if said.EType != RemoteProtection || said.ReadRequest != (ReadRequest{0x77, 0x700, 400, 0x33, 8}) {
		t.Errorf("%v, %+v was left", said, said.ReadRequest)
	}
	want(t, "sent", r.sent(), "Terminate 2#1+0 52.")
}

// The octets of an operation in front of those whose memory is refused are sent.
func TestWhatIsInFrontOfRefusedMemoryIsSent(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.fenced = true })
	r.send(writeOf(400))
	r.ulp.refuses, r.ulp.whole = errLocal, 300
	r.line.fenced = false
	r.Kick()
	r.terminated()
	want(t, "sent", r.sent(), "RDMA Write 0x22:0x1000 114...", "RDMA Write 0x22:0x1072 114...", "Terminate 2#1+0 4.")
	want(t, "told", r.ulp.told(), "failed 1")
}

// What the transport cannot read is dropped, with all after it.
func TestASegmentThatTheTransportCannotReadIsDropped(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes, l.fault = 2, &unreadableError{2, errPages} })
	r.send(sendOf(100), writeOf(300), sendOf(1))
	r.stuck(func() {})
	want(t, "sent", r.sent(), "Send 0#1+0 100.", "RDMA Write 0x22:0x1000 114...", "Terminate 2#1+0 4.")
	want(t, "told", r.ulp.told(), "sent 1", "failed 2")
	if e := (*MemoryError)(nil); !errors.As(r.ulp.failed, &e) {
		t.Errorf("failed with %v, expected a MemoryError", r.ulp.failed)
	}
}

// If a segment has left in part the stream can only be reset, but its operation has the
// reason.
//
// Claims: V-6.4-3
func TestASegmentThatFaultsInItsMiddleResetsTheStream(t *testing.T) {
	for name, begin := range map[string]struct {
		do   func(r *rig)
		told string
	}{
		"an operation": {func(r *rig) { r.send(writeOf(100)) }, "damaged 1"},
		"an answer":    {func(r *rig) { r.region(0x33, 8, 100, '.'); r.take(asks(1, 100)) }, ""},
	} {
		r := newRig(t, func(_ *Config, l *line) {
			l.takes, l.begun, l.fault = 0, true, &unreadableError{0, errPages}
		})
		begin.do(r)
		if len(r.ended) != 1 || !errors.Is(r.ended[0], errPages) || !strings.Contains(r.ended[0].Error(), "in the middle of a segment") {
			t.Errorf("%s: ended with %v, expected once with %v", name, r.ended, errPages)
		}
		want(t, "sent", r.sent())
		if got := strings.Join(r.ulp.told(), ", "); got != begin.told {
			t.Errorf("%s: told %q, expected %q", name, got, begin.told)
		}
	}
}

// The ULP completes a receive that cannot be written.
func TestAReceiveThatCannotBeWrittenIsTheULPs(t *testing.T) {
	r := newRig(t)
	r.receive(64)
	if err := r.in.Unwritable(&ddp.Untagged{QN: QueueSend}, errPages); err != errPages {
		t.Errorf("%v, expected the ULP's error", err)
	}
	want(t, "told", r.ulp.told(), "unwritable")
	if err := r.in.Unwritable(&ddp.Untagged{QN: QueueRequest}, errPages); !errors.Is(err, &Error{EType: RemoteOperation, Code: CodeStream}) {
		t.Errorf("%v, expected a catastrophic error", err)
	}
}
