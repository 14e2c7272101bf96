package socket

import "testing"

// TCP is asked 64 KiB after a question whose answer was new, ever later after others, and
// at most 4 MiB later.
func TestTCPIsAskedLessOftenAboutASizeThatStays(t *testing.T) {
	const kib = 1 << 10
	s := schedule{every: AskSoonest}
	var pos uint64
	for _, v := range []struct {
		next    uint64 // octets to the question
		changed bool   // by its answer
	}{
		{64 * kib, false},
		{128 * kib, false},
		{256 * kib, true},
		{64 * kib, true},
		{64 * kib, false},
		{128 * kib, false},
		{256 * kib, false},
		{512 * kib, false},
		{1024 * kib, false},
		{2048 * kib, false},
		{4096 * kib, false},
		{4096 * kib, false},
		{4096 * kib, true},
		{64 * kib, false},
	} {
		if s.due(pos + v.next - 1) {
			t.Errorf("at %d: asked within %d octets, expected after them", pos, v.next)
		}
		if pos += v.next; !s.due(pos) {
			t.Errorf("at %d: not asked, expected after %d octets", pos, v.next)
		}
		s.answered(pos, v.changed)
	}
}

// What is sent late is sent in one piece: the next question counts from there.
func TestTheNextQuestionCountsFromTheLast(t *testing.T) {
	s := schedule{every: AskSoonest}
	late := uint64(10 * AskSoonest)
	s.answered(late, true)
	if s.due(late+AskSoonest-1) || !s.due(late+AskSoonest) {
		t.Errorf("not asked %d octets after the last question", AskSoonest)
	}
}

func TestTheSizeIsTheLastThatTCPSaid(t *testing.T) {
	size, ok := 0, false
	e := NewEMSS(func() (int, bool) { return size, ok }, 1428)
	var pos uint64
	for _, v := range []struct {
		says int
		ok   bool
		want int
	}{
		{0, false, 1428},
		{0, true, 1428},
		{1000, true, 1000},
		{500, false, 1000}, // the connection is closed
		{500, true, 500},
	} {
		size, ok = v.says, v.ok
		if pos += AskLatest; e.At(pos) != v.want {
			t.Errorf("TCP says %d, %t: %d, expected %d", v.says, v.ok, e.At(pos), v.want)
		}
	}
	if e := NewEMSS(nil, 1428); e.At(AskLatest) != 1428 {
		t.Errorf("%d where nobody can be asked, expected 1428", e.At(AskLatest))
	}
}
