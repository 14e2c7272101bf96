package main

import (
	"slices"
	"testing"
)

// A goal without a measurement would never be missed.
func TestBothSidesOfEveryGoalAreMeasured(t *testing.T) {
	all := everything()
	for _, g := range goals() {
		if g.Of.Peer != Weft && g.Of.Peer != WeftRDMA && g.Of.Peer != Perftest || !slices.Contains(all, g.Of) {
			t.Errorf("%v is not measured", g.Of)
		}
		if g.Against != (Workload{}) && !slices.Contains(all, g.Against) {
			t.Errorf("%v is set against %v, which is not measured", g.Of, g.Against)
		}
	}
}

func TestEveryWorkThatLibfabricCanDoHasAGoal(t *testing.T) {
	against := map[Workload]bool{}
	for _, g := range goals() {
		against[g.Against] = true
	}
	for _, w := range everything() {
		if w.Peer == Fabric && !against[w] {
			t.Errorf("nothing is set against %v", w)
		}
	}
}

func TestGoalsAreJudgedByTheBetterWay(t *testing.T) {
	up, down := Goal{Least: 0.85, Aim: 0.95}, Goal{Least: 1.10, Aim: 1.05}
	for _, c := range []struct {
		name   string
		goal   Goal
		figure float64
		higher bool
		want   Verdict
		short  float64
	}{
		{"above the aim", up, 0.96, true, AimReached, 0},
		{"at the aim", up, 0.95, true, AimReached, 0},
		{"between", up, 0.9, true, Reached, 0},
		{"at the goal", up, 0.85, true, Reached, 0},
		{"below", up, 0.425, true, Missed, 0.5},
		{"lower than the aim, lower is better", down, 1.0, false, AimReached, 0},
		{"between, lower is better", down, 1.07, false, Reached, 0},
		{"above, lower is better", down, 1.65, false, Missed, 0.5},
		{"no aim is named", Goal{Least: 1}, 5, true, Reached, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, short := c.goal.judge(c.figure, c.higher)
			if d := short - c.short; v != c.want || d > 1e-9 || d < -1e-9 {
				t.Errorf("judged %s, short %v; want %s, %v", v, short, c.want, c.short)
			}
		})
	}
}

func TestAVerdictSaysWhereTheRoundsDoNotAgree(t *testing.T) {
	for _, c := range []struct {
		mark Mark
		want string
	}{
		{Mark{Better: "higher", Min: 0.9, Max: 1.1, Goal: 0.85, Verdict: Reached}, "met"},
		{Mark{Better: "higher", Min: 0.8, Max: 1.1, Goal: 0.85, Verdict: AimReached}, "aim met (median)"},
		{Mark{Better: "higher", Min: 0.5, Max: 0.9, Goal: 0.85, Verdict: Missed, Short: 0.1}, "missed by 10 % (median)"},
		{Mark{Better: "higher", Min: 0.5, Max: 0.6, Goal: 0.85, Verdict: Missed, Short: 0.3}, "missed by 30 %"},
		{Mark{Better: "lower", Min: 1.0, Max: 1.05, Goal: 1.1, Verdict: Reached}, "met"},
		{Mark{Better: "lower", Min: 1.0, Max: 1.2, Goal: 1.1, Verdict: Reached}, "met (median)"},
		{Mark{Better: "lower", Min: 1.0, Max: 1.4, Goal: 1.1, Verdict: Missed, Short: 0.2}, "missed by 20 % (median)"},
		{Mark{Better: "lower", Min: 1.2, Max: 1.4, Goal: 1.1, Verdict: Missed, Short: 0.001}, "missed by 1 %"},
	} {
		if got := c.mark.verdict(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.mark, got, c.want)
		}
	}
}
