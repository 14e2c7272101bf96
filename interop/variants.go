// This file holds what the matrix does not: revision 1, a guest that insists
// on CRC, what siw refuses, and start-up frames that must be refused.

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/weft-rdma/weft/interop/internal/suite"
	"github.com/weft-rdma/weft/interop/internal/wire"
)

// pingVariants runs sessions whose terms are off the matrix.
func (h *harness) pingVariants(ctx context.Context) {
	for _, v := range []struct {
		name string
		session
	}{
		{"guest-requires-crc/weft-client", session{role: wire.FromInitiator, crc: true, guest: map[string]string{"mpa_crc_required": "1"}}},
		{"guest-requires-crc/weft-server-does-not", session{role: wire.FromResponder, guest: map[string]string{"mpa_crc_required": "1"}}},
		{"guest-sets-reserved-bit/weft-server", session{role: wire.FromResponder, crc: true, guest: map[string]string{"try_gso": "1"}}},
		{"rev-1/weft-server", session{role: wire.FromResponder, crc: true, guest: map[string]string{"mpa_version": "1"}}},
		{"rev-1/weft-server-no-crc", session{role: wire.FromResponder, guest: map[string]string{"mpa_version": "1"}}},
	} {
		v.size, v.count = 4095, pings
		h.suite.Run(ctx, "rping/"+v.name, func(c *suite.Case) error { return h.ping(c, v.session) })
	}
	h.suite.Run(ctx, "rping/rev-1/weft-client", h.pingWithoutReads)
	h.suite.Run(ctx, "rping/markers-refused/weft-client", h.markersRefused)
	h.suite.Run(ctx, "rping/many-at-once/weft-server", h.manyServed)
	h.suite.Run(ctx, "rping/guest-killed/weft-server", h.clientKilled)
}

// pingWithoutReads asks siw for revision 1. Linux's CM then believes that the
// connection has no RDMA Reads, so that rping's server ends it at its first;
// our side must say that the session broke.
func (h *harness) pingWithoutReads(c *suite.Case) error {
	err := h.failingPing(c, "--mpa-rev", "1", "-C", "3")
	if err != nil {
		return err
	}
	v, err := h.examineAll(c, wire.FromInitiator, 1)
	if err != nil {
		return err
	}
	if r := v.Conversations[0].Reply; r.Revision != 1 || r.Rejected {
		return fmt.Errorf("the capture shows %+v, expected an accepting Reply of revision 1", *r)
	}
	if v.Opcodes()[wire.Send] == 0 {
		return errors.New("the capture shows no Send at revision 1")
	}
	c.Notef("the Send arrived; siw allows no reads here, and weft says so")
	return nil
}

// markersRefused asks siw for markers, which it always rejects.
func (h *harness) markersRefused(c *suite.Case) error {
	if err := h.failingPing(c, "--markers", "-C", "3"); err != nil {
		return err
	}
	v, err := h.examineAll(c, wire.FromInitiator, 1)
	if err != nil {
		return err
	}
	if r := v.Conversations[0].Reply; r == nil || !r.Rejected {
		return fmt.Errorf("the capture shows %+v, expected a rejecting Reply", r)
	}
	return nil
}

// failingPing runs weft's client against rping's server with more flags and
// wants it to exit 1, in time, with a reason.
func (h *harness) failingPing(c *suite.Case, flags ...string) error {
	port := h.nextPort()
	server, err := h.guest.Start(c, "rping", programLimit, fmt.Sprintf("rping -s -a %s -p %d", h.guest.Addr, port))
	if err != nil {
		return err
	}
	defer h.guest.Run(context.WithoutCancel(c), "pkill -x rping")
	if err := h.guest.AwaitListener(c, port); err != nil {
		return err
	}
	argv := append([]string{h.weft, "ping", "-c", "-a", h.guest.Addr, "-p", fmt.Sprint(port), "--pcap", c.File("capture.pcapng")}, flags...)
	client := h.host(c, "weft", argv...)
	var status *exec.ExitError
	err = client.run()
	if !errors.As(err, &status) || status.ExitCode() != 1 {
		return fmt.Errorf("weft ping ended with %v, expected exit status 1", err)
	}
	reason := lastLine(client.stderr.String())
	if reason == "" {
		return errors.New("weft ping gave no reason")
	}
	c.Logf("weft: %s", reason)
	stdout, stderr, err := server.Output(c)
	c.Logf("guest: %s%s", stdout, stderr)
	c.Notef("%s", reason)
	return err
}

