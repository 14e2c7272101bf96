package main

import (
	"testing"
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
