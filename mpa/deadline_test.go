package mpa

import (
	"slices"
	"testing"
	"time"
)

// A read that is interrupted ends; the user's deadline counts when it is for neither
// reason any more, also one that was set meanwhile.
func TestADeadlineOutlastsInterruptions(t *testing.T) {
	past, early, late := time.Unix(1, 0), time.Unix(1<<40, 0), time.Unix(1<<41, 0)
	f := &fed{}
	c := feed(f, Params{})
	d := &c.deadline
	_ = c.SetReadDeadline(early)
	for i, v := range []struct {
		do   func()
		want []time.Time // deadlines set
	}{
		{func() { d.settle(); d.calm() }, nil},
		{d.rouse, []time.Time{past}},
		{d.rouse, nil},
		{func() { d.settle() }, []time.Time{early}},
		{d.call, []time.Time{past}},
		{func() { d.settle() }, nil},
		{func() { _ = c.SetReadDeadline(late) }, nil},
		{func() { d.calm() }, []time.Time{late}},
		{d.rouse, []time.Time{past}},
		{d.call, nil},
		{func() { d.calm() }, nil},
		{func() { _ = c.SetReadDeadline(early) }, nil},
		{func() { d.settle() }, []time.Time{early}},
		{d.call, []time.Time{past}},
		{d.rouse, nil},
		{func() { d.settle() }, nil},
		{func() { d.calm() }, []time.Time{early}},
	} {
		f.until = nil
		v.do()
		if !slices.Equal(f.until, v.want) {
			t.Errorf("step %d: deadlines %v, expected %v", i, f.until, v.want)
		}
	}
	if d.calm() || d.settle() {
		t.Error("something is left to be settled")
	}
	d.call()
	if !d.limited() || !d.calm() {
		t.Error("the user's deadline or the call is not told of")
	}
	_ = c.SetReadDeadline(time.Time{})
	if d.limited() {
		t.Error("no deadline is told to be one")
	}
}