// keyProbes sends start-up frames that must be refused, to both sides. The
// connection is to be closed without an answer and the listener to serve on.
func (h *harness) keyProbes(ctx context.Context) {
	for _, p := range []struct{ name, frame string }{
		{"wrong-key", `MPA ID Bad Frame\x40\x01\x00\x00`},
		{"reply-key", `MPA ID Rep Frame\x40\x01\x00\x00`},
		{"revision-3", `MPA ID Req Frame\x40\x03\x00\x00`},
		{"not-mpa", `GET / HTTP/1.1\r\nHost: weft\r\n\r\n`},
	} {
		h.suite.Run(ctx, "start-up/weft-server/"+p.name, func(c *suite.Case) error { return h.probeWeft(c, p.frame) })
		h.suite.Run(ctx, "start-up/siw-server/"+p.name, func(c *suite.Case) error { return h.probeSiw(c, p.frame) })
	}
}

// probe is a bash command that sends a frame, which may be refused before it
// is all written, and prints how many octets came back before the end of the
// connection, and cat's exit status: 124 when there was no end. A reset that
// was lost on the way is not repeated until something more is sent, which
// happens every three seconds.
func probe(addr string, port int, frame string) string {
	return fmt.Sprintf(`trap "" PIPE; exec 3<>/dev/tcp/%s/%d 2>/dev/null && { printf '%s' >&3 2>/dev/null
(for try in 1 2 3 4; do timeout 3 cat <&3; end=$?; [ $end = 124 ] || break; printf '\x00' >&3; done; exit $end) 2>/dev/null | wc -c
echo ${PIPESTATUS[0]}; }`, addr, port, frame)
}

// refused judges what probe printed.
func refused(out string, err error) error {
	words := strings.Fields(out)
	switch {
	case err != nil || len(words) != 2:
		return fmt.Errorf("the probe failed: %w %q", err, out)
	case words[0] != "0":
		return fmt.Errorf("the frame was answered with %s octets, expected none", words[0])
	case words[1] == "124":
		return errors.New("the connection was still open after twelve seconds")
	}
	return nil
}

// probeWeft probes weft's server from the guest, whose rping it must then
// serve.
func (h *harness) probeWeft(c *suite.Case, frame string) error {
	port := h.nextPort()
	server := h.host(c, "weft", h.weft, "ping", "-s", "-P", "-a", h.guest.Gateway, "-p", fmt.Sprint(port), "--log-level", "info")
	if err := server.start(); err != nil {
		return err
	}
	defer server.stop()
	if err := h.guest.AwaitHostListener(c, port); err != nil {
		return errors.Join(err, server.complaint())
	}
	out, err := h.guest.Run(c, "bash -c "+shellQuote(probe(h.guest.Gateway, port, frame)))
	if err := refused(out, err); err != nil {
		return errors.Join(err, server.complaint())
	}
	client, err := h.guest.Start(c, "rping", programLimit, fmt.Sprintf("rping -c -v -V -S 100 -a %s -p %d -C 3", h.guest.Gateway, port))
	if err != nil {
		return err
	}
	status, err := client.Wait(c, 20*time.Second)
	if err := h.guestPrinted(c, client, status, err, pingText("ping data: ", session{size: 100, count: 3})); err != nil {
		return fmt.Errorf("weft's server does not serve the next client: %w", err)
	}
	return nil
}

// probeSiw probes rping's server in the guest, which must then serve weft.
func (h *harness) probeSiw(c *suite.Case, frame string) error {
	port := h.nextPort()
	if _, err := h.guest.Start(c, "rping", programLimit, fmt.Sprintf("rping -s -P -a %s -p %d", h.guest.Addr, port)); err != nil {
		return err
	}
	defer h.guest.Run(context.WithoutCancel(c), "pkill -x rping")
	if err := h.guest.AwaitListener(c, port); err != nil {
		return err
	}
	prober := h.host(c, "probe", "bash", "-c", probe(h.guest.Addr, port, frame))
	err := prober.run()
	if err := refused(prober.stdout.String(), err); err != nil {
		return err
	}
	client := h.host(c, "weft", h.weft, "ping", "-c", "-a", h.guest.Addr, "-p", fmt.Sprint(port), "-C", "3", "-V")
	return client.run()
}

// shellQuote makes one word of text for a shell.
func shellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
