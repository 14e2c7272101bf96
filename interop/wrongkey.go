// This file runs the cases "wrong-stag".

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/interop/internal/suite"
	"github.com/weft-rdma/weft/interop/internal/wire"
	"github.com/weft-rdma/weft/interop/internal/wrongkey"
	"github.com/weft-rdma/weft/verbs"
)

// wrongKeyCommand is `interop wrongkey`.
func wrongKeyCommand(ctx context.Context, args []string) int {
	p := newPeerFlags("wrongkey", 7174)
	server := p.flags.String("s", "", "be the client of this `server`")
	step := p.flags.String("step", string(wrongkey.Read), "the `step` at which the wrong key comes in: read or write")
	if status, ok := parse(p.flags, args); !ok {
		return status
	}
	if at := wrongkey.Step(*step); at != wrongkey.Read && at != wrongkey.Write {
		fmt.Fprintf(os.Stderr, "wrongkey: --step %s: expected read or write\n", *step)
		return exitUsage
	}
	return p.main(ctx, func(ctx context.Context, rnic *verbs.RNIC, params cm.Params) error {
		if *server != "" {
			return wrongkey.Client(ctx, rnic, net.JoinHostPort(*server, fmt.Sprint(p.port)), wrongkey.Step(*step), params)
		}
		ln, err := p.listener(ctx, rnic, params)
		if err != nil {
			return err
		}
		defer ln.Close()
		return wrongkey.Server(ctx, rnic, ln, wrongkey.Step(*step), params)
	})
}

// wrongSTags uses wrong keys on both sides, in both directions of access.
func (h *harness) wrongSTags(ctx context.Context) {
	for _, step := range []wrongkey.Step{wrongkey.Read, wrongkey.Write} {
		h.suite.Run(ctx, "wrong-stag/weft-refuses/"+string(step), func(c *suite.Case) error {
			return h.wrongAdvertised(c, step)
		})
		h.suite.Run(ctx, "wrong-stag/siw-refuses/"+string(step), func(c *suite.Case) error {
			return h.wrongUsed(c, step)
		})
	}
}

// wrongAdvertised has our client advertise a wrong key to rping's server,
// which goes on serving others.
func (h *harness) wrongAdvertised(c *suite.Case, step wrongkey.Step) error {
	port := h.nextPort()
	server, err := h.guest.Start(c, "rping", programLimit, fmt.Sprintf("rping -s -P -a %s -p %d", h.guest.Addr, port))
	if err != nil {
		return err
	}
	defer h.guest.Run(context.WithoutCancel(c), "pkill -x rping")
	if err := h.guest.AwaitListener(c, port); err != nil {
		return err
	}
	client := h.host(c, "weft", h.self, "wrongkey", "-s", h.guest.Addr, "-p", fmt.Sprint(port),
		"--step", string(step), "--pcap", c.File("capture.pcapng"))
	if err := client.run(); err != nil {
		return err
	}
	again := h.host(c, "weft-again", h.weft, "ping", "-c", "-a", h.guest.Addr, "-p", fmt.Sprint(port), "-C", "3", "-V")
	if err := again.run(); err != nil {
		return fmt.Errorf("the guest's server does not serve the next client: %w", err)
	}
	stdout, stderr, err := server.Output(c)
	c.Logf("guest: %s%s", stdout, stderr)
	if err != nil {
		return err
	}
	if !strings.Contains(stderr+stdout, "DISCONNECT") {
		return fmt.Errorf("the guest's server did not notice the end: %q", quoted(stderr))
	}
	_, err = h.examineAll(c, wire.FromInitiator, 1)
	return err
}

// wrongUsed has our server use a wrong key against rping's client.
func (h *harness) wrongUsed(c *suite.Case, step wrongkey.Step) error {
	port := h.nextPort()
	server := h.host(c, "weft", h.self, "wrongkey", "-b", h.guest.Gateway, "-p", fmt.Sprint(port),
		"--step", string(step), "--pcap", c.File("capture.pcapng"))
	if err := server.start(); err != nil {
		return err
	}
	defer server.stop()
	if err := h.guest.AwaitHostListener(c, port); err != nil {
		return errors.Join(err, server.complaint())
	}
	client, err := h.guest.Start(c, "rping", programLimit, fmt.Sprintf("rping -c -d -a %s -p %d -C 3", h.guest.Gateway, port))
	if err != nil {
		return err
	}
	// rping's client exits 0 even so; that it ends, and by a disconnection, is
	// what it can show.
	if _, err := client.Wait(c, 20*time.Second); err != nil {
		return errors.Join(fmt.Errorf("the guest's client does not end: %w", err), server.complaint())
	}
	if err := server.wait(); err != nil {
		return err
	}
	stdout, stderr, err := client.Output(c)
	c.Logf("guest: %s%s", stdout, stderr)
	if err != nil {
		return err
	}
	if !strings.Contains(stdout+stderr, "DISCONNECT") {
		return fmt.Errorf("the guest's client did not notice the end: %q", quoted(stderr))
	}
	_, err = h.examineAll(c, wire.FromResponder, 1)
	return err
}
