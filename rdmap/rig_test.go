package rdmap

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// A rig is a Stream between a line and a recorder.
type rig struct {
	*Stream
	t     testing.TB
	line  *line
	ulp   *recorder
	hold  *hold
	ended []error // the errors given to Config.Ended
	asked int     // calls of Config.PeerClosed
}

// errPause ends a reception of which more may follow.
var errPause = errors.New("nothing more for now")

// newRig makes an initiator with IRD 4 and ORD 4, unless options say otherwise.
func newRig(t testing.TB, options ...func(*Config, *line)) *rig {
	h := &hold{}
	r := &rig{t: t, line: newLine(t), hold: h, ulp: &recorder{
		hold: h, payload: make(map[uint64][]byte), memory: make(map[uint32]*region),
	}}
	cfg := Config{
		IRD: 4, ORD: 4, Initiator: true, Hold: h,
		PeerClosed: func() { r.asked++ },
		Ended:      func(err error) { r.ended = append(r.ended, err) },
	}
	for _, o := range options {
		o(&cfg, r.line)
	}
	r.line.hold = h
	r.Stream = NewStream(r.line, r.ulp, cfg)
	r.ulp.stream = r.Stream
	return r
}

func responder(c *Config, _ *line) { c.Initiator = false }
func digests(_ *Config, l *line)   { l.digests = true }

// post gives the ULP operations to send, with tickets from 1 on in the order
// posted, and payload of its ticket's digit where there is payload.
func (r *rig) post(ops ...Operation) {
	for _, op := range ops {
		op.Ticket = uint64(len(r.ulp.payload) + 1)
		r.ulp.payload[op.Ticket] = bytes.Repeat([]byte{byte('0' + op.Ticket%10)}, int(op.Length))
		r.ulp.ops = append(r.ulp.ops, op)
	}
}

// send posts and kicks.
func (r *rig) send(ops ...Operation) {
	r.post(ops...)
	r.Kick()
}

// region puts memory of n octets, all b, at STag and offset.
func (r *rig) region(stag uint32, base uint64, n int, b byte) *region {
	m := &region{base: base, data: bytes.Repeat([]byte{b}, n)}
	r.ulp.memory[stag] = m
	return m
}

// receive posts receives of the given sizes.
func (r *rig) receive(sizes ...int) {
	for _, n := range sizes {
		r.ulp.receives = append(r.ulp.receives, make([]byte, n))
	}
}

// feed has the segments received, and returns what ended that.
func (r *rig) feed(segments ...[]byte) error {
	r.line.in = segments
	return r.Reader()
}

// take has the segments received, which must be good.
func (r *rig) take(segments ...[]byte) {
	r.t.Helper()
	if err := r.feed(segments...); err != errPause {
		r.t.Fatalf("the reception ended with %v", err)
	}
}

// writer does what the goroutine of Writer would do now, in this one.
func (r *rig) writer() {
	r.t.Helper()
	select {
	case <-r.out.handoff:
		r.out.run(true)
	default:
		r.t.Fatal("the outgoing half was not handed over to Writer")
	}
}

// idle reports whether nobody owns the outgoing half.
func (r *rig) idle() bool { return r.out.bell.Load() == 0 && len(r.out.handoff) == 0 }

// sent returns, and forgets, what left since the last call, one line a
// segment: opcode, where to, payload octets, and a stop after the last.
func (r *rig) sent() (lines []string) {
	for _, s := range r.line.written {
		lines = append(lines, describe(&s))
	}
	r.line.written = nil
	return lines
}

func describe(s *segment) string {
	stop := "..."
	var where string
	var op Opcode
	var h ddp.Tagged
	if h.Parse(s.header) {
		_, op = ParseControl(h.RsvdULP)
		where = fmt.Sprintf("%#x:%#x", h.STag, h.TO)
	} else {
		var u ddp.Untagged
		u.Parse(s.header)
		h.Last = u.Last
		var invalidate uint32
		_, op, invalidate = ParseControlUntagged(u.RsvdULP)
		where = fmt.Sprintf("%d#%d+%d", u.QN, u.MSN, u.MO)
		if op.Invalidates() {
			where += fmt.Sprintf(" without %#x", invalidate)
		}
	}
	if h.Last {
		stop = "."
	}
	return fmt.Sprintf("%s %s %d%s", op, where, len(s.payload), stop)
}

func want(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n\t%q\nwant\n\t%q", what, got, want)
	}
}

// terminated is the Terminate message among what left, which must be the last.
func (r *rig) terminated() *Terminate {
	r.t.Helper()
	n := len(r.line.written)
	if n == 0 {
		r.t.Fatal("nothing was sent, want a Terminate")
	}
	s := r.line.written[n-1]
	if line := describe(&s); line != fmt.Sprintf("Terminate 2#1+0 %d.", len(s.payload)) {
		r.t.Fatalf("the last segment is %q, want a Terminate, message 1 of queue 2", line)
	}
	m := new(Terminate)
	if !m.Parse(s.payload) || m.Truncated {
		r.t.Fatalf("Terminate % x cannot be parsed", s.payload)
	}
	return m
}

// code are the three numbers of an error, as Describe writes them.
func code(layer, etype, code uint8) string { return fmt.Sprintf("%X/%X/%02X", layer, etype, code) }

func codeOf(t testing.TB, err error) string {
	t.Helper()
	var c coded
	if !errors.As(err, &c) {
		t.Fatalf("%v has no code", err)
	}
	return code(c.TerminateCode())
}

// Segments of the peer's.

func tagged(op Opcode, stag uint32, to uint64, last bool, payload []byte) []byte {
	h := ddp.Tagged{Last: last, Version: 1, RsvdULP: Control(1, op), STag: stag, TO: to}
	return append(h.Append(nil), payload...)
}

func untagged(op Opcode, msn, mo uint32, last bool, payload []byte) []byte {
	h := ddp.Untagged{Last: last, Version: 1, RsvdULP: ControlUntagged(1, op, 0xdead), QN: op.Queue(), MSN: msn, MO: mo}
	return append(h.Append(nil), payload...)
}

// whole is an untagged message of one segment.
func whole(op Opcode, msn uint32, payload []byte) []byte { return untagged(op, msn, 0, true, payload) }

func readRequestTo(msn uint32, r ReadRequest) []byte {
	return whole(OpReadRequest, msn, r.Append(nil))
}

func atomicRequestTo(msn uint32, a AtomicRequest) []byte {
	return whole(OpAtomicRequest, msn, a.Append(nil))
}

func atomicResponse(msn, id uint32, original uint64) []byte {
	r := AtomicResponse{ID: id, Original: original}
	return whole(OpAtomicResponse, msn, r.Append(nil))
}

func octets(n int) []byte { return bytes.Repeat([]byte{'x'}, n) }
