// The second process: the target of every sample. It obeys the jobs on its
// standard input and ends when that does.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// peerVariable in the environment makes this program another process of a run, in one of
// the roles.
const peerVariable = "WEFT_BENCH_PEER"

const (
	targetRole = "target"
	wireRole   = "wire"  // initiates in a network namespace of its own
	relayRole  = "relay" // carries octets, late
)

// runAs is the whole of such a process.
func runAs(role string, in io.Reader, out io.Writer) error {
	switch role {
	case wireRole:
		return runWire(in, out)
	case relayRole:
		return runRelay(in, out)
	}
	return runPeer(in, out)
}

// runPeer is the whole of the second process, the target.
func runPeer(in io.Reader, out io.Writer) error {
	jobs := make(chan Job)
	done := make(chan Done)
	go listenToInitiator(in, jobs, done)
	e, err := newEnd()
	if err != nil {
		return err
	}
	defer e.close()
	say := json.NewEncoder(out)
	for job := range jobs {
		if err := e.target(job, say, done); err != nil {
			return err
		}
	}
	return nil
}

// listenToInitiator decodes Job and Done in turn. The end of the input is the
// end of the process, whatever it is doing: its initiator is gone.
func listenToInitiator(in io.Reader, jobs chan<- Job, done chan<- Done) {
	dec := json.NewDecoder(in)
	for {
		var j Job
		if dec.Decode(&j) != nil {
			close(jobs)
			return
		}
		jobs <- j
		var d Done
		if dec.Decode(&d) != nil {
			os.Exit(1)
		}
		done <- d
	}
}

// target takes part in one sample. What goes wrong with the sample goes into
// its Outcome; the error is for a conversation that broke.
func (e *end) target(job Job, say *json.Encoder, done <-chan Done) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), job.Limit, fmt.Errorf("time limit of %v for the sample", job.Limit))
	defer cancel()

	ready, do, err := e.prepare(ctx, job)
	if err != nil {
		ready.Err = err.Error()
	}
	if err := say.Encode(ready); err != nil {
		return err
	}
	served, over := make(chan error, 1), make(chan struct{})
	var outcome Outcome
	if ready.Err == "" {
		go func() {
			var err error
			outcome.Served, err = do(over)
			served <- err
		}()
	} else {
		served <- nil
	}

	d := <-done
	close(over)
	if d.Err != "" {
		cancel()
	}
	err = <-served
	if err == nil && d.Err == "" {
		err = e.driver(job.Workload.Peer).verify(job, d.Messages)
	}
	givenUp := d.Err != "" && (errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed))
	if err != nil && !givenUp {
		outcome.Err = err.Error()
	}
	return say.Encode(outcome)
}

// prepare makes everything ready for job up to the listening socket, and
// returns what serves it.
func (e *end) prepare(ctx context.Context, job Job) (Ready, serve, error) {
	if err := setAffinity(job.CPUs); err != nil {
		return Ready{}, nil, err
	}
	stopProfile, err := profile(job.Profile)
	if err != nil {
		return Ready{}, nil, err
	}
	ready, do, err := e.driver(job.Workload.Peer).prepare(ctx, job)
	if err != nil {
		return ready, nil, errors.Join(err, stopProfile())
	}
	used := cpuTime()
	whole := func(over <-chan struct{}) (Served, error) {
		s, err := do(over)
		s.CPU += cpuTime() - used
		return s, errors.Join(err, stopProfile())
	}
	return ready, whole, nil
}
