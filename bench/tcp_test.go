package main

import (
	"runtime"
	"testing"
	"time"
)

func TestTCPSamplesCountTheirMessages(t *testing.T) {
	for _, w := range []Workload{
		{Transport: TCP, Shape: Stream, Op: Octets, Size: 64},
		{Transport: TCP, Shape: Stream, Op: Octets, Size: 64, Batch: true},
		{Transport: TCP, Shape: Stream, Op: Octets, Size: 1 << 20},
		{Transport: TCP, Shape: PingPong, Op: Octets, Size: 64},
		{Transport: TCP, Shape: PingPong, Op: Octets, Size: 64, Spin: true},
	} {
		t.Run(w.String(), func(t *testing.T) {
			if w.Spin && !canSpin() {
				if runtime.GOOS == "linux" {
					t.Fatal("a socket cannot be polled")
				}
				t.Skip("polling a socket is not supported on this system")
			}
			ctx := t.Context()
			job := Job{Workload: w, Warmup: time.Millisecond, Sample: 5 * time.Millisecond, Seed: 1}
			ln, err := listen(ctx, "")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			served := make(chan error, 1)
			go func() {
				nc, err := accept(ctx, ln)
				if err == nil {
					err = tcpServe(ctx, nc, job)
				}
				served <- err
			}()
			nc, err := dial(ctx, ln.Addr().String(), "")
			if err != nil {
				t.Fatal(err)
			}
			s, err := tcpInitiate(ctx, nc, job)
			if err != nil {
				t.Fatal(err)
			}
			if err := <-served; err != nil {
				t.Errorf("target: %v", err)
			}
			if s.Messages == 0 || s.Total < s.Messages || s.Elapsed < job.Sample {
				t.Errorf("sample = %+v", s)
			}
			if w.Shape == PingPong && (s.P50 <= 0 || s.P99 < s.P50) {
				t.Errorf("p50 %v, p99 %v", s.P50, s.P99)
			}
		})
	}
}

func TestGatherKeepsTheMessagesInOrder(t *testing.T) {
	if got := string(gather(nil, []byte("aabbcc"), 2)); got != "aabbcc" {
		t.Errorf("gather = %q", got)
	}
}

func TestGatheringDoesNotAllocate(t *testing.T) {
	window, buf := make([]byte, 4096), make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { buf = gather(buf[:0], window, 64) }); n != 0 {
		t.Errorf("%v allocations a chunk", n)
	}
}
