// This file starts the other end as a child process.

package perf

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// announcement begins the line by which a child process gives its address.
const announcement = "listening on "

// Announce writes the line with the address.
func Announce(w io.Writer, addr fmt.Stringer) error {
	_, err := fmt.Fprintf(w, "%s%s\n", announcement, addr)
	return err
}

// A Child is a peer in a process of its own.
type Child struct {
	Address string // where it listens

	cmd   *exec.Cmd
	stdin io.Closer
	said  *tail
}

// childTime bounds the wait for a child to begin and to end.
const childTime = 10 * time.Second

// StartChild starts the program exe with args as a peer and waits for its
// announcement. The child has to exit at the end of its standard input, which ends
// with this process in any case.
func StartChild(ctx context.Context, exe string, args ...string) (*Child, error) {
	c := &Child{cmd: exec.CommandContext(ctx, exe, args...), said: new(tail)}
	c.cmd.Stderr = c.said
	c.cmd.WaitDelay = childTime
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	c.stdin = stdin
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the other end: %w", err)
	}
	timer := time.AfterFunc(childTime, func() { c.cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	timer.Stop()
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), announcement)
	if err != nil || !ok {
		c.cmd.Process.Kill()
		return nil, errors.Join(fmt.Errorf("the other end did not print its address but %q", line), c.Stop())
	}
	c.Address = addr
	return c, nil
}

// Stop ends the child and waits for it. If the child failed, the error holds the end of
// its standard error.
func (c *Child) Stop() error {
	c.stdin.Close()
	timer := time.AfterFunc(childTime, func() { c.cmd.Process.Kill() })
	defer timer.Stop()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("the child process of the other end failed: %w; it wrote: %s", err, c.said)
	}
	return nil
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte // under mu
}

const tailLen = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	t.buf = t.buf[max(len(t.buf)-tailLen, 0):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if said := bytes.TrimSpace(t.buf); len(said) > 0 {
		return string(said)
	}
	return "nothing"
}
