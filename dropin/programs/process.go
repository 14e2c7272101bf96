package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is one end of a row, and what it said.
type process struct {
	name string // client, server, ...
	cmd  *exec.Cmd
	done chan struct{}
	err  error

	mu   sync.Mutex
	said bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// launch starts a command in dir, as an ordinary user and in a process group of its own.
func launch(name, dir string, env, words []string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(words[0], words[1:]...), done: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	drop(p.cmd, dir)
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// end ends the process and its children, which are its group.
func (p *process) end() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	<-p.done
}

// wait waits for the end of the process, and looks for what it should have said.
func (p *process) wait(ctx context.Context, says ...string) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		return fmt.Errorf("%s: it does not end", p.name)
	}
	// Children that hold its output open do not make it fail.
	if p.err != nil && !errors.Is(p.err, exec.ErrWaitDelay) {
		return fmt.Errorf("%s: %w", p.name, p.err)
	}
	return p.check(says)
}

// check looks for what the process should have said.
func (p *process) check(says []string) error {
	for _, want := range says {
		if !strings.Contains(p.text(), want) {
			return fmt.Errorf("%s: it did not say %q", p.name, want)
		}
	}
	return nil
}

// await waits until the process has said something.
func (p *process) await(ctx context.Context, want string) error {
	return p.until(ctx, "say "+strconv.Quote(want), func() bool { return strings.Contains(p.text(), want) })
}

// until waits until what the process is to do is done.
func (p *process) until(ctx context.Context, what string, done func() bool) error {
	for !done() {
		select {
		case <-p.done:
			return fmt.Errorf("%s: it ended (%v) and did not %s", p.name, p.cmd.ProcessState, what)
		case <-ctx.Done():
			return fmt.Errorf("%s: it does not %s", p.name, what)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// endOrphans ends the processes whose parents have ended: they are children of this one
// by now. No process that a row started may be left when it is called.
func endOrphans() {
	self := strconv.Itoa(os.Getpid())
	for range 10 { // an orphan's children are orphans next
		found := false
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, name := range stats {
			if pid, parent := parentOf(name); parent == self {
				found = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
				_, _ = syscall.Wait4(pid, nil, 0, nil)
			}
		}
		if !found {
			return
		}
	}
}

// parentOf reads a process and its parent from its stat file: "PID (NAME) STATE PARENT ...".
func parentOf(stat string) (pid int, parent string) {
	text, err := os.ReadFile(stat)
	if err != nil {
		return 0, ""
	}
	rest := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if pid, err = strconv.Atoi(filepath.Base(filepath.Dir(stat))); err != nil || len(rest) < 2 {
		return 0, ""
	}
	return pid, rest[1]
}

// lastLines are the last lines of a text that are not empty. A carriage return ends a
// line, too: programs show their progress by it.
func lastLines(text string, n int) string {
	var lines []string
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimRight(line, " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// fileOf is the file that matches a pattern.
func fileOf(pattern string) string {
	found, _ := filepath.Glob(pattern)
	if len(found) == 0 {
		return pattern
	}
	return found[0]
}
