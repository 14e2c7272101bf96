// This file runs programs of the distribution that know nothing of Weft: at one end on
// Linux's siw, at the other under `weft run`.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-rdma/weft/interop/internal/guest"
	"github.com/weft-rdma/weft/interop/internal/suite"
	"github.com/weft-rdma/weft/interop/internal/verdict"
	"github.com/weft-rdma/weft/interop/internal/wire"
)

// A pair is a server and a client that belong together. In their commands {server} is
// the server's address, {port} a port, and {device} the name of the program's own device.
type pair struct {
	name           string
	pkg            string // of Debian
	server, client string
	endless        bool        // the server does not end by itself
	serverFirst    bool        // the server sends first, see [ucmatoses]
	heard          [2][]string // what client and server print
	connections    int
	opcode         wire.Opcode // what the capture holds
	messages       int         // of it, at least
}

var pairs = slices.Concat(
	[]pair{
		{
			name: "rping", pkg: "rdmacm-utils", connections: 1, opcode: wire.ReadRequest, messages: pings,
			server: "rping -s -a {server} -p {port} -v -S 1000 -C 100", client: "rping -c -a {server} -p {port} -v -V -S 1000 -C 100",
			heard: [2][]string{pinged("ping data: ", 1000), pinged("server ping data: ", 1000)},
		},
		{
			name: "rping-64k", pkg: "rdmacm-utils", connections: 1, opcode: wire.ReadRequest, messages: pings,
			server: "rping -s -a {server} -p {port} -v -S 65535 -C 100", client: "rping -c -a {server} -p {port} -v -V -S 65535 -C 100",
			heard: [2][]string{pinged("ping data: ", 65535), pinged("server ping data: ", 65535)},
		},
		{
			name: "rping-persistent", pkg: "rdmacm-utils", connections: 1, opcode: wire.ReadRequest, messages: pings, endless: true,
			server: "rping -s -P -a {server} -p {port} -S 4000", client: "rping -c -a {server} -p {port} -v -V -S 4000 -C 100",
			heard: [2][]string{pinged("ping data: ", 4000), nil},
		},
		{
			name: "ucmatose", pkg: "rdmacm-utils", connections: 1, opcode: wire.Send, messages: 20, serverFirst: true,
			server: "ucmatose -p {port}", client: "ucmatose -s {server} -p {port}",
			heard: both("return status 0"),
		},
		{
			name: "ucmatose-many", pkg: "rdmacm-utils", connections: 4, opcode: wire.Send, messages: 160, serverFirst: true,
			server: "ucmatose -p {port} -c 4 -C 20 -S 20000", client: "ucmatose -s {server} -p {port} -c 4 -C 20 -S 20000",
			heard: both("return status 0"),
		},
		{
			name: "rstream", pkg: "rdmacm-utils", connections: 1, opcode: wire.Write, messages: 200,
			server: "rstream -p {port} -C 100 -S 4096", client: "rstream -p {port} -s {server} -C 100 -S 4096",
			heard: both("4k      100     1       800k"),
		},
		{
			name: "riostream", pkg: "rdmacm-utils", connections: 1, opcode: wire.Write, messages: 20,
			server: "riostream -p {port} -C 10 -S 64", client: "riostream -p {port} -s {server} -C 10 -S 64",
			heard: both("64      10      1       1.2k"),
		},
	},
	[]pair{
		perftest("ib_write_bw", "", wire.Write, 200), perftest("ib_write_bw", "-q 4", wire.Write, 800), perftest("ib_write_bw", "-s 64 -I 64", wire.Write, 200),
		perftest("ib_read_bw", "", wire.ReadRequest, 200), perftest("ib_read_bw", "-e", wire.ReadRequest, 200),
		perftest("ib_send_bw", "", wire.Send, 200),
		perftest("ib_write_lat", "", wire.Write, 400), perftest("ib_read_lat", "", wire.ReadRequest, 200),
		perftest("ib_send_lat", "", wire.Send, 400), perftest("ib_send_lat", "-e", wire.Send, 400), perftest("ib_send_lat", "-e --use-srq", wire.Send, 400),
	},
)

// perftest is a program of perftest, with 200 iterations. It has a connection for what
// both ends tell each other, and one for each queue pair.
func perftest(program, flags string, opcode wire.Opcode, messages int) pair {
	p := pair{
		name: strings.Join(append([]string{program}, strings.Fields(flags)...), ""), pkg: "perftest",
		connections: 2, opcode: opcode, messages: messages,
	}
	queuePairs := 1
	if strings.Contains(flags, "-q 4") {
		queuePairs, p.connections = 4, 5
	}
	p.server = program + " -R -F -d {device} -n 200 -p {port} " + flags
	p.client = p.server + " {server}"
	p.heard = both(" " + strconv.Itoa(200*queuePairs) + " ")
	switch program {
	case "ib_read_lat":
		p.heard[1] = nil
	case "ib_write_lat":
		p.serverFirst = true
	}
	return p
}

// both is one line that both ends print.
func both(line string) [2][]string { return [2][]string{{line}, {line}} }

// pinged is what an end of rping prints.
func pinged(what string, size int) []string {
	return []string{string(pingText(what, session{size: size, count: pings}))}
}

