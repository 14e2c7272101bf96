// This file runs programs on both sides, keeps what they said with the case's
// logs, and judges the captures that ours wrote.

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/weft-rdma/weft/interop/internal/guest"
	"github.com/weft-rdma/weft/interop/internal/suite"
	"github.com/weft-rdma/weft/interop/internal/verdict"
	"github.com/weft-rdma/weft/interop/internal/wire"
)

// guestEnded judges the end of a program in the guest: by itself, and well.
func (h *harness) guestEnded(c *suite.Case, p *guest.Program, status int, err error) error {
	stdout, stderr, outputErr := p.Output(c)
	os.WriteFile(c.File("guest.stdout"), []byte(stdout), 0o644)
	os.WriteFile(c.File("guest.stderr"), []byte(stderr), 0o644)
	switch {
	case err != nil:
		return fmt.Errorf("the guest's program: %w: %s", err, quoted(stderr))
	case status != 0:
		return fmt.Errorf("the guest's program ended with status %d: %s", status, quoted(stderr))
	}
	return outputErr
}

// guestPrinted judges the end of a program in the guest, and what it printed.
func (h *harness) guestPrinted(c *suite.Case, p *guest.Program, status int, err error, want []byte) error {
	if err := h.guestEnded(c, p, status, err); err != nil {
		return err
	}
	got, err := os.ReadFile(c.File("guest.stdout"))
	if err != nil {
		return err
	}
	return expectText("the guest's program", got, want)
}

func quoted(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

// examineAll judges a case's capture, in which weft had the given role in all
// of so many connections, and siw the other.
func (h *harness) examineAll(c *suite.Case, weft wire.Direction, connections int) (verdict.Verdict, error) {
	v, err := examine(c, c.File("capture.pcapng"), verdict.SiwAs(1-weft))
	if err != nil {
		return v, err
	}
	if len(v.Conversations) != connections {
		return v, fmt.Errorf("the capture holds %d iWARP connections, expected %d", len(v.Conversations), connections)
	}
	return v, nil
}

// A hostProgram runs on this machine and leaves its output in the case's logs.
type hostProgram struct {
	name           string
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	c              *suite.Case
	started        bool
	ended          bool
}

func (h *harness) host(c *suite.Case, name string, argv ...string) *hostProgram {
	p := &hostProgram{name: name, c: c, cmd: h.guest.Host(c, argv...)}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	c.Logf("$ %s", strings.Join(argv, " "))
	return p
}

func (p *hostProgram) start() error {
	p.started = true
	return p.cmd.Start()
}

// wait waits for the program. The error has the program's own message.
func (p *hostProgram) wait() error {
	err := p.cmd.Wait()
	p.ended = true
	p.keep()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", p.name, err, lastLine(p.stderr.String()))
	}
	return nil
}

func (p *hostProgram) run() error {
	if err := p.start(); err != nil {
		return err
	}
	return p.wait()
}

// interrupt ends the program as Ctrl-C does, which has to succeed, and soon.
func (p *hostProgram) interrupt() error {
	if err := guest.Interrupt(p.cmd); err != nil {
		return err
	}
	late := time.AfterFunc(programLimit, func() { p.cmd.Cancel() })
	defer late.Stop()
	// A server that has drained ends with status 0.
	if err := p.wait(); err != nil {
		return fmt.Errorf("%s did not end gracefully after SIGINT: %w", p.name, err)
	}
	return nil
}

// stop ends the program when it has not been waited for.
func (p *hostProgram) stop() {
	if p.started && !p.ended {
		p.cmd.Cancel()
		p.cmd.Wait()
		p.ended = true
		p.keep()
	}
}

// complaint stops the program and returns what it said on standard error.
func (p *hostProgram) complaint() error {
	p.stop()
	if line := lastLine(p.stderr.String()); line != "" {
		return fmt.Errorf("%s said: %s", p.name, line)
	}
	return nil
}

func (p *hostProgram) keep() {
	os.WriteFile(p.c.File(p.name+".stdout"), p.stdout.Bytes(), 0o644)
	os.WriteFile(p.c.File(p.name+".stderr"), p.stderr.Bytes(), 0o644)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
