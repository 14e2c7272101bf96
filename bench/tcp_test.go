package main

import (
	"runtime"
	"testing"
	"time"
)

func TestTCPSamplesCountTheirMessages(t *testing.T) {
	workloads := []Workload{
		{Peer: TCPGo, Shape: Stream, Op: Octets, Size: 64},
		{Peer: TCPGo, Shape: Stream, Op: Octets, Size: 64, Batch: true},
		{Peer: TCPGo, Shape: Stream, Op: Octets, Size: 1 << 20},
		{Peer: TCPGo, Shape: PingPong, Op: Octets, Size: 64},
	}
	if canSpin() {
		workloads = append(workloads, Workload{Peer: TCPGo, Shape: PingPong, Op: Octets, Size: 64, Polling: true})
	} else if runtime.GOOS == "linux" {
		t.Error("a socket cannot be polled")
	}
	for _, w := range workloads {
		t.Run(w.String(), func(t *testing.T) {
			job := Job{Workload: w, Warmup: time.Millisecond, Sample: 5 * time.Millisecond, Seed: 1}
			s := sampleOf(t, tcpDriver{}, job)
			if s.Messages == 0 || s.Total < s.Messages || s.Elapsed < job.Sample {
				t.Errorf("sample = %+v", s)
			}
			if w.Shape == PingPong && (s.Trips[0] <= 0 || s.Trips[2] < s.Trips[0]) {
				t.Errorf("round trips %v", s.Trips)
			}
		})
	}
}

// sampleOf takes one sample with d at both ends, in this process.
func sampleOf(t *testing.T, d driver, job Job) Sample {
	t.Helper()
	job.Limit = sampleGrace
	job.Remotes = d.offer(job)
	ready, serve, err := d.prepare(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		_, err := serve(nil)
		served <- err
	}()
	s, err := d.initiate(t.Context(), job, ready)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Errorf("target: %v", err)
	}
	return s
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
