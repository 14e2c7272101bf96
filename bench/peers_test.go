package main

import (
	"strings"
	"testing"
	"time"
)

func TestTheCompilersComplaintIsTold(t *testing.T) {
	said := "In file included\nfabric.c:10:10: fatal error: rdma/fabric.h: No such file or directory\n   10 | #include\n"
	if got := complaint([]byte(said)); got != "rdma/fabric.h: No such file or directory" {
		t.Errorf("complaint = %q", got)
	}
	if got := complaint([]byte("ld: cannot find -lfabric\nmore\n")); got != "ld: cannot find -lfabric" {
		t.Errorf("complaint = %q", got)
	}
}

// programs compiles the peers in C; without a compiler it skips.
func programs(t *testing.T) *Peers {
	t.Helper()
	p, err := findPeers(t.Context(), func(p Peer) bool { return p == TCPC || p == Fabric }, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.close() })
	if p.missing(TCPC) {
		t.Skip(p.Missing)
	}
	return p
}

func TestAProgramsComplaintIsTheSamplesError(t *testing.T) {
	p := programs(t)
	job := Job{
		Workload: raw(PingPong, small), Program: p.programs[TCPC], Sample: time.Millisecond, Congestion: "nonsense",
	}
	_, _, err := program{}.prepare(t.Context(), job)
	if err == nil || !strings.Contains(err.Error(), "congestion control nonsense") {
		t.Errorf("prepare gave %v", err)
	}
}

// TestWhatArrivesWrongIsNoticedByThePrograms lets libfabric's two ends have
// different ideas of the data.
func TestWhatArrivesWrongIsNoticedByThePrograms(t *testing.T) {
	p := programs(t)
	if p.missing(Fabric) {
		t.Skip(p.Missing)
	}
	job := Job{
		Workload: raw(Stream, maxSize).with(Fabric, Write), Program: p.programs[Fabric], Shared: true,
		Sample: time.Millisecond, Seed: 1,
	}
	ready, serve, err := program{}.prepare(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		_, err := serve(nil)
		served <- err
	}()
	job.Seed = 2
	_, ierr := program{}.initiate(t.Context(), job, ready)
	if err := <-served; err == nil || !strings.Contains(err.Error(), "did not arrive as sent") {
		t.Errorf("the target said %v, the initiator %v", err, ierr)
	}
}
