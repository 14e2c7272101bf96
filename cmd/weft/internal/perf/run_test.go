package perf

import (
	"encoding/json"
	"testing"
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

// A driver waits for credit until the peer has answered, so the peer must
// answer as often as the driver counts on, whatever the numbers.
func TestCreditsAlwaysLetTheDriverFinish(t *testing.T) {
	for depth := 1; depth < 40; depth++ {
		for n := 1; n < 400; n += 7 {
			r := &run{Op: Send, Size: 1, N: n, Depth: depth}
			acks, posted := 0, 0
			for posted < r.N {
				batch := min(r.batch(), r.N-posted)
				if posted+batch <= acks*r.Depth+r.window() {
					posted += batch
					continue
				}
				if posted < min((acks+1)*r.Depth, r.incoming()) {
					t.Fatalf("depth %d: after %d of %d messages the driver waits for answer %d, and the peer for more messages", depth, posted, n, acks+1)
				}
				acks++
			}
			if acks > r.acks() {
				t.Fatalf("depth %d: %d messages need %d answers and get %d", depth, n, acks, r.acks())
			}
			if last := r.acks(); min(last*r.Depth, r.incoming()) != r.N {
				t.Fatalf("depth %d: the last of %d answers does not stand for all %d messages", depth, last, n)
			}
		}
	}
}

func TestRunsThatDoNotFitAreRefused(t *testing.T) {
	good := run{Kind: bandwidth, Op: Write, Size: 64, N: 10, Slots: 4, Depth: 8}
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
		"no depth":            func(r *run) { r.Depth = 0 },
		"more than the depth": func(r *run) { r.Depth = 9 },
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
	f.Add([]byte(`{"kind":"bandwidth","op":"write","size":64,"n":10,"slots":4,"depth":8}`))
	f.Add([]byte(`{"kind":"latency","op":"cmpswap","size":8,"n":99999999999,"slots":1,"depth":1,"seed":18446744073709551615}`))
	f.Add([]byte(`{"op":"read","size":-1,"n":-5,"slots":-9223372036854775808,"depth":0}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		const room, depth = 1 << 20, 64
		var r run
		if json.Unmarshal(line, &r) != nil || r.check(room, depth) != nil {
			return
		}
		for _, k := range []int{0, 1, r.Slots - 1, r.Slots, r.N - 1} {
			if at := r.offset(k); at < 0 || at+r.Size > room {
				t.Fatalf("message %d of %+v is at %d of %d octets", k, r, at, room)
			}
		}
		if r.batch() < 1 || r.batch() > depth || r.window() > windowDepths*depth {
			t.Fatalf("%+v posts %d at once and expects %d", r, r.batch(), r.window())
		}
	})
}
