package perf

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBucketsFollowEachOtherAndAreNarrow(t *testing.T) {
	for i := range histogramLen {
		from, to := lowerBound(i), lowerBound(i+1)
		if from >= to || float64(to-from) > max(float64(from)/perOctave, 1) {
			t.Fatalf("bucket %d is %d to %d ns", i, from, to)
		}
		if bucketOf(from) != i || bucketOf(to-1) != i {
			t.Fatalf("bucket %d is %d to %d ns, which are found in %d and %d", i, from, to, bucketOf(from), bucketOf(to-1))
		}
	}
	if got := bucketOf(1<<63 - 1); got != histogramLen-1 {
		t.Errorf("the longest duration is in bucket %d, want the last, %d", got, histogramLen-1)
	}
	if got := bucketOf(-1); got != 0 {
		t.Errorf("a clock that went back is in bucket %d, want the first", got)
	}
}

func TestHistogramLosesNothing(t *testing.T) {
	var h histogram
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		h.add(time.Duration(random.Int64() >> random.IntN(60)))
	}
	list := h.buckets()
	if n := total(list); n != 1000 {
		t.Errorf("%d of 1000 are in the buckets", n)
	}
	drawn := 0
	for _, row := range newBars(list, nil, time.Microsecond) {
		drawn += row.counts[0]
	}
	if drawn != 1000 {
		t.Errorf("%d of 1000 are in the rows", drawn)
	}
}

func TestHistogramIsDrawnBesideThatOfPlainTCP(t *testing.T) {
	var rdma, tcp histogram
	for range 60 {
		rdma.add(2 * time.Microsecond)
		tcp.add(4 * time.Microsecond)
	}
	for range 39 {
		rdma.add(3 * time.Microsecond)
		tcp.add(4 * time.Microsecond)
	}
	rdma.add(time.Second)
	tcp.add(2 * time.Microsecond)
	rep := &Report{Results: []Result{{
		Op: Write, Size: 64, CRC: true, LatencyIs: "half round trip",
		Latency:    Latency{P99: 3000, Histogram: rdma.buckets()},
		TCPLatency: TCPLatency{P99: 4000, Histogram: tcp.buckets()},
	}}}
	var b bytes.Buffer
	if err := rep.WriteHistograms(&b); err != nil {
		t.Fatal(err)
	}
	want := `
write of 64 B, CRC on: half round trips, 100 of RDMA and 100 of plain TCP
    FROM        TO  RDMA                              TCP
 1.92 us   2.05 us  ###############           60.0 %                             1.0 %
 2.05 us   2.30 us                             0.0 %                             0.0 %
 2.30 us   2.56 us                             0.0 %                             0.0 %
 2.56 us   2.82 us                             0.0 %                             0.0 %
 2.82 us   3.07 us  #########                 39.0 %                             0.0 %
 3.07 us   3.33 us                             0.0 %                             0.0 %
 3.33 us   3.58 us                             0.0 %                             0.0 %
 3.58 us   3.84 us                             0.0 %                             0.0 %
 3.84 us   4.10 us                             0.0 %  ########################  99.0 %
 4.10 us      more                             1.0 %                             0.0 %
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("histogram (-want +got):\n%s", diff)
	}
}

func TestHistogramOfManyBucketsHasFewRows(t *testing.T) {
	var h histogram
	for i := range histogramLen {
		h.add(lowerBound(i))
	}
	for _, most := range []time.Duration{1, time.Microsecond, time.Millisecond, time.Hour} {
		if n := len(newBars(h.buckets(), nil, most)); n > maxBars+1 {
			t.Errorf("up to %v there are %d rows", most, n)
		}
	}
	var b strings.Builder
	drawHistograms(&b, nil, nil, 0) // nothing was measured
	if strings.Contains(b.String(), "#") {
		t.Errorf("a histogram of nothing: %s", b.String())
	}
}
