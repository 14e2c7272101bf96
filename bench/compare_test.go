package main

import (
	"strings"
	"testing"
)

// documentWith has a row with that ratio to plain TCP and that processor time.
func documentWith(ratio, cpu float64) Document {
	return Document{Results: []Row{
		{Peer: TCPC, Work: "octets stream", Size: 64, Better: "higher", Figures: &Figures{CPU: 1}},
		{Peer: Weft, Work: "write stream, batched", Size: 64, CRC: true, Better: "higher", Figures: &Figures{Ratio: ratio, CPU: cpu}},
	}}
}

func TestAMedianBeyondTheGateIsWorse(t *testing.T) {
	for _, c := range []struct {
		name          string
		ratios, cpus  []float64
		ratio, cpuBad bool
	}{
		{"as before", []float64{10, 11, 9, 10}, []float64{100, 90, 110, 100}, false, false},
		{"within the gate", []float64{8, 8, 8, 8}, []float64{125, 125, 125, 125}, false, false},
		{"slower", []float64{7, 7, 7, 7}, []float64{100, 100, 100, 100}, true, false},
		{"dearer", []float64{10, 10, 10, 10}, []float64{140, 150, 135, 131}, false, true},
		{"better", []float64{30, 30, 30, 30}, []float64{10, 10, 10, 10}, false, false},
		{"turns do not agree", []float64{7, 7, 11, 11}, []float64{150, 150, 90, 90}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after []Document
			for i := range c.ratios {
				before = append(before, documentWith(10, 100))
				after = append(after, documentWith(c.ratios[i], c.cpus[i]))
			}
			all := drifts(before, after)
			if len(all) != 2 {
				t.Fatalf("drifts = %+v, want the ratio and the processor time of one row", all)
			}
			if all[0].worse(1.3) != c.ratio || all[1].worse(1.3) != c.cpuBad {
				t.Errorf("worse: %v and %v, want %v and %v", all[0].worse(1.3), all[1].worse(1.3), c.ratio, c.cpuBad)
			}
		})
	}
}

func TestCompareTakesTwoCommits(t *testing.T) {
	for _, args := range [][]string{{"compare"}, {"compare", "HEAD"}, {"compare", "--gate", "1", "a", "b"}} {
		var out, errs strings.Builder
		if status := command(t.Context(), args, &out, &errs); status != exitUsage {
			t.Errorf("%v: status %d, want %d", args, status, exitUsage)
		}
	}
}

// TestFilesAreComparedByPeer has files served by Weft over RDMA and TCP in the same rows.
func TestFilesAreComparedByPeer(t *testing.T) {
	served := func(rdma, tcp float64) []Document {
		row := Row{Work: "read file", Size: 4096, Better: "higher"}
		over := func(p Peer, ratio float64) Row {
			r := row
			r.Peer, r.Figures = p, &Figures{Ratio: ratio, RatioTo: GoNFS}
			return r
		}
		return []Document{{Results: []Row{over(GoNFS, 1), over(WeftTCP, tcp), over(WeftRDMA, rdma)}}}
	}
	all := drifts(served(4, 2), served(2, 8))
	if len(all) != 1 || all[0].figure != "ratio to go-nfs" || !strings.Contains(all[0].row, "weft-rdma") || !all[0].worse(1.3) {
		t.Errorf("drifts = %+v, want that of weft-rdma alone, which is worse", all)
	}
}
