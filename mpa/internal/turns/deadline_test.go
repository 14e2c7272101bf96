package turns

import (
	"slices"
	"testing"
	"time"
)

// A deadlined connection keeps the deadlines that were set.
type deadlined struct{ until []time.Time }

func (d *deadlined) SetReadDeadline(t time.Time) error {
	d.until = append(d.until, t)
	return nil
}

// A wait that is interrupted ends; the user's deadline counts when nobody is interrupted any
// more, also one that was set meanwhile. The leader is interrupted while it waits, and
// what came before is kept for the next.
func TestADeadlineOutlastsInterruptions(t *testing.T) {
	past, early, late := time.Unix(1, 0), time.Unix(1<<40, 0), time.Unix(1<<41, 0)
	conn := &deadlined{}
	d := &deadline{conn: conn}
	lead := func() { d.lead(nil) }
	_ = d.set(early)
	for i, v := range []struct {
		do   func()
		want []time.Time // deadlines set
	}{
		{func() { d.clearReader(); d.led() }, nil},
		{d.interruptReader, []time.Time{past}},
		{d.interruptReader, nil},
		{d.clearReader, []time.Time{early}},
		{lead, nil},
		{d.interruptLeader, []time.Time{past}},
		{d.clearReader, nil},
		{func() { _ = d.set(late) }, nil},
		{d.led, []time.Time{late}},
		{d.interruptLeader, nil},
		{func() { _ = d.set(early) }, []time.Time{early}},
		{lead, []time.Time{past}},
		{d.interruptReader, nil},
		{d.led, nil},
		{d.clearReader, []time.Time{early}},
		{lead, nil},
		{func() { d.review(false) }, nil},
		{func() { d.review(true) }, []time.Time{past}},
		{d.led, []time.Time{early}},
		{func() { d.review(true) }, nil},
		{lead, nil},
		{d.led, nil},
	} {
		conn.until = nil
		v.do()
		if !slices.Equal(conn.until, v.want) {
			t.Errorf("step %d: deadlines %v, expected %v", i, conn.until, v.want)
		}
	}
	if !d.limited() {
		t.Error("the user's deadline is not known")
	}
	if _ = d.set(time.Time{}); d.limited() {
		t.Error("no deadline is taken for one")
	}
}
