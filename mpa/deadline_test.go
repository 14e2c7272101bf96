package mpa

import (
	"slices"
	"testing"
	"time"
)

// A read that is roused ends; the user's deadline counts afterwards, also one that
// was set meanwhile.
func TestADeadlineOutlastsARousing(t *testing.T) {
	past, early, late := time.Unix(1, 0), time.Unix(1<<40, 0), time.Unix(1<<41, 0)
	f := &fed{}
	c := feed(f, Params{})
	_ = c.SetReadDeadline(early)
	c.deadline.settle()
	c.deadline.rouse()
	c.deadline.settle()
	c.deadline.rouse()
	_ = c.SetReadDeadline(late)
	c.deadline.settle()
	if want := []time.Time{early, past, early, past, late}; !slices.Equal(f.until, want) {
		t.Errorf("deadlines %v, expected %v", f.until, want)
	}
}
