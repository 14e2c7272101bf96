package rpcrdma

import "testing"

// Claims: P-3.3-7 P-3.3-9 P-3.3-10 P-3.3-15 P-3.8-14 P-3.8-15 P-6.1-4 P-6.1-5 P8166-3.3.1-2 P8166-3.3.1-4 P8166-3.3.3-2 P8166-3.3.3-3
func TestAWindowIsTheLesserOfRequestedAndGrantedLessWhatIsOutstanding(t *testing.T) {
	call := func(w *window) { w.call() }
	reply := func(credits uint32) func(*window) { return func(w *window) { w.reply(credits, false) } }
	owing := func(credits uint32) func(*window) { return func(w *window) { w.reply(credits, true) } }
	done := func(w *window) { w.finish() }
	lost := func(w *window) { w.drop() }
	type steps []func(*window)
	for _, c := range []struct {
		name      string
		requested uint32
		steps     steps
		open      int // calls that can be made now
	}{
		{"one before the first reply", 32, nil, 1},
		{"none beside it", 32, steps{call}, 0},
		{"what was granted", 32, steps{call, reply(8)}, 8},
		{"less what is in flight", 32, steps{call, reply(8), call, call, call}, 5},
		{"not more than was requested", 4, steps{call, reply(1 << 31)}, 4},
		{"zero is one", 32, steps{call, reply(0)}, 1},
		{"zero with calls in flight", 32, steps{call, reply(8), call, call, reply(0)}, 0},
		{"the last grant counts", 32, steps{call, reply(8), call, reply(2)}, 2},
		{"a grant below what is in flight", 32, steps{call, reply(8), call, call, call, reply(2)}, 0},
		{"a call that was not sent", 32, steps{call, lost}, 1},
		{"an RDMA_DONE that is owed", 32, steps{call, reply(2), call, owing(2), call}, 0},
		{"one that was sent", 32, steps{call, reply(2), call, owing(2), done, call}, 0},
		{"one that a grant came after", 32, steps{call, reply(2), call, owing(2), done, call, reply(2), call}, 1},
		{"RDMA_DONEs alone never close it", 32, steps{call, owing(1), done}, 1},
		{"nor do those that are owed", 32, steps{call, owing(1)}, 1},
	} {
		w := window{requested: c.requested}
		for _, step := range c.steps {
			step(&w)
		}
		n := 0
		for ; w.open() && n < 100; n++ {
			w.call()
		}
		if n != c.open {
			t.Errorf("%s: %d calls can be made, want %d", c.name, n, c.open)
		}
	}
}

// Claims: P-3.3-8 P-11-9 P-11-10 P8166-3.3.1-1 P8166-3.3.1-3 P-3.3-14
func TestAGrantIsNeverZero(t *testing.T) {
	for _, c := range []struct{ limit, pending, credits uint32 }{
		{64, 0, 64}, {64, 1, 63}, {64, 63, 1}, {64, 64, 1}, {64, 1000, 1}, {1, 0, 1}, {1, 1, 1},
	} {
		g := grants{limit: c.limit, pending: c.pending}
		if n := g.credits(); n != c.credits {
			t.Errorf("%d of %d RDMA_DONEs outstanding: %d credits, want %d", c.pending, c.limit, n, c.credits)
		}
	}
}

// Claims: P-3.3-7
func TestGrantsAreAtLeastOneAndAtMostWhatIsUsed(t *testing.T) {
	for _, c := range [][3]uint32{{0, 32, 1}, {1, 32, 1}, {8, 32, 8}, {32, 32, 32}, {33, 32, 32}, {1<<32 - 1, 32, 32}, {5, 0, 1}} {
		if got := usable(c[0], c[1]); got != c[2] {
			t.Errorf("usable(%d, %d) is %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
