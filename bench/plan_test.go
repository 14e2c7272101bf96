package main

import (
	"slices"
	"testing"
)

// everything is the whole plan, flat.
func everything() []Workload {
	var all []Workload
	for _, g := range plan() {
		all = append(all, g.all()...)
	}
	return all
}

func TestPlanHasEveryOperationAtEverySizeWithAndWithoutCRC(t *testing.T) {
	all := everything()
	for _, size := range []int{64, 4096, 65536, 1048576} {
		for _, op := range []Op{Write, Read, Send} {
			for _, w := range crcs(weftStream(op, size, true, false)) {
				if !slices.Contains(all, w) {
					t.Errorf("there is no %v", w)
				}
			}
			if f := raw(Stream, size).with(Fabric, op); !slices.Contains(all, f) {
				t.Errorf("there is no %v", f)
			}
		}
		for _, w := range []Workload{raw(Stream, size), raw(Stream, size).with(TCPGo, Octets), raw(Stream, size).with(GRPC, Message)} {
			if !slices.Contains(all, w) {
				t.Errorf("there is no %v", w)
			}
		}
	}
}

func TestPlanComparesLikeWithLike(t *testing.T) {
	for _, g := range plan() {
		for _, w := range g.Others {
			b := g.Baseline
			size := w.Size == b.Size || w.Op == FetchAdd || w.Shape == Register // of 8 octets always; of any number
			if b != (Workload{}) && (!size || w.Shape != b.Shape || w.Polling != b.Polling || w.Unpinned != b.Unpinned) {
				t.Errorf("%v is set against %v: size, shape, polling or pinning differ", w, b)
			}
			if w.CRC && !w.Peer.hasCRC() {
				t.Errorf("%v has no CRC", w)
			}
		}
	}
}

func TestPlanHasEachWorkloadOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range everything() {
		if seen[w.String()] {
			t.Errorf("%v appears twice", w)
		}
		seen[w.String()] = true
	}
}

func TestBaselineIsSampledTwiceARoundAndOthersOnce(t *testing.T) {
	for _, g := range plan() {
		for round := range 4 {
			count := map[Workload]int{}
			for _, w := range g.order(round) {
				count[w]++
			}
			if g.Baseline != (Workload{}) && count[g.Baseline] != 2 {
				t.Errorf("round %d: %v sampled %d times, want 2", round, g.Baseline, count[g.Baseline])
			}
			for _, w := range g.Others {
				if count[w] != 1 {
					t.Errorf("round %d: %v sampled %d times, want 1", round, w, count[w])
				}
			}
		}
	}
}

func TestBaselineDoesNotAlwaysComeFirst(t *testing.T) {
	for _, g := range plan() {
		if g.Baseline == (Workload{}) {
			continue
		}
		first := map[Workload]bool{}
		for round := range 3 {
			first[g.order(round)[0]] = true
		}
		if len(first) < 2 {
			t.Errorf("group of %v: three rounds begin with the same workload", g.Baseline)
		}
	}
}

func TestFilterKeepsTheBaselineOfWhatIsKept(t *testing.T) {
	kept := filter(plan(), func(w Workload) bool { return w.Op == FetchAdd && w.Polling })
	if len(kept) != 1 || kept[0].Baseline != atomics().Baseline || len(kept[0].Others) != 2 {
		t.Errorf("kept %+v", kept)
	}
	if none := filter(plan(), func(Workload) bool { return false }); len(none) != 0 {
		t.Errorf("%d empty groups kept", len(none))
	}
}

func TestWithoutACompilerPlainTCPInGoIsTheBaseline(t *testing.T) {
	inC := func(p Peer) bool { return p == TCPC || p == Fabric }
	for _, g := range without(plan(), inC) {
		for _, w := range g.all() {
			if inC(w.Peer) {
				t.Errorf("%v is still there", w)
			}
		}
		if g.Metric == Bandwidth && (g.Baseline.Peer != TCPGo || slices.Contains(g.Others, g.Baseline)) {
			t.Errorf("the baseline is %v, among others %v", g.Baseline, slices.Contains(g.Others, g.Baseline))
		}
	}
}

func TestWindowIsAWholeNumberOfMessages(t *testing.T) {
	for _, c := range []struct{ size, slots int }{
		{64, windowSize / 64}, {4096, windowSize / 4096}, {windowSize, 1}, {1 << 20, 1}, {100, windowSize / 100},
	} {
		w := Workload{Size: c.size}
		if w.slots() != c.slots || w.window() != c.slots*c.size {
			t.Errorf("size %d: %d slots in %d octets, want %d", c.size, w.slots(), w.window(), c.slots)
		}
	}
}

func TestSizesAreNamedInTheLargestUnitThatDividesThem(t *testing.T) {
	for n, want := range map[int]string{64: "64B", 1000: "1000B", 4096: "4KiB", 65536: "64KiB", 1 << 20: "1MiB", 1<<20 + 1: "1048577B"} {
		if got := sizeName(n); got != want {
			t.Errorf("sizeName(%d) = %s, want %s", n, got, want)
		}
	}
}
