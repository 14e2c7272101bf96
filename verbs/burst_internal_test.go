package verbs

import (
	"testing"
	"time"
)

func TestPostsOneRightAfterTheOtherAreABurst(t *testing.T) {
	const quick, slow = burstGap / 2, 2 * burstGap
	var b burst
	now := time.Hour
	for _, step := range []struct {
		posts int
		after time.Duration
		more  bool // what is expected of the last
	}{
		{1, slow, false},
		{burstLength - 1, quick, false},
		{1, quick, true},
		{1, slow, false}, // too short a burst to outlast a pause
		{1000, slow, false},
		{1000, quick, true},
		{2, slow, true}, // a long one does, for a few posts
		{1, slow, false},
	} {
		more := false
		for range step.posts {
			now += step.after
			more = b.another(1, now)
		}
		if more != step.more {
			t.Errorf("after %d posts, %v apart: more are expected: %v, want %v", step.posts, step.after, more, step.more)
		}
	}
}

func TestTheTimeOfSendingIsNoPause(t *testing.T) {
	var b burst
	now, more := time.Hour, false
	for range 2 * burstLength {
		more = b.another(1, now)
		now += 10 * burstGap // the write
		b.sent(now)
	}
	if !more {
		t.Error("posts that follow at once what was sent before are no burst")
	}
}

func TestManyRequestsAtOnceAreNotKeptForMore(t *testing.T) {
	for _, n := range []int{1, burstLength - 1, burstLength, 1000} {
		var b burst
		now, more := time.Hour, false
		for range 2 * burstLength {
			more = b.another(n, now)
		}
		if want := n < burstLength; more != want {
			t.Errorf("lists of %d in a burst: more are waited for: %v, want %v", n, more, want)
		}
	}
}
