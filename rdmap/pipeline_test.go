package rdmap

import "testing"

func depths(ird, ord int) func(*Config, *line) {
	return func(c *Config, _ *line) { c.IRD, c.ORD = ird, ord }
}

// Requests that have come together count as outstanding together, although some of them
// have been answered meanwhile: the peer cannot have had the answers.
func TestAnsweredRequestsCountWhileTheRestIsReceived(t *testing.T) {
	r := newRig(t, responder, depths(16, 0))
	r.region(0x22, 0, 8, 's')
	msn := uint32(0)
	requests := func(n int) (in [][]byte) {
		for range n {
			msn++
			in = append(in, readRequestTo(msn, ReadRequest{SinkSTag: 1, Size: 8, SourceSTag: 0x22}))
		}
		return in
	}
	r.take(requests(16)...)
	r.take(requests(16)...)
	if n := len(r.sent()); n != 32 {
		t.Fatalf("%d answers, expected 32", n)
	}
	if got := codeOf(t, r.feed(requests(17)...)); got != "1/2/03" {
		t.Errorf("17 requests at a time, with IRD 16: %s", got)
	}
}

// A side sends after a quarter of what may be outstanding, and not when all that has
// arrived is dealt with: the peer has work meanwhile. It does so after 32 at the latest.
func TestAnswersLeaveWhileRequestsAreReceived(t *testing.T) {
	for _, tt := range []struct{ ird, requests, flushes int }{
		{16, 3, 1}, {16, 4, 1}, {16, 8, 2}, {16, 9, 3}, {4, 3, 1}, {1, 1, 1}, {1000, 64, 2}, {1000, 31, 1},
	} {
		r := newRig(t, responder, depths(tt.ird, 0))
		r.region(0x22, 0, 8, 's')
		var in [][]byte
		for i := range tt.requests {
			in = append(in, readRequestTo(uint32(i+1), ReadRequest{SinkSTag: 1, Size: 8, SourceSTag: 0x22}))
		}
		r.line.flushes = nil
		r.take(in...)
		if n := len(r.sent()); n != tt.requests || len(r.line.flushes) != tt.flushes {
			t.Errorf("%+v: %d answers in %d flushes", tt, n, len(r.line.flushes))
		}
	}
}

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
