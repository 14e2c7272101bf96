package main

import (
	"io"
	"strings"
	"testing"
)

func TestVerifyNoticesDataThatDidNotArrive(t *testing.T) {
	e, err := newWeftEnd()
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	stream := Workload{Peer: Weft, Shape: Stream, Op: Write, Size: 4096}
	pingpong := Workload{Peer: Weft, Shape: PingPong, Op: Send, Size: 64}
	for _, w := range []Workload{stream, pingpong} {
		job := Job{Workload: w, Seed: 3}
		e.lay(job, false)
		if err := e.verify(job, 1); err == nil {
			t.Errorf("%v: cleared memory passes for data", w)
		}
	}
	job := Job{Workload: stream, Seed: 3}
	e.lay(job, true)
	if err := e.verify(job, 1<<40); err != nil {
		t.Errorf("a whole window of data is refused: %v", err)
	}
	e.areas[0].memory[stream.window()-1] ^= 1
	if err := e.verify(job, 1<<40); err == nil {
		t.Error("a wrong octet at the end of the window went unnoticed")
	}
	if err := e.verify(job, 1); err != nil {
		t.Errorf("after one message the rest of the window was looked at: %v", err)
	}
}

func TestPaceKeepsWithinItsQueues(t *testing.T) {
	for _, size := range append([]int{1, 100, windowSize + 1}, sizes...) {
		p := paceOf(Workload{Size: size})
		if p.list < 1 || p.depth < p.list || p.sends <= p.depth {
			t.Errorf("size %d: lists of %d, %d in flight, send queue of %d", size, p.list, p.depth, p.sends)
		}
		// One receive more than the credits is for the end of the stream. A
		// credit must cover a list, or the sender could wait forever.
		if p.credits() < p.list || p.receives <= p.credits() || p.credit < 1 {
			t.Errorf("size %d: lists of %d, %d credits of %d each, receive queue of %d", size, p.list, p.credits(), p.credit, p.receives)
		}
		if p.credit%p.list != 0 {
			t.Errorf("size %d: a credit of %d does not fit receives posted again in lists of %d", size, p.credit, p.list)
		}
	}
}

func TestUnknownCongestionControlIsAnError(t *testing.T) {
	var errs strings.Builder
	args := []string{"--rounds", "1", "--sample", "1ms", "--no-pin", "--congestion", "nonsense"}
	if status := command(t.Context(), args, io.Discard, &errs); status != exitError || !strings.Contains(errs.String(), "congestion control") {
		t.Errorf("status %d, said %q", status, errs.String())
	}
}

func TestEveryConnectionHasMemoryOfItsOwn(t *testing.T) {
	e, err := newWeftEnd()
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	job := Job{Workload: Workload{Peer: Weft, Shape: Stream, Op: Write, Size: maxSize, Connections: 2}, Seed: 3}
	remotes := e.lay(job, true)
	if len(remotes) != 2 || remotes[0].STag == remotes[1].STag {
		t.Errorf("remotes = %+v", remotes)
	}
	e.areas[1].memory[0] ^= 1
	if err := e.verify(job, 2); err == nil {
		t.Error("a wrong octet of the second connection went unnoticed")
	}
}

func TestASumThatIsWrongIsNoticed(t *testing.T) {
	e, err := newWeftEnd()
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	job := Job{Workload: atomics().Others[0]}
	e.lay(job, false)
	if err := e.verify(job, 0); err != nil {
		t.Error(err)
	}
	if err := e.verify(job, 1); err == nil {
		t.Error("an addition is missing and nobody says so")
	}
}
