package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpctcp"
)

// Without a port, NFS over RDMA is on 20049, for version 4 as well, and NFS over
// TCP on 2049.
//
// Claims: P8267-6.3-1 P-10-2 P-12-5
func TestSidesOfAGatewayHaveThePortsOfNFS(t *testing.T) {
	for url, want := range map[string]string{
		"rdma://nas":             "rdma://nas:20049",
		"rdma://nas/":            "rdma://nas:20049",
		"rdma://nas:":            "rdma://nas:20049",
		"tcp://nas":              "tcp://nas:2049",
		"tcp://nas:4711":         "tcp://nas:4711",
		"tcp://[2001:db8::1]":    "tcp://[2001:db8::1]:2049",
		"rdma://[2001:db8::1]:7": "rdma://[2001:db8::1]:7",
		"rdma://:20049":          "rdma://:20049",
		"rdma://":                "rdma://:20049",
	} {
		e, err := parseEndpoint("--to", url)
		if err != nil || e.String() != want {
			t.Errorf("%s: %v and %v, want %s", url, e, err, want)
		}
	}
	g := newGateway()
	if got := g.Flags().Lookup("listen").DefValue; got != "rdma://127.0.0.1:20049" {
		t.Errorf("a gateway listens at %s by default", got)
	}
	for _, url := range []string{"", "nas", "nas:2049", "udp://nas", "tcp://nas:x", "tcp://nas:70000", "tcp://nas:1/path", "tcp://n as"} {
		if e, err := parseEndpoint("--to", url); err == nil {
			t.Errorf("%q is taken for %v", url, e)
		}
	}
}

// A server that can't be used as the flags ask is told from one that is not there yet.
func TestAGatewayTellsWhyItsServerIsNotReached(t *testing.T) {
	for err, want := range map[error]string{
		context.DeadlineExceeded: "tcp://nas:2049 does not answer yet; calls wait for it",
		&oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthFailed, Err: rpctcp.ErrNoTLS}:       "the server does not offer TLS over TCP, and this side requires it with --tls; calls fail",
		&oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthFailed, Err: errors.New("expired")}: "TLS: expired; calls fail",
	} {
		if got := notReached("tcp://nas:2049", err); !strings.HasSuffix(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

// A failing caller answers each call by the next of its errors.
type failing struct{ errs []error }

func (f *failing) Call(context.Context, *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	err := f.errs[0]
	f.errs = f.errs[1:]
	return nil, err
}

func (f *failing) Close() error { return nil }

// A certificate may expire while a gateway runs.
func TestAGatewayTellsWhenItsServerRefusesTLSLater(t *testing.T) {
	expired := &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthFailed, Err: errors.New("expired")}
	var told []string
	w := newWatch("tcp://nas:2049", 0, 0, func(text string) { told = append(told, text) })
	f := &failing{[]error{nil, expired, expired, context.DeadlineExceeded, expired, nil, expired}}
	c := &watchedCaller{f, w}
	for len(f.errs) > 0 {
		c.Call(t.Context(), &oncrpc.ClientCall{})
	}
	if want := "cannot connect to tcp://nas:2049: TLS: expired; calls fail"; len(told) != 2 || told[0] != want || told[1] != want {
		t.Errorf("told %q, want %q twice", told, want)
	}
}

func TestAFlagThatIsGivenTwiceIsAnError(t *testing.T) {
	for flags, want := range map[string]string{
		"gateway --to tcp://a --listen rdma://:1 -l rdma://:2":   "it is there twice; run a gateway for each",
		"gateway --to tcp://a --to tcp://b":                      "it is there twice; a gateway has one server",
		"serve . --listen 127.0.0.1:0 --listen 127.0.0.1:0":      "it is there twice; --config takes several addresses",
		"serve . --listen 127.0.0.1:0 --tcp off --tcp 127.0.0.1": "it is there twice; --config takes several addresses",
	} {
		var said bytes.Buffer
		if status := run(t.Context(), strings.Fields(flags), io.Discard, &said); status != 2 || !strings.Contains(said.String(), want) {
			t.Errorf("%s: status %d: %s", flags, status, said.String())
		}
	}
}

func TestAnAddressOfMetricsThatIsNoneIsAnErrorOfUsage(t *testing.T) {
	for _, addr := range []string{"foo", "127.0.0.1:", "127.0.0.1:99999"} {
		var said bytes.Buffer
		if status := run(t.Context(), []string{"serve", t.TempDir(), "--listen", "127.0.0.1:0", "--tcp", "off", "--metrics", addr}, io.Discard, &said); status != 2 {
			t.Errorf("%s: status %d: %s", addr, status, said.String())
		}
	}
}
