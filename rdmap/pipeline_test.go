package rdmap

import "testing"

func depths(ird, ord int) func(*Config, *line) {
	return func(c *Config, _ *line) { c.IRD, c.ORD = ird, ord }
}

// A side sends its next requests after a quarter of the answers that may be outstanding, and
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
