package main

import (
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestWhatOthersMayIsSaidAtTheStart(t *testing.T) {
	at := func(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }
	loopback, all, one := at("127.0.0.1:20049"), at("[::]:20049"), at("192.0.2.7:2049")
	const (
		byRDMA = "over RDMA any user there may call"
		low    = "ports below 1024, which take root there: --insecure"
		none   = "other machines are not served: --allow NETWORK admits them"
	)
	for _, tt := range []struct {
		what string
		a    audience
		want []string // in this order, and no other line
	}{
		{"root, for this machine", audience{access: &access{}, at: []net.Addr{loopback, nil}}, nil},
		{"root, for all", audience{access: &access{}, at: []net.Addr{all, all}, rdma: true}, []string{"any caller that reaches this machine may CLAIM", byRDMA}},
		{"root, for some", audience{access: &access{allow: []string{"192.0.2.0/24", "198.51.100.7"}}, at: []net.Addr{all, all}, rdma: true}, []string{"any caller from 192.0.2.0/24, 198.51.100.7 may CLAIM", byRDMA}},
		{"root, by TCP alone", audience{access: &access{}, at: []net.Addr{loopback, one}}, []string{"any caller that reaches this machine may CLAIM", low}},
		{"root, insecure", audience{access: &access{insecure: true}, at: []net.Addr{one}, rdma: true}, []string{"any caller that reaches this machine may CLAIM", "leave out --insecure"}},
		{"root, for others of this machine", audience{access: &access{allowOthers: true}, at: []net.Addr{loopback}}, nil},
		{"a user, for this machine", audience{personal: true, access: &access{}, at: []net.Addr{loopback, loopback}}, nil},
		{"a user, for all of it", audience{personal: true, access: &access{allowOthers: true}, at: []net.Addr{loopback}}, []string{"every user of this machine may SERVER"}},
		{"a system that does not say", audience{personal: true, blind: true, access: &access{}, at: []net.Addr{loopback}}, []string{"callers on this machine are not served"}},
		{"a system that does not say, for all", audience{personal: true, blind: true, access: &access{allowOthers: true}, at: []net.Addr{loopback}}, []string{"every user of this machine may SERVER"}},
		{"a user, for nobody", audience{personal: true, access: &access{}, at: []net.Addr{all}, rdma: true}, []string{none}},
		{"a user, for others", audience{personal: true, access: &access{allow: []string{"192.0.2.0/24"}}, at: []net.Addr{all}, rdma: true}, []string{"any caller from 192.0.2.0/24 may SERVER", byRDMA}},
		{"a user, for everybody", audience{personal: true, access: &access{allow: []string{"192.0.2.0/24"}, allowOthers: true}, at: []net.Addr{all}, rdma: true}, []string{"every user of this machine may SERVER", "any caller from 192.0.2.0/24 may SERVER", byRDMA}},
	} {
		tt.a.asServer, tt.a.asClaims = "SERVER", "CLAIM"
		got := tt.a.warnings()
		if len(got) != len(tt.want) {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
			}
		}
	}
}

func TestRootIsNamedOnlyWhereItMay(t *testing.T) {
	for squash, want := range map[string]string{"root": "every user but root", "none": "as root", "all": "what the user nobody may"} {
		for _, readOnly := range []bool{false, true} {
			s := &serve{squash: []string{squash}, readOnly: readOnly}
			if got := s.mayAsClaims(); !strings.Contains(got, want) || strings.Contains(got, "change") == readOnly {
				t.Errorf("--squash %s, read-only %v: %q", squash, readOnly, got)
			}
		}
	}
}

func TestARefusalSaysWhatWouldLetTheCallerIn(t *testing.T) {
	for _, tt := range []struct {
		tcp, here bool
		want      string
	}{{false, true, "--allow-others"}, {true, true, "--allow-others"}, {true, false, "--insecure"}, {false, false, "does not admit"}} {
		if got := refusal(tt.tcp, tt.here); !strings.Contains(got, tt.want) {
			t.Errorf("TCP %v, here %v: %q, want %s", tt.tcp, tt.here, got, tt.want)
		} else if tt.here && !strings.HasPrefix(got, "if ") {
			t.Errorf("TCP %v: %q, which is a guess", tt.tcp, got)
		}
	}
	for host, want := range map[string]bool{"127.0.0.1": true, "::1": true, "203.0.113.77": false} {
		if isHere(t.Context(), host) != want {
			t.Errorf("%s is here: %v", host, !want)
		}
	}
}
