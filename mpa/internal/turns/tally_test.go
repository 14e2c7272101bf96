package turns

import "testing"

// Somebody counts who has come since the reader was woken last, for what a visitor would
// have found as soon.
func TestAReaderCountsTimesInARow(t *testing.T) {
	c := newTally()
	for i, v := range []struct {
		visits int
		soon   bool
		row    int
	}{{1, true, 1}, {4, true, 2}, {0, true, 0}, {1, true, 1}, {1, false, 0}, {0, true, 0}, {1, true, 1}} {
		for range v.visits {
			c.visit()
		}
		if c.arrived(v.soon); c.row != v.row {
			t.Errorf("step %d: %d in a row, expected %d", i, c.row, v.row)
		}
	}
}

// row makes visits until lasts reports true, and returns their number.
func row(c *tally) int {
	for n := 0; ; n++ {
		if c.lasts() {
			return n
		}
		c.visit()
		c.arrived(true)
	}
}

// The reader sleeps for those who have come many times in a row, and for those who then
// stayed away sooner than they had come, only after twice as many.
func TestAReaderSleepsForThoseWhoLast(t *testing.T) {
	c := newTally()
	for i, v := range []struct{ need, stay int }{
		{16, 16}, {16, 15}, {32, 0}, {64, 63}, {128, 128}, {64, 1000}, {32, 32}, {16, 0},
		{32, 0}, {64, 0}, {128, 0}, {128, 128}, {64, 0},
	} {
		if n := row(&c); n != v.need {
			t.Errorf("step %d: sleeps after %d visits, expected %d", i, n, v.need)
		}
		c.sleeps()
		for range v.stay {
			c.visit()
		}
		c.woke(false)
	}
	for range minVisits - 1 {
		c.visit()
		c.arrived(true)
	}
	c.arrived(true)
	if n := row(&c); n != maxVisits {
		t.Errorf("sleeps %d visits after one time that nobody came, expected %d", n, maxVisits)
	}
}

// What lay there while nobody came has had to wait: the reader takes longer to trust
// those who come again. It is no matter if it came when the reader waited, or had been
// recalled.
func TestAReaderRemembersWhatNobodyCameFor(t *testing.T) {
	c := newTally()
	for i, v := range []struct {
		lapsed, waited bool
		need           int
	}{
		{true, true, 16}, {false, false, 16}, {true, false, 64}, {true, true, 32},
		{false, false, 16}, {true, false, 64}, {true, false, 128}, {true, false, 128},
	} {
		c.sleeps()
		for range c.need {
			c.visit()
		}
		c.woke(v.lapsed)
		c.found(v.waited)
		c.found(false)
		if c.need != v.need {
			t.Errorf("step %d: sleeps after %d visits, expected %d", i, c.need, v.need)
		}
	}
}
