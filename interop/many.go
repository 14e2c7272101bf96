// This file runs weft's persistent server: with several clients at once, and
// with one that dies. (rping's own, of rdma-core 44, takes one request at a
// time and forgets the earlier of two that come together.)

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-rdma/weft/interop/internal/guest"
	"github.com/weft-rdma/weft/interop/internal/suite"
	"github.com/weft-rdma/weft/interop/internal/wire"
)

const many = 4 // clients at once

// persistentServer starts weft's server for many clients.
func (h *harness) persistentServer(c *suite.Case, port int, p session) (*hostProgram, error) {
	server := h.host(c, "weft", h.weft, "ping", "-s", "-P", "-S", fmt.Sprint(p.size), "-a", h.guest.Gateway, "-p", fmt.Sprint(port),
		"--log-level", "info")
	if err := server.start(); err != nil {
		return nil, err
	}
	if err := h.guest.AwaitHostListener(c, port); err != nil {
		return nil, errors.Join(err, server.complaint())
	}
	return server, nil
}

// manyServed has several rping clients ping one of weft's servers at a time.
func (h *harness) manyServed(c *suite.Case) error {
	port := h.nextPort()
	p := session{role: wire.FromResponder, size: 1000, count: pings}
	server, err := h.persistentServer(c, port, p)
	if err != nil {
		return err
	}
	defer server.stop()
	var clients [many]*guest.Program
	for i := range clients {
		if clients[i], err = h.startClient(c, port, p); err != nil {
			return err
		}
	}
	for _, client := range clients {
		status, err := client.Wait(c, programLimit)
		if err := h.guestPrinted(c, client, status, err, pingText("ping data: ", p)); err != nil {
			return err
		}
	}
	return nil
}

// startClient starts an rping client; without a count it pings forever.
func (h *harness) startClient(c *suite.Case, port int, p session) (*guest.Program, error) {
	command := fmt.Sprintf("rping -c -v -V -S %d -a %s -p %d", p.size, h.guest.Gateway, port)
	if p.count > 0 {
		command += fmt.Sprintf(" -C %d", p.count)
	}
	return h.guest.Start(c, "rping", programLimit, command)
}

// clientKilled kills an rping client in the middle of its pings. weft's server
// must notice and serve the next.
func (h *harness) clientKilled(c *suite.Case) error {
	port := h.nextPort()
	p := session{role: wire.FromResponder, size: 4095}
	server, err := h.persistentServer(c, port, p)
	if err != nil {
		return err
	}
	defer server.stop()
	victim, err := h.startClient(c, port, p)
	if err != nil {
		return err
	}
	if err := victim.AwaitOutput(c, 20*time.Second); err != nil {
		return errors.Join(err, server.complaint())
	}
	if _, err := h.guest.Run(c, "pkill -KILL -x rping"); err != nil {
		return err
	}
	p.count = 3
	next, err := h.startClient(c, port, p)
	if err != nil {
		return err
	}
	status, err := next.Wait(c, 20*time.Second)
	return h.guestPrinted(c, next, status, err, pingText("ping data: ", p))
}
