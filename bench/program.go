// Peers that are programs of their own, in C: one process an end and sample.
// What they print is in c/bench.h.

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"time"
)

// A program does samples by running Job.Program. It inherits the processors of
// the process that starts it.
type program struct{ unverified }

// An instance is one end's process in one sample.
type instance struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr bytes.Buffer
}

// start runs job's program in the given role.
func start(ctx context.Context, job Job, role, host, port string) (*instance, error) {
	w := job.Workload
	batch := 0
	if w.Batch {
		batch = gatherSize
	}
	// RMA needs a window of whole messages, ping-pong one of some octets.
	i := &instance{cmd: exec.CommandContext(ctx, job.Program,
		"role="+role, "address="+host, "port="+port, "shape="+programShape(w), "op="+string(w.Op), "congestion="+job.Congestion,
		fmt.Sprint("size=", w.Size), fmt.Sprint("window=", w.window()), fmt.Sprint("batch=", batch),
		fmt.Sprint("polling=", digit(w.Polling)), fmt.Sprint("shared=", digit(job.Shared)),
		fmt.Sprint("connections=", w.connections()),
		fmt.Sprint("warmup=", job.Warmup.Nanoseconds()), fmt.Sprint("sample=", job.Sample.Nanoseconds()),
		fmt.Sprint("seed=", job.Seed%256))}
	i.cmd.Stderr = &i.stderr
	i.cmd.WaitDelay = time.Second
	out, err := i.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	i.stdout = bufio.NewReader(out)
	return i, i.cmd.Start()
}

// programShape is the shape as the programs spell it.
func programShape(w Workload) string { return strings.ReplaceAll(string(w.Shape), "-", "") }

func digit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// hear reads a line that begins with word, and its numbers.
func (i *instance) hear(word string, numbers ...any) error {
	line, err := i.stdout.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	rest, ok := strings.CutPrefix(line, word+" ")
	if !ok {
		return fmt.Errorf("the program said %q, should say %q", strings.TrimSpace(line), word)
	}
	_, err = fmt.Sscan(rest, numbers...)
	return err
}

// end waits for the process and adds to err what it said about the reason.
func (i *instance) end(ctx context.Context, err error) error {
	if werr := i.cmd.Wait(); werr != nil {
		err = errors.Join(context.Cause(ctx), fmt.Errorf("%s: %w", i.cmd.Args[0], werr))
	}
	if err != nil && i.stderr.Len() > 0 {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(i.stderr.Bytes()))
	}
	return err
}

func (program) prepare(ctx context.Context, job Job) (ready Ready, do serve, err error) {
	i, err := start(ctx, job, "target", cmp.Or(job.Address, loopback), "0")
	if err != nil {
		return ready, nil, err
	}
	var port string
	if err := i.hear("ready", &port); err != nil {
		return ready, nil, i.end(ctx, err)
	}
	do = func(<-chan struct{}) (s Served, err error) {
		err = i.hear("served", &s.CPU)
		return s, i.end(ctx, err)
	}
	return Ready{Addr: net.JoinHostPort(cmp.Or(job.Address, loopback), port)}, do, nil
}

func (program) initiate(ctx context.Context, job Job, ready Ready) (s Sample, err error) {
	host, port, err := net.SplitHostPort(ready.Addr)
	if err != nil {
		return s, err
	}
	i, err := start(ctx, job, "initiator", host, port)
	if err != nil {
		return s, err
	}
	err = i.hear("sample", &s.Messages, &s.Total, &s.Elapsed, &s.CPU, &s.Trips[0], &s.Trips[1], &s.Trips[2], &s.Trips[3])
	return s, i.end(ctx, err)
}