// weftRun runs every pair in both roles.
func (h *harness) weftRun(ctx context.Context) {
	for _, p := range pairs {
		h.suite.Run(ctx, "run/"+p.name+"/weft-client", func(c *suite.Case) error { return h.runPair(c, p, wire.FromInitiator) })
		h.suite.Run(ctx, "run/"+p.name+"/weft-server", func(c *suite.Case) error { return h.runPair(c, p, wire.FromResponder) })
	}
}

func (h *harness) runPair(c *suite.Case, p pair, role wire.Direction) error {
	port := strconv.Itoa(h.nextPort())
	command := func(text, server, device string) string {
		return strings.NewReplacer("{port}", port, "{server}", server, "{device}", device).Replace(text)
	}
	under := func(text, server string) *hostProgram {
		argv := []string{h.weft, "run", "--library", h.libibverbs, "--persona", "rnic", "--pcap", c.File("capture.pcapng")}
		return h.host(c, "weft", append(argv, strings.Fields(command(text, server, "weft0"))...)...)
	}
	var err error
	if role == wire.FromInitiator {
		err = h.runClient(c, p, command(p.server, h.guest.Addr, "siw0"), under(p.client, h.guest.Addr))
	} else {
		err = h.runServer(c, p, command(p.client, h.guest.Gateway, "siw0"), under(p.server, h.guest.Gateway))
	}
	if err != nil {
		return err
	}
	return h.judgePair(c, p, role)
}

// runClient runs the server in the guest, and the client under Weft.
func (h *harness) runClient(c *suite.Case, p pair, command string, client *hostProgram) error {
	server, err := h.guest.Start(c, p.name, programLimit, command)
	if err != nil {
		return err
	}
	if err := h.guest.AwaitListener(c, h.port); err != nil {
		return err
	}
	err = client.run()
	if err == nil {
		err = contains("weft's client", client.stdout.String(), p.heard[0])
	}
	if p.endless {
		return errors.Join(err, server.Stop(c))
	}
	return errors.Join(err, h.guestSaid(c, server, p.heard[1]))
}

// runServer runs the client in the guest, and the server under Weft.
func (h *harness) runServer(c *suite.Case, p pair, command string, server *hostProgram) error {
	if p.serverFirst {
		if err := h.guest.Set(c, map[string]string{"peer_to_peer": "1"}); err != nil {
			return err
		}
		defer h.guest.Set(context.WithoutCancel(c), driverDefaults)
	}
	if err := server.start(); err != nil {
		return err
	}
	defer server.stop()
	if err := h.guest.AwaitHostListener(c, h.port); err != nil {
		return errors.Join(err, server.complaint())
	}
	client, err := h.guest.Start(c, p.name, programLimit, command)
	if err != nil {
		return err
	}
	if err := h.guestSaid(c, client, p.heard[0]); err != nil {
		return errors.Join(err, server.complaint())
	}
	if p.endless {
		server.stop()
		return nil
	}
	if err := server.wait(); err != nil {
		return err
	}
	return contains("weft's server", server.stdout.String(), p.heard[1])
}

// guestSaid judges the end of a program in the guest, and what it printed.
func (h *harness) guestSaid(c *suite.Case, p *guest.Program, want []string) error {
	status, err := p.Wait(c, programLimit)
	if err := h.guestEnded(c, p, status, err); err != nil {
		return err
	}
	got, err := os.ReadFile(c.File("guest.stdout"))
	if err != nil {
		return err
	}
	return contains("the guest's program", string(got), want)
}

// contains returns an error for what a program did not print.
func contains(who, got string, want []string) error {
	for _, text := range want {
		if !strings.Contains(got, text) {
			return fmt.Errorf("%s did not print %.60q, its last line is %.80q", who, text, lastLine(got))
		}
	}
	return nil
}

// judgePair examines the capture that weft wrote.
func (h *harness) judgePair(c *suite.Case, p pair, role wire.Direction) error {
	v, err := h.examineAll(c, role, p.connections)
	if err != nil {
		return err
	}
	if got := v.Opcodes()[p.opcode]; got < p.messages {
		return fmt.Errorf("the capture shows %d of %v, expected %d at least", got, p.opcode, p.messages)
	}
	if err := plain(v, role); err != nil {
		return err
	}
	c.Notef("%d FPDUs, tshark verified %d CRCs", v.FPDUs, v.CRCs)
	return nil
}

// plain returns an error for private data to which something was added, as all of it is
// given to the program at the other end.
func plain(v verdict.Verdict, weft wire.Direction) error {
	for _, conversation := range v.Conversations {
		frame := conversation.Request
		if weft == wire.FromResponder {
			frame = conversation.Reply
		}
		if bytes.Contains(frame.PrivateData, []byte("weft")) {
			return fmt.Errorf("the private data of the %v is not the program's own: %x", weft, frame.PrivateData)
		}
	}
	return nil
}

// missingPrograms lists the programs that are not on this machine.
func missingPrograms() (list []string) {
	for _, p := range pairs {
		program, _, _ := strings.Cut(p.client, " ")
		text := fmt.Sprintf("the program %s: apt-get install %s", program, p.pkg)
		if _, err := exec.LookPath(program); err != nil && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// buildLibrary builds what `weft run` needs, or says what is missing for that.
func (h *harness) buildLibrary(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, h.weft, "run", "--build", "--source", "..")
	cmd.WaitDelay = time.Second
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the library of weft run: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	h.libibverbs = strings.TrimSpace(out.String())
	return nil
}
