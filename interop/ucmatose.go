// This file runs the cases "ucmatose", and is the subcommand of that name.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/interop/internal/suite"
	"github.com/weft-rdma/weft/interop/internal/ucmatose"
	"github.com/weft-rdma/weft/interop/internal/wire"
	"github.com/weft-rdma/weft/verbs"
)

// ucmatoseCommand is `interop ucmatose`.
func ucmatoseCommand(ctx context.Context, args []string) int {
	p := newPeerFlags("ucmatose", 7471)
	cfg := ucmatose.Config{}
	server := p.flags.String("s", "", "be the client of this `server`")
	p.flags.IntVar(&cfg.Connections, "c", 1, "`connections`")
	p.flags.IntVar(&cfg.Count, "C", 10, "`messages` each way on each connection")
	p.flags.IntVar(&cfg.Size, "S", 100, "`octets` a message")
	if status, ok := parse(p.flags, args); !ok {
		return status
	}
	return p.main(ctx, func(ctx context.Context, rnic *verbs.RNIC, params cm.Params) error {
		if *server != "" {
			return ucmatose.Client(ctx, rnic, net.JoinHostPort(*server, fmt.Sprint(p.port)), cfg, params)
		}
		ln, err := p.listener(ctx, rnic, params)
		if err != nil {
			return err
		}
		defer ln.Close()
		return ucmatose.Server(ctx, rnic, ln, cfg, params)
	})
}

// A ucmatoseCase is one run against ucmatose.
type ucmatoseCase struct {
	role     wire.Direction // weft's
	cfg      ucmatose.Config
	revision int // asked for by the client
}

// ucmatoses runs our peer against ucmatose in both roles. The guest is the
// client only with the peer-to-peer set-up: ucmatose's server sends first,
// which a Responder may not do otherwise (RFC 5044 §7.1.2).
func (h *harness) ucmatoses(ctx context.Context, mtu int) {
	small, large := ucmatose.Config{Connections: 1, Count: 10, Size: 100}, ucmatose.Config{Connections: 4, Count: 20, Size: 20000}
	for _, u := range []ucmatoseCase{
		{wire.FromInitiator, small, 2}, {wire.FromInitiator, large, 2}, {wire.FromInitiator, small, 1}, {wire.FromInitiator, large, 1},
		{wire.FromResponder, small, 2}, {wire.FromResponder, large, 2},
	} {
		role := "client"
		if u.role == wire.FromResponder {
			role = "server"
		}
		name := fmt.Sprintf("ucmatose/mtu-%d/weft-%s/rev-%d/%dx%dx%d", mtu, role, u.revision, u.cfg.Connections, u.cfg.Count, u.cfg.Size)
		h.suite.Run(ctx, name, func(c *suite.Case) error { return h.ucmatose(c, u) })
	}
}

func (h *harness) ucmatose(c *suite.Case, u ucmatoseCase) error {
	port := h.nextPort()
	terms := fmt.Sprintf("-p %d -c %d -C %d -S %d", port, u.cfg.Connections, u.cfg.Count, u.cfg.Size)
	ours := []string{
		h.self, "ucmatose", "-p", fmt.Sprint(port), "-c", fmt.Sprint(u.cfg.Connections), "-C", fmt.Sprint(u.cfg.Count),
		"-S", fmt.Sprint(u.cfg.Size), "--pcap", c.File("capture.pcapng"), "--mpa-rev", fmt.Sprint(u.revision),
	}
	var err error
	if u.role == wire.FromInitiator {
		err = h.ucmatoseClient(c, port, terms, ours)
	} else {
		err = h.ucmatoseServer(c, port, terms, ours)
	}
	if err != nil {
		return err
	}
	v, err := h.examineAll(c, u.role, u.cfg.Connections)
	if err != nil {
		return err
	}
	if got, want := v.Opcodes()[wire.Send], 2*u.cfg.Connections*u.cfg.Count; got != want {
		return fmt.Errorf("the capture shows %d Sends, expected %d", got, want)
	}
	if got := int(v.Conversations[0].Reply.Revision); got != u.revision {
		return fmt.Errorf("the capture shows revision %d, expected %d", got, u.revision)
	}
	c.Notef("%d FPDUs, tshark verified %d CRCs", v.FPDUs, v.CRCs)
	return nil
}

// ucmatoseClient runs ucmatose as the server in the guest and ours as the
// client.
func (h *harness) ucmatoseClient(c *suite.Case, port int, terms string, ours []string) error {
	server, err := h.guest.Start(c, "ucmatose", programLimit, "ucmatose "+terms)
	if err != nil {
		return err
	}
	if err := h.guest.AwaitListener(c, port); err != nil {
		return err
	}
	err = h.host(c, "weft", append(ours, "-s", h.guest.Addr)...).run()
	status, waitErr := server.Wait(c, 5*time.Second)
	return errors.Join(err, h.guestEnded(c, server, status, waitErr))
}

// ucmatoseServer runs ours as the server and ucmatose as the client in the
// guest.
func (h *harness) ucmatoseServer(c *suite.Case, port int, terms string, ours []string) error {
	if err := h.guest.Set(c, map[string]string{"peer_to_peer": "1"}); err != nil {
		return err
	}
	defer h.guest.Set(context.WithoutCancel(c), driverDefaults)
	server := h.host(c, "weft", append(ours, "-b", h.guest.Gateway)...)
	if err := server.start(); err != nil {
		return err
	}
	defer server.stop()
	if err := h.guest.AwaitHostListener(c, port); err != nil {
		return errors.Join(err, server.complaint())
	}
	client, err := h.guest.Start(c, "ucmatose", programLimit, "ucmatose "+terms+" -s "+h.guest.Gateway)
	if err != nil {
		return err
	}
	status, err := client.Wait(c, programLimit)
	if err := h.guestEnded(c, client, status, err); err != nil {
		return errors.Join(err, server.complaint())
	}
	return server.wait()
}
