// This file runs `weft ping` against rdma-core's rping on Linux's siw, in both
// roles, over the whole matrix of what the two can agree on.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/weft-rdma/weft/interop/internal/suite"
	"github.com/weft-rdma/weft/interop/internal/wire"
)

const (
	pings        = 100
	programLimit = 60 * time.Second // for one program, on either side
)

// driverDefaults are the parameters of the guest's driver that cases change.
var driverDefaults = map[string]string{"peer_to_peer": "0", "mpa_version": "2", "mpa_crc_required": "0", "try_gso": "0"}

// sizes of a ping in octets: the least of rping's that hold a text, one that
// needs no padding, one FPDU or several by the MTU, and many FPDUs.
var sizes = []int{27, 100, 4095, 60000}

// A session is one ping between weft and rping.
type session struct {
	role       wire.Direction // weft's
	size       int
	count      int
	crc        bool              // requested by weft, as the only side
	peerToPeer bool              // asked for by the client, on either side
	guest      map[string]string // more parameters of the guest's driver
}

func (p session) String() string {
	role := "client"
	if p.role == wire.FromResponder {
		role = "server"
	}
	return fmt.Sprintf("weft-%s/crc-%s/p2p-%s/%d", role, onOff(p.crc), onOff(p.peerToPeer), p.size)
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// pingMatrix runs every combination at one MTU.
func (h *harness) pingMatrix(ctx context.Context, mtu int) {
	for _, role := range []wire.Direction{wire.FromInitiator, wire.FromResponder} {
		for _, peerToPeer := range []bool{false, true} {
			for _, crc := range []bool{true, false} {
				for _, size := range sizes {
					p := session{role: role, size: size, count: pings, crc: crc, peerToPeer: peerToPeer}
					h.suite.Run(ctx, fmt.Sprintf("rping/mtu-%d/%v", mtu, p), func(c *suite.Case) error {
						return h.ping(c, p)
					})
				}
			}
		}
	}
}

// ping runs one session and judges both ends and the capture of it.
func (h *harness) ping(c *suite.Case, p session) error {
	parameters := maps.Clone(driverDefaults)
	maps.Copy(parameters, p.guest)
	if p.peerToPeer && p.role == wire.FromResponder { // the guest asks
		parameters["peer_to_peer"] = "1"
	}
	if err := h.guest.Set(c, parameters); err != nil {
		return err
	}
	defer h.guest.Set(context.WithoutCancel(c), driverDefaults)
	if err := h.exchange(c, p); err != nil {
		return err
	}
	return h.judgePing(c, p)
}

// exchange starts the server, runs the client, and compares what both printed
// with what the protocol says they must have seen.
func (h *harness) exchange(c *suite.Case, p session) error {
	port := h.nextPort()
	rping := fmt.Sprintf("rping -v -V -S %d -p %d", p.size, port)
	weft := []string{
		h.weft, "ping", "-v", "-S", fmt.Sprint(p.size), "-p", fmt.Sprint(port), "--pcap", c.File("capture.pcapng"), "--log-level", "info",
	}
	if !p.crc {
		weft = append(weft, "--no-crc")
	}
	if p.role == wire.FromResponder {
		server := h.host(c, "weft", append(weft, "-s", "-a", h.guest.Gateway)...)
		if err := server.start(); err != nil {
			return err
		}
		defer server.stop()
		if err := h.guest.AwaitHostListener(c, port); err != nil {
			return errors.Join(err, server.complaint())
		}
		client, err := h.guest.Start(c, "rping", programLimit, fmt.Sprintf("%s -c -a %s -C %d", rping, h.guest.Gateway, p.count))
		if err != nil {
			return err
		}
		status, err := client.Wait(c, programLimit)
		if err := h.guestPrinted(c, client, status, err, pingText("ping data: ", p)); err != nil {
			return errors.Join(err, server.complaint())
		}
		if err := server.wait(); err != nil {
			return err
		}
		return expectText("weft's server", server.stdout.Bytes(), pingText("server ping data: ", p))
	}
	server, err := h.guest.Start(c, "rping", programLimit, fmt.Sprintf("%s -s -a %s", rping, h.guest.Addr))
	if err != nil {
		return err
	}
	if err := h.guest.AwaitListener(c, port); err != nil {
		return err
	}
	weft = append(weft, "-c", "-V", "-a", h.guest.Addr, "-C", fmt.Sprint(p.count))
	if p.peerToPeer {
		weft = append(weft, "--peer-to-peer")
	}
	client := h.host(c, "weft", weft...)
	err = client.run()
	if err == nil {
		err = expectText("weft's client", client.stdout.Bytes(), pingText("ping data: ", p))
	}
	status, waitErr := server.Wait(c, 5*time.Second)
	return errors.Join(err, h.guestPrinted(c, server, status, waitErr, pingText("server ping data: ", p)))
}

// judgePing examines the capture that weft wrote and counts the operations.
func (h *harness) judgePing(c *suite.Case, p session) error {
	v, err := h.examineAll(c, p.role, 1)
	if err != nil {
		return err
	}
	terms := v.Conversations[0]
	crc := p.crc || p.guest["mpa_crc_required"] == "1"
	if got := terms.Reply.CRC; got != crc {
		return fmt.Errorf("the Reply says CRC %s, expected %s", onOff(got), onOff(crc))
	}
	if want, ok := p.guest["mpa_version"]; ok && want != fmt.Sprint(terms.Reply.Revision) {
		return fmt.Errorf("the Reply says revision %d, expected %s", terms.Reply.Revision, want)
	}
	if got := terms.Reply.PeerToPeer; got != p.peerToPeer {
		return fmt.Errorf("the Reply says peer-to-peer %s, expected %s", onOff(got), onOff(p.peerToPeer))
	}
	// What a ping is made of; the RTR that begins a peer-to-peer connection is
	// a Write or a Read.
	count := v.Opcodes()
	rtr := 0
	if p.peerToPeer {
		rtr = 1
	}
	if p.role == wire.FromInitiator {
		count[wire.Write] -= nudges(v.Conversations[0].FPDUs[wire.FromInitiator][rtr:])
	}
	if count[wire.Send] != 4*p.count || count[wire.ReadRequest] != count[wire.ReadResponse] ||
		count[wire.ReadRequest]+count[wire.Write] != 2*p.count+rtr || len(count) != 4 {
		return fmt.Errorf("the capture shows %v, expected %d pings", count, p.count)
	}
	c.Notef("%d FPDUs, tshark verified %d CRCs", v.FPDUs, v.CRCs)
	return nil
}

// nudges counts the empty Writes by which weft asks a peer that is slow to answer
// to read on.
func nudges(list []wire.FPDU) int {
	n := 0
	for _, f := range list {
		if f.Segment.Opcode == wire.Write && len(f.Segment.Payload) == 0 {
			n++
		}
	}
	return n
}

// pingText is what a program prints of a session: the text of every ping after
// what.
func pingText(what string, p session) []byte {
	var out bytes.Buffer
	for n := range p.count {
		out.WriteString(what)
		line := fmt.Appendf(nil, "rdma-ping-%d: ", n)
		for letter := byte('A') + byte(n%58); len(line) < p.size-1; letter++ {
			if letter > 'z' {
				letter = 'A'
			}
			line = append(line, letter)
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// expectText compares what who printed with want, line by line.
func expectText(who string, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Errorf("%s: line %d of its output is %.60q, expected %.60q", who, i+1, g[i], w[i])
		}
	}
	return fmt.Errorf("%s printed %d lines, expected %d", who, len(g)-1, len(w)-1)
}
