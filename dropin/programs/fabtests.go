package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// fabtests is libfabric's own suite with its own runner and list: of 2.1, as Debian 12's
// sources of libfabric are not served any more. fi_msg_sockets is left out: where an endpoint
// takes its address from a passive one, libfabric creates its queue pair twice, which librdmacm
// refuses, and the server that is left keeps the port from the test behind it. fi_cq_data is
// left out on an rnic: libfabric sees that iWARP has no immediate data, offers no data of a
// completion, and the test fails where none is offered.
func fabtests() []row {
	rows := []row{}
	for _, p := range []string{"verbs", "verbs;ofi_rxm"} {
		rows = append(rows, row{
			name: "fabtests: runfabtests.sh -t quick " + p, pkg: "libfabric (from source)", suite: "fabtests", personas: both, limit: 8 * time.Minute,
			scene: func(ctx context.Context, s *stage) error { return s.fabtests(ctx, p) },
		})
	}
	return rows
}

func (s *stage) fabtests(ctx context.Context, provider string) error {
	s.env = append(s.env, "LD_LIBRARY_PATH="+s.suiteFile("lib"), "PATH="+s.suiteFile("bin")+":"+os.Getenv("PATH"))
	address := ownAddress()
	name := strings.TrimPrefix(provider, "verbs;")
	var flags []string
	without := "fi_msg_sockets"
	if s.persona == "rnic" {
		flags = []string{"--patient"} // some tests send before their peer has posted a receive
		without += ",fi_cq_data"
	}
	p, err := s.start("runfabtests.sh", fmt.Sprintf("runfabtests.sh -t quick -T 30 -e %s -s %s -c %s -f {suite}/test_configs/%s/%s.exclude %s", without, address, address, name, name, provider), flags...)
	if err != nil {
		return err
	}
	err = p.wait(ctx)
	passed, failed := total(p.text(), "# Total Pass"), total(p.text(), "# Total Fail")
	s.note = fmt.Sprintf("%s passed, %s failed", passed, failed)
	if names := failures(p.text()); err != nil && len(names) > 0 {
		return fmt.Errorf("%w: %s: %s", err, s.note, strings.Join(names, "; "))
	}
	return err
}

// failures are the tests that the runner calls failed: lines as "fi_msg -p "verbs":  Fail".
func failures(text string) (names []string) {
	for line := range strings.Lines(text) {
		if name, verdict, ok := strings.Cut(line, ":  "); ok && strings.TrimSpace(verdict) == "Fail" {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

// total is the number in a line of the runner's summary.
func total(text, line string) string {
	_, rest, _ := strings.Cut(text, line)
	first, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(first)
}

// ownAddress is an address of this machine: libfabric takes none of the loopback
// interface where a program names a source.
func ownAddress() string {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}
