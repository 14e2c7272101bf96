// Package guest drives a disposable machine that runs the Linux kernel's
// soft-iWARP driver, through a command of five verbs:
//
//	up         boots it, with SIWVM_MTU octets as the MTU; returns when it answers
//	run CMD    runs a shell command in it: output, errors and exit status are CMD's
//	host CMD.. runs a program on this machine where the guest's network is seen
//	put FILE   makes a file appear in the guest as /host/NAME
//	down       stops it and removes its network
package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A Guest is one machine. Its methods may be called from one goroutine at a
// time; what Start and Host begin runs beside it.
type Guest struct {
	// Script is the command of five verbs.
	Script string
	// Addr and Gateway are the guest's address and this machine's, known once
	// it is up.
	Addr, Gateway string

	programs int // started so far
}

// Up boots the guest with the given MTU, after stopping one that is up, and
// learns the addresses.
func (g *Guest) Up(ctx context.Context, mtu int) error {
	g.Down(ctx)
	cmd := g.command(ctx, "up")
	cmd.Env = append(os.Environ(), "SIWVM_MTU="+strconv.Itoa(mtu))
	if _, err := output(cmd); err != nil {
		return fmt.Errorf("the guest does not start: %w", err)
	}
	route, err := g.Run(ctx, "ip -4 route get 192.0.2.1")
	if err != nil {
		return fmt.Errorf("the guest's addresses: %w", err)
	}
	// 192.0.2.1 via 10.77.0.1 dev eth0 src 10.77.0.2 uid 0
	words := strings.Fields(route)
	for i := 0; i+1 < len(words); i++ {
		switch words[i] {
		case "via":
			g.Gateway = words[i+1]
		case "src":
			g.Addr = words[i+1]
		}
	}
	if g.Addr == "" || g.Gateway == "" {
		return fmt.Errorf("the guest has no default route by which to find this machine: %q", route)
	}
	return nil
}

// Down stops the guest.
func (g *Guest) Down(ctx context.Context) error {
	_, err := output(g.command(ctx, "down"))
	return err
}

// Run runs a shell command in the guest and returns its output.
func (g *Guest) Run(ctx context.Context, command string) (string, error) {
	return output(g.command(ctx, "run", command))
}

// Set sets parameters of the guest's driver for new connections.
func (g *Guest) Set(ctx context.Context, parameters map[string]string) error {
	var command strings.Builder
	command.WriteString("cd /sys/module/siw/parameters")
	for name, value := range parameters {
		fmt.Fprintf(&command, " && echo %s >%s", value, name)
	}
	if _, err := g.Run(ctx, command.String()); err != nil {
		return fmt.Errorf("the guest's driver does not let its parameters be set (README.md says which it needs): %w", err)
	}
	return nil
}

// Put makes a file appear in the guest below /host, by its name.
func (g *Guest) Put(ctx context.Context, file string) error {
	_, err := output(g.command(ctx, "put", file))
	return err
}

// Host returns a command that runs a program of this machine where the
// guest's network is seen. It is killed, with its children, when ctx ends.
func (g *Guest) Host(ctx context.Context, argv ...string) *exec.Cmd {
	return g.command(ctx, append([]string{"host"}, argv...)...)
}

func (g *Guest) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, g.Script, args...)
	ownGroup(cmd)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// output runs cmd and returns what it printed; what it complained about
// becomes part of the error.
func output(cmd *exec.Cmd) (string, error) {
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	if err != nil {
		if text := strings.TrimSpace(complaint.String()); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
	}
	return out.String(), err
}

// A Program runs in the guest, beside the caller.
type Program struct {
	guest *Guest
	name  string
}

// Start starts a shell command in the guest, which is stopped there after
// limit. Its files are named name and a number.
func (g *Guest) Start(ctx context.Context, name string, limit time.Duration, command string) (*Program, error) {
	g.programs++
	p := &Program{g, fmt.Sprintf("/tmp/%s-%d", name, g.programs)}
	_, err := g.Run(ctx, fmt.Sprintf(
		"rm -f %[1]s.*; (timeout -k 2 %[2]d %[3]s >%[1]s.out 2>%[1]s.err </dev/null & echo $! >%[1]s.pid; wait $!; echo $? >%[1]s.tmp; mv %[1]s.tmp %[1]s.rc) >/dev/null 2>&1 </dev/null &",
		p.name, int(limit.Seconds()), command))
	if err != nil {
		return nil, fmt.Errorf("starting %q in the guest: %w", command, err)
	}
	return p, nil
}

// ErrStillRunning is returned by Wait for a program that did not end in time.
var ErrStillRunning = errors.New("still running in the guest")

// Wait waits for the end of the program, no longer than limit, and returns its
// exit status: 124 when it was stopped by Start's limit.
func (p *Program) Wait(ctx context.Context, limit time.Duration) (int, error) {
	out, err := p.guest.Run(ctx, fmt.Sprintf(
		"for i in $(seq %d); do [ -s %[2]s.rc ] && break; sleep 0.05; done; cat %[2]s.rc 2>/dev/null; true", int(limit.Seconds()*20), p.name))
	if err != nil {
		return 0, err
	}
	if out == "" {
		return 0, ErrStillRunning
	}
	return strconv.Atoi(strings.TrimSpace(out))
}

// Stop ends a program that does not end by itself.
func (p *Program) Stop(ctx context.Context) error {
	_, err := p.guest.Run(ctx, fmt.Sprintf("[ -s %[1]s.rc ] || kill $(cat %[1]s.pid)", p.name))
	return err
}

// AwaitOutput waits until the program has printed something, no longer than
// limit.
func (p *Program) AwaitOutput(ctx context.Context, limit time.Duration) error {
	_, err := p.guest.Run(ctx, fmt.Sprintf("for i in $(seq %d); do [ -s %s.out ] && exit 0; sleep 0.05; done; exit 1", int(limit.Seconds()*20), p.name))
	if err != nil {
		return fmt.Errorf("the guest's program prints nothing: %w", err)
	}
	return nil
}

// Output returns what the program has printed and complained about.
func (p *Program) Output(ctx context.Context) (stdout, stderr string, err error) {
	if stdout, err = p.guest.Run(ctx, "cat "+p.name+".out"); err != nil {
		return "", "", err
	}
	stderr, err = p.guest.Run(ctx, "cat "+p.name+".err")
	return stdout, stderr, err
}

// awaitListener is a shell command that waits until something listens on a TCP
// port, by the kernel's own table, for at most ten seconds.
func awaitListener(port int) string {
	return fmt.Sprintf("for i in $(seq 200); do grep -Eqs '^ *[0-9]+: [0-9A-F]+:%04X [0-9A-F]+:0000 0A' /proc/net/tcp /proc/net/tcp6 && exit 0; sleep 0.05; done; exit 1", port)
}

// AwaitListener waits until a program in the guest listens on port.
func (g *Guest) AwaitListener(ctx context.Context, port int) error {
	if _, err := g.Run(ctx, awaitListener(port)); err != nil {
		return fmt.Errorf("nothing listens on port %d of the guest", port)
	}
	return nil
}

// AwaitHostListener waits until a program started by Host listens on port.
func (g *Guest) AwaitHostListener(ctx context.Context, port int) error {
	if _, err := output(g.Host(ctx, "sh", "-c", awaitListener(port))); err != nil {
		return fmt.Errorf("nothing listens on port %d of this machine", port)
	}
	return nil
}
