// The second process as the first one sees it, and one sample with it.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// A peer is the second process. It belongs to one goroutine.
type peer struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	say    *json.Encoder
	hear   *json.Decoder
	stderr bytes.Buffer // for the message when it dies
}

// startPeer starts this very program again, in the given role and with attributes of its
// own, which may be nil. It dies with ctx.
func startPeer(ctx context.Context, role string, attributes *syscall.SysProcAttr) (*peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &peer{cmd: exec.CommandContext(ctx, self)}
	p.cmd.Env = append(os.Environ(), peerVariable+"="+role)
	p.cmd.SysProcAttr = attributes
	p.cmd.Stderr = &p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.say, p.hear = in, json.NewEncoder(in), json.NewDecoder(out)
	return p, p.cmd.Start()
}

// close ends the process and waits for it.
func (p *peer) close() error {
	p.stdin.Close()
	return p.explain(p.cmd.Wait())
}

// explain adds to err what the process said on its way out.
func (p *peer) explain(err error) error {
	if err == nil || p.stderr.Len() == 0 {
		return err
	}
	return fmt.Errorf("%w; the second process said: %s", err, bytes.TrimSpace(p.stderr.Bytes()))
}

// errBroken marks that the conversation with the second process broke, as
// opposed to a sample that failed.
var errBroken = errors.New("lost the second process")

func (p *peer) send(what any) error {
	if err := p.say.Encode(what); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}

func (p *peer) listen(what any) error {
	if err := p.hear.Decode(what); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}

// sample runs one sample of job, with e as the initiator on its processors.
func (p *peer) sample(ctx context.Context, e *end, job Job, cpus []int, profileName string) (Sample, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, job.Limit, fmt.Errorf("time limit of %v for the sample", job.Limit))
	defer cancel()
	if err := setAffinity(cpus); err != nil {
		return Sample{}, err
	}
	job.Remotes = e.driver(job.Workload.Peer).offer(job)
	if err := p.send(job); err != nil {
		return Sample{}, err
	}
	var ready Ready
	if err := p.listen(&ready); err != nil {
		return Sample{}, err
	}

	var s Sample
	var err error
	if ready.Err != "" {
		err = errors.New(ready.Err)
	} else {
		s, err = e.initiateBy(ctx, job, ready, profileName)
	}

	done := Done{Messages: s.Total}
	if err != nil {
		done.Err = err.Error()
	}
	if terr := p.send(done); terr != nil {
		return s, terr
	}
	var outcome Outcome
	if herr := p.listen(&outcome); herr != nil {
		return s, herr
	}
	s.CPU += outcome.CPU
	s.Octets = max(s.Octets, outcome.Octets)
	switch {
	case outcome.Err == "":
		return s, err
	case err == nil:
		return s, fmt.Errorf("the target: %s", outcome.Err)
	}
	return s, fmt.Errorf("%w; the target: %s", err, outcome.Err)
}

// initiateBy is initiate over the path of job.
func (e *end) initiateBy(ctx context.Context, job Job, ready Ready, profileName string) (s Sample, err error) {
	if job.Workload.Path != Delayed {
		return e.initiate(ctx, job, ready, profileName)
	}
	r, err := startRelay(ctx, ready.Addr)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	ready.Addr = r.addr
	return e.initiate(ctx, job, ready, profileName)
}

// initiate is the active end of job, with a profile and the processor's time.
func (e *end) initiate(ctx context.Context, job Job, ready Ready, profileName string) (s Sample, err error) {
	stopProfile, err := profile(profileName)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, stopProfile()) }()
	used := cpuTime()
	s, err = e.driver(job.Workload.Peer).initiate(ctx, job, ready)
	s.CPU += cpuTime() - used
	return s, err
}
