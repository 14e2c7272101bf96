package perf

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-rdma/weft/internal/chart"
)

// drawn is the picture of a report, which has to be XML.
func drawn(t *testing.T, rep *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := rep.WritePlot(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); err == io.EOF {
			return text
		} else if err != nil {
			t.Fatalf("not XML: %v", err)
		}
	}
}

func TestPlotIsSVGWithALineAnOperationAndPlainTCP(t *testing.T) {
	text := drawn(t, sampleReport())
	for _, want := range []string{
		"<svg", ">write, CRC on<", ">write, CRC off<", ">send, CRC on<", ">plain TCP<", ">64 B<", ">1 MiB<", "GB/s, higher is better<", "messages/s, higher is better<", "ratio to plain TCP, higher is better<", ">message size",
		">write 64 B, CRC on<", ">fetchadd 8 B, CRC on, whole<", ">plain TCP 64 B<", ">plain TCP 8 B, whole<", "us, lower is better<",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the plot does not show %q", want)
		}
	}
	for _, other := range []string{">fetchadd, CRC", ">write 1 MiB"} {
		if strings.Contains(text, other) {
			t.Errorf("the plot shows %q", other)
		}
	}
}

func TestPlotOfOperationsOfOneSizeIsOfLatencyAlone(t *testing.T) {
	rep := sampleReport()
	rep.Results = rep.Results[4:]
	text := drawn(t, rep)
	if strings.Contains(text, "GB/s") || !strings.Contains(text, ">fetchadd 8 B, CRC on, whole<") {
		t.Errorf("the plot is %s", text)
	}
}

func TestPlotOfNothingIsAnError(t *testing.T) {
	if err := new(Report).WritePlot(io.Discard); err == nil {
		t.Error("a plot of nothing was no error")
	}
}

func TestQuantilesRiseToTheLastOfAll(t *testing.T) {
	got := quantiles([]Bucket{{From: 1000, To: 2000, Count: 50}, {From: 2000, To: 3000, Count: 49}, {From: 8000, To: 9000, Count: 1}})
	want := []chart.Point{{X: 1, Y: 1}, {X: 2, Y: 2}, {X: 100, Y: 3}, {X: 100, Y: 9}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("quantiles (-want +got):\n%s", diff)
	}
}

func TestALongRunIsDrawnOverTime(t *testing.T) {
	rep := sampleReport()
	r := &rep.Results[1]
	for i := range 12 {
		r.OverTime = append(r.OverTime, Moment{float64(i), 5e9 + float64(i)*1e8})
		r.TCPOverTime = append(r.TCPOverTime, Moment{float64(i), 6e9})
	}
	if text := drawn(t, rep); !strings.Contains(text, ">write 1 MiB, CRC on<") || !strings.Contains(text, "Bandwidth over time") {
		t.Error("bandwidth over time is missing")
	}
}

func TestAPlotSaysHowMuchWasUnderWay(t *testing.T) {
	rep := sampleReport()
	rep.Settings.Connections, rep.Settings.Consumers, rep.Settings.Depth = 4, 1, 128
	if text := drawn(t, rep); !strings.Contains(text, ">message size   (connections: 4, consumers at each end: 1, queue depth: 128)<") ||
		!strings.Contains(text, ">percentile   (connections: 4") {
		t.Error("the plot does not say so")
	}
	rep.Settings.Consumers = 0
	if text := drawn(t, rep); !strings.Contains(text, ">message size   (connections: 4, queue depth: 128)<") {
		t.Error("the plot does not say so without consumers")
	}
}
