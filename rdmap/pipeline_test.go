package rdmap

import "testing"

func depths(ird, ord int) func(*Config, *line) {
	return func(c *Config, _ *line) { c.IRD, c.ORD = ird, ord }
}

// A side sends its next requests after half of the answers that may be outstanding, and
// not when all that has arrived is dealt with: the peer has work meanwhile.
func TestRequestsLeaveWhileAnswersAreReceived(t *testing.T) {
	r := newRig(t, depths(0, 8))
	r.region(0x11, 0x100, 10, '.')
	for range 16 {
		r.post(readOf(10))
	}
	r.Kick()
	if n := len(r.sent()); n != 8 {
		t.Fatalf("%d requests left, expected ORD, 8", n)
	}
	r.line.flushes = nil
	var in [][]byte
	for range 5 {
		in = append(in, tagged(OpReadResponse, 0x11, 0x100, true, octets(10)))
	}
	r.take(in...)
	if n := len(r.sent()); n != 5 || len(r.line.flushes) != 2 {
		t.Errorf("%d requests left in %d flushes after 5 answers, expected 5 in 2", n, len(r.line.flushes))
	}
}

// The LLP hears that the peer is about to send: while answers are due of which one has come,
// and where the peer has several requests under way. What comes one at a time promises
// nothing.
func TestTheLLPHearsThatMoreIsToCome(t *testing.T) {
	answer := tagged(OpReadResponse, 0x11, 0x100, true, octets(10))
	request := func(msn uint32) []byte {
		return readRequestTo(msn, ReadRequest{SinkSTag: 0x22, SourceSTag: 0x33, SourceTO: 0x200, Size: 1})
	}
	for _, tt := range []struct {
		name string
		own  int // Reads of this side
		in   [][]byte
		more int
	}{
		{"the only answer", 1, [][]byte{answer}, 0},
		{"both answers", 2, [][]byte{answer, answer}, 0},
		{"the first of two answers", 2, [][]byte{answer}, 1},
		{"a Write, while answers are due", 2, [][]byte{tagged(OpWrite, 0x11, 0x100, true, octets(10))}, 0},
		{"one request", 0, [][]byte{request(1)}, 0},
		{"two requests", 0, [][]byte{request(1), request(2)}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.region(0x11, 0x100, 10, '.')
			r.region(0x33, 0x200, 10, 'x')
			for range tt.own {
				r.post(readOf(10))
			}
			r.Kick()
			r.take(tt.in...)
			if r.line.expected != tt.more {
				t.Errorf("it heard so %d times, expected %d", r.line.expected, tt.more)
			}
		})
	}
}
