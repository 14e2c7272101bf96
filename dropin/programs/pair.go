package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is one end of a pair, and what it said.
type process struct {
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

// start starts a program on the library, in a process group of its own.
func (b *bench) start(flags []string, command []string) (*process, error) {
	args := append([]string{"run", "--library", b.libDir}, flags...)
	p := &process{cmd: exec.Command(b.weft, append(args, command...)...), done: make(chan struct{})}
	p.cmd.Dir = b.dir
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
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

// wait waits for the end of the process.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return errors.New("it does not end")
	}
}

// try runs a row as one persona.
func (b *bench) try(ctx context.Context, r *row, persona string) result {
	res := result{row: r, persona: persona}
	if r.run != nil {
		return b.tryAlone(ctx, res)
	}
	if _, err := exec.LookPath(program(r.client)); err != nil {
		res.missing = true
		return res
	}
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	res.err = b.pair(ctx, r, append(strings.Fields(r.flags), "--persona", persona))
	return res
}

// tryAlone runs a row that has a way of its own.
func (b *bench) tryAlone(ctx context.Context, res result) result {
	if res.missing = !hasSuite(); res.missing {
		return res
	}
	ctx, cancel := context.WithTimeout(ctx, 5*b.limit)
	defer cancel()
	res.note, res.err = res.row.run(ctx, b, res.persona)
	return res
}

func (b *bench) pair(ctx context.Context, r *row, flags []string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	if r.port != 0 {
		port = r.port
	}
	host := "127.0.0.1"
	if r.same[0] != "" {
		if err := b.fill(r.same); err != nil {
			return err
		}
	}
	fields := func(command string) []string {
		return strings.Fields(strings.NewReplacer("{port}", strconv.Itoa(port), "{host}", host, "{dir}", b.dir).Replace(command))
	}
	var server *process
	if r.server != "" {
		if server, err = b.start(flags, fields(r.server)); err != nil {
			return err
		}
		defer server.end()
		if err := awaitListener(ctx, port, server); err != nil {
			return fmt.Errorf("server: %w: %s", err, tail(server.text()))
		}
	}
	client, err := b.start(flags, fields(r.client))
	if err != nil {
		return err
	}
	defer client.end()
	return b.judge(ctx, r, client, server)
}

// judge waits for both ends and looks at what they said.
func (b *bench) judge(ctx context.Context, r *row, client, server *process) error {
	if err := client.wait(ctx); err != nil {
		return fmt.Errorf("client: %w: %s", err, tail(client.text()))
	}
	if server != nil && !r.endless {
		if err := server.wait(ctx); err != nil {
			return fmt.Errorf("server: %w: %s", err, tail(server.text()))
		}
	}
	for _, want := range r.says {
		if !strings.Contains(client.text(), want) {
			return fmt.Errorf("the client did not say %q: %s", want, tail(client.text()))
		}
	}
	for _, want := range r.hears {
		if !strings.Contains(server.text(), want) {
			return fmt.Errorf("the server did not say %q: %s", want, tail(server.text()))
		}
	}
	if r.same[0] != "" {
		return b.compare(ctx, r.same)
	}
	return nil
}

// fill makes the first of two files, and removes the second.
func (b *bench) fill(names [2]string) error {
	data := make([]byte, 3<<20)
	_, _ = rand.Read(data) // never fails
	_ = os.Remove(filepath.Join(b.dir, names[1]))
	return os.WriteFile(filepath.Join(b.dir, names[0]), data, 0o644)
}

// compare waits until the files are equal: a server may still be writing.
func (b *bench) compare(ctx context.Context, names [2]string) error {
	want, err := os.ReadFile(filepath.Join(b.dir, names[0]))
	if err != nil {
		return err
	}
	for {
		got, err := os.ReadFile(filepath.Join(b.dir, names[1]))
		if err == nil && bytes.Equal(got, want) {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s and %s differ", names[0], names[1])
		}
	}
}

// freePort is a port that nobody has, below those that the system gives out by itself:
// another program cannot get it in between.
func freePort() (int, error) {
	for range 100 {
		port := 10000 + mathrand.IntN(20000)
		if ln, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err == nil {
			return port, ln.Close()
		}
	}
	return 0, errors.New("there is no free port")
}

// awaitListener waits until somebody listens at a port. It does not connect: some
// servers serve whoever comes first.
func awaitListener(ctx context.Context, port int, p *process) error {
	for !listens(port) {
		select {
		case <-p.done:
			return fmt.Errorf("it ended before it listened: %v", p.err)
		case <-ctx.Done():
			return errors.New("it does not listen")
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// listens looks for a socket in state LISTEN (0A) in the system's tables.
func listens(port int) bool {
	suffix := fmt.Sprintf(":%04X", port)
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if len(f) > 3 && strings.HasSuffix(f[1], suffix) && f[3] == "0A" {
				return true
			}
		}
	}
	return false
}

// tail is the last line of a text, or two.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-2):], " / ")
}
