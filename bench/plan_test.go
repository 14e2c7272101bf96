package main

import (
	"slices"
	"testing"
)

// comparisons is the whole plan, flat.
func comparisons() []Comparison {
	var all []Comparison
	for _, g := range plan() {
		all = append(all, g...)
	}
	return all
}

func TestPlanComparesEveryOperationAtEverySizeWithAndWithoutCRC(t *testing.T) {
	all := comparisons()
	for _, size := range []int{64, 4096, 65536, 1048576} {
		for _, op := range []Op{Write, Read, Send} {
			for _, crc := range []bool{true, false} {
				if !slices.ContainsFunc(all, func(c Comparison) bool {
					return c.Metric == Bandwidth && c.Weft.Op == op && c.Weft.Size == size && c.Weft.CRC == crc
				}) {
					t.Errorf("no bandwidth of %s at %s, crc %v", op, sizeName(size), crc)
				}
			}
		}
	}
	for _, op := range []Op{Write, Send} {
		if !slices.ContainsFunc(all, func(c Comparison) bool {
			return c.Metric == Latency && c.Weft.Op == op && c.Weft.Size == 64
		}) {
			t.Errorf("no half round trip of a 64 B %s", op)
		}
		for _, batch := range []bool{true, false} {
			if !slices.ContainsFunc(all, func(c Comparison) bool {
				return c.Metric == MessageRate && c.Weft.Op == op && c.Weft.Size == 64 && c.Weft.Batch == batch
			}) {
				t.Errorf("no messages a second of %s, batched %v", op, batch)
			}
		}
	}
}

func TestPlanComparesLikeWithLike(t *testing.T) {
	for _, c := range comparisons() {
		if c.Weft.Transport != Weft || c.TCP.Transport != TCP {
			t.Errorf("%v: the sides are %s and %s", c, c.Weft.Transport, c.TCP.Transport)
		}
		if c.Weft.Size != c.TCP.Size || c.Weft.Shape != c.TCP.Shape || c.Weft.Spin != c.TCP.Spin {
			t.Errorf("%v: size, shape or polling differ", c)
		}
	}
}

func TestPlanHasEachComparisonOnce(t *testing.T) {
	seen := map[Comparison]bool{}
	for _, c := range comparisons() {
		if seen[c] {
			t.Errorf("%v appears twice", c)
		}
		seen[c] = true
	}
}

func TestBaselineIsSampledTwiceARoundAndWeftOnce(t *testing.T) {
	for _, g := range plan() {
		for round := range 4 {
			count := map[Workload]int{}
			for _, w := range g.workloads(round) {
				count[w]++
			}
			for _, c := range g {
				if count[c.TCP] != 2 || count[c.Weft] != 1 {
					t.Errorf("round %d: %v sampled %d times, %v %d times; want 2 and 1",
						round, c.TCP, count[c.TCP], c.Weft, count[c.Weft])
				}
			}
		}
	}
}

func TestBaselineDoesNotAlwaysComeFirst(t *testing.T) {
	for _, g := range plan() {
		first := map[Workload]bool{}
		for round := range 3 {
			first[g.workloads(round)[0]] = true
		}
		if len(first) < 2 {
			t.Errorf("group of %v: three rounds begin with the same workload", g[0])
		}
	}
}

func TestFilterDropsWhatIsNotKept(t *testing.T) {
	kept := filter(plan(), func(c Comparison) bool { return c.Metric == Latency })
	if len(kept) == 0 {
		t.Fatal("nothing kept")
	}
	for _, g := range kept {
		for _, c := range g {
			if c.Metric != Latency {
				t.Errorf("%v was kept", c)
			}
		}
	}
	if none := filter(plan(), func(Comparison) bool { return false }); len(none) != 0 {
		t.Errorf("%d empty groups kept", len(none))
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
