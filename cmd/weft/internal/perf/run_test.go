package perf

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

func TestLargeMessagesAreFewerUnderWay(t *testing.T) {
	for _, tt := range []struct{ size, depth, want int }{
		{1, 256, 256}, {64, 256, 256}, {64 << 10, 256, 64}, {1 << 20, 256, 4}, {MaxSize, 256, 4}, {64, 4, 4}, {1 << 20, 4, 4},
	} {
		if got := depthFor(tt.size, tt.depth); got != tt.want {
			t.Errorf("depthFor(%d, %d) = %d, want %d", tt.size, tt.depth, got, tt.want)
		}
	}
}

// A driver waits for credit until the peer has answered, and for completions
// until one is signaled, so the peer must answer as often as the driver counts
// on, whatever the numbers, and one of those under way must be signaled.
func TestCreditsAndSignalsAlwaysLetTheDriverFinish(t *testing.T) {
	for depth := 1; depth < 40; depth++ {
		for _, want := range []struct{ batch, signal int }{{0, 0}, {1, 0}, {0, 1}, {1, 1000}, {1000, 1}, {1000, 1000}, {3, 5}} {
			for n := 1; n < 400; n += 7 {
				r := &run{Op: Immediate, Size: wordSize, N: n, Slots: 1, Depth: depth, Batch: portion(want.batch, depth), Signal: portion(want.signal, depth)}
				if err := r.check(wordSize, depth); err != nil {
					t.Fatalf("%+v: %v", r, err)
				}
				finish(t, r)
			}
		}
	}
}

// finish plays the driver's part of r, with a peer that answers as late as it
// may and completions that come as late as they can.
func finish(t *testing.T, r *run) {
	t.Helper()
	e := new(endpoint)
	e.batch, e.sges = make([]verbs.SendWR, r.Depth), make([]verbs.SGE, r.Depth)
	acks, posted := 0, 0
	for posted < r.N {
		batch := min(r.Batch, r.N-posted)
		switch {
		case e.underWay(r, posted)+batch > r.Depth:
			if e.pending == 0 {
				t.Fatalf("%+v: after %d messages the driver waits for a completion, and none is signaled", r, posted)
			}
			e.pending--
		case posted+batch > acks*r.Depth+r.window():
			if posted < min((acks+1)*r.Depth, r.incoming()) {
				t.Fatalf("%+v: after %d messages the driver waits for answer %d, and the peer for more messages", r, posted, acks+1)
			}
			acks++
		default:
			e.build(r, posted, batch)
			posted += batch
		}
	}
	if acks > r.acks() {
		t.Fatalf("%+v: it needs %d answers and gets %d", r, acks, r.acks())
	}
	if last := r.acks(); min(last*r.Depth, r.incoming()) != r.N {
		t.Fatalf("%+v: the last of %d answers does not stand for all messages", r, last)
	}
}

func TestPortionsOfTheDepthAreAtMostHalfOfIt(t *testing.T) {
	for _, tt := range []struct{ want, depth, portion int }{
		{0, 256, 64}, {0, 4, 1}, {0, 1, 1}, {1, 256, 1}, {64, 256, 64}, {128, 256, 128}, {200, 256, 128}, {64, 4, 2}, {7, 1, 1},
	} {
		if got := portion(tt.want, tt.depth); got != tt.portion {
			t.Errorf("portion(%d, %d) = %d, want %d", tt.want, tt.depth, got, tt.portion)
		}
	}
}

func TestRunsThatDoNotFitAreRefused(t *testing.T) {
	good := run{Kind: bandwidth, Op: Write, Size: 64, N: 10, Slots: 4, Depth: 8, Batch: 4, Signal: 5}
	if err := good.check(256, 8); err != nil {
		t.Errorf("%+v: %v", good, err)
	}
	for name, change := range map[string]func(*run){
		"no operation":        func(r *run) { r.Op = "copy" },
		"half an atomic":      func(r *run) { r.Op, r.Size = FetchAdd, 4 },
		"no size":             func(r *run) { r.Size = 0 },
		"negative size":       func(r *run) { r.Size = -64 },
		"too many slots":      func(r *run) { r.Slots = 5 },
		"slots that wrap":     func(r *run) { r.Slots = 1 << 30 },
		"no slot":             func(r *run) { r.Slots = 0 },
		"no message":          func(r *run) { r.N = 0 },
		"endless messages":    func(r *run) { r.N = maxMessages + 1 },
		"no depth":            func(r *run) { r.Depth = 0 },
		"more than the depth": func(r *run) { r.Depth = 9 },
		"no batch":            func(r *run) { r.Batch = 0 },
		"nothing signaled":    func(r *run) { r.Signal = 0 },
		"too few signaled":    func(r *run) { r.Signal = 6 },
		"too large batches":   func(r *run) { r.Batch, r.Signal = 9, 1 },
		"batches that wrap":   func(r *run) { r.Batch, r.Signal = math.MaxInt/2+1, math.MaxInt/2+1 },
	} {
		r := good
		change(&r)
		if r.check(256, 8) == nil {
			t.Errorf("%s: %+v was taken", name, r)
		}
	}
}

// The peer takes runs from the network: one that passes the check stays inside
// its memory.
func FuzzRunsThatPassTheCheckStayInMemory(f *testing.F) {
	f.Add([]byte(`{"kind":"bandwidth","op":"write","size":64,"n":10,"slots":4,"depth":8,"batch":2,"signal":3}`))
	f.Add([]byte(`{"kind":"latency","op":"cmpswap","size":8,"n":16777216,"slots":1,"depth":1,"batch":1,"signal":1,"seed":18446744073709551615}`))
	f.Add([]byte(`{"op":"read","size":-1,"n":-5,"slots":-9223372036854775808,"depth":0}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		const room, depth = 1 << 20, 64
		var r run
		if json.Unmarshal(line, &r) != nil || r.check(room, depth) != nil {
			return
		}
		for _, k := range []int{0, 1, r.Slots - 1, r.Slots, r.N - 1} {
			if at := r.offset(k); at < 0 || at+r.Size > room {
				t.Fatalf("message %d of %+v is at %d of %d bytes", k, r, at, room)
			}
		}
		if r.Batch < 1 || r.Batch > depth || r.Signal < 1 || r.Signal > depth || r.window() > windowDepths*depth {
			t.Fatalf("%+v expects %d", r, r.window())
		}
	})
}
