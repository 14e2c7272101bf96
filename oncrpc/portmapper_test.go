package oncrpc

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// mapped is the table of a file server.
var mapped = []Service{
	{100003, 3, NetidTCP, netip.MustParseAddrPort("0.0.0.0:2049")},
	{100003, 3, NetidTCP6, netip.MustParseAddrPort("[::]:2049")},
	{100003, 3, NetidRDMA, netip.MustParseAddrPort("192.0.2.7:20049")},
	{100005, 1, NetidUDP, netip.MustParseAddrPort("0.0.0.0:635")},
	{100005, 3, NetidUDP, netip.MustParseAddrPort("0.0.0.0:636")},
}

// askMapper calls a port mapper over "tcp" or "udp", from an address of either IP version.
func askMapper(network, local, remote string, vers, proc uint32, args []byte) ([]byte, error) {
	address := func(s string) net.Addr {
		if network == "udp" {
			return net.UDPAddrFromAddrPort(netip.MustParseAddrPort(s))
		}
		return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s))
	}
	mux := Mux{NewPortMapper(mapped).Program()}
	reply, err := mux.ServeRPC(context.Background(), &Request{
		Call: Call{XID: 1, Prog: PmapProg, Vers: vers, Proc: proc}, Args: args,
		Network: network, Local: address(local), Remote: address(remote),
	})
	if err != nil {
		return nil, err
	}
	var r Reply
	results, err := r.Parse(reply)
	return reply[results:], err
}

// encoded returns what f encodes.
func encoded(t *testing.T, f func(e *Encoder)) []byte {
	t.Helper()
	e := NewEncoder(nil)
	f(&e)
	b, err := e.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestThePortMapperTellsPorts(t *testing.T) {
	for _, c := range []struct {
		name string
		ask  Mapping
		want uint16
	}{
		{"of the version", Mapping{100005, 3, ProtUDP, 0}, 636},
		{"of another version, whose server says which it has", Mapping{100005, 2, ProtUDP, 0}, 635},
		{"on the other protocol", Mapping{100005, 3, ProtTCP, 0}, 0},
		{"of no protocol", Mapping{100003, 3, 99, 0}, 0},
		{"of no program", Mapping{7, 3, ProtTCP, 0}, 0},
		{"of NFS", Mapping{100003, 3, ProtTCP, 0}, 2049},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := encoded(t, c.ask.Encode)
			results, err := askMapper("tcp", "192.0.2.7:111", "192.0.2.8:900", PmapVers, PmapGetPort, args)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := ParsePort(results); err != nil || got != c.want {
				t.Errorf("port %d, %v, want %d", got, err, c.want)
			}
		})
	}
}

// TestRpcbindTellsUniversalAddresses also shows that a service on RDMA is found
// by its netid.
//
// Claims: P-10-4
func TestRpcbindTellsUniversalAddresses(t *testing.T) {
	const host4, host6 = "192.0.2.7:111", "[2001:db8::7]:111"
	const peer4, peer6 = "192.0.2.8:900", "[2001:db8::8]:900"
	for _, c := range []struct {
		name, network, local, remote string
		vers, proc                   uint32
		ask                          Rpcb
		want                         string
	}{
		{"by the network of the call", "tcp", host4, peer4, 3, RpcbGetAddr, Rpcb{Prog: 100003, Vers: 3}, "192.0.2.7.8.1"},
		{"whatever network is named", "tcp", host4, peer4, 4, RpcbGetAddr, Rpcb{Prog: 100003, Vers: 3, Netid: "udp"}, "192.0.2.7.8.1"},
		{"over IP version 6", "tcp", host6, peer6, 4, RpcbGetAddr, Rpcb{Prog: 100003, Vers: 3, Netid: "tcp"}, "2001:db8::7.8.1"},
		{"over IP version 4 in 6", "tcp", "[::ffff:192.0.2.7]:111", "[::ffff:192.0.2.8]:900", 4, RpcbGetAddr, Rpcb{Prog: 100003, Vers: 3}, "192.0.2.7.8.1"},
		{"on RDMA, when that is named", "tcp", host4, peer4, 4, RpcbGetAddr, Rpcb{Prog: 100003, Vers: 3, Netid: "rdma"}, "192.0.2.7.78.81"},
		{"on RDMA, asked over RDMA", "rdma", host4, peer4, 4, RpcbGetAddr, Rpcb{Prog: 100003, Vers: 3}, "192.0.2.7.78.81"},
		{"by datagram", "udp", host4, peer4, 3, RpcbGetAddr, Rpcb{Prog: 100005, Vers: 3}, "192.0.2.7.2.124"},
		{"by datagram to all addresses", "udp", "0.0.0.0:111", "127.0.0.1:900", 3, RpcbGetAddr, Rpcb{Prog: 100005, Vers: 3}, "127.0.0.1.2.124"},
		{"of another version", "udp", host4, peer4, 4, RpcbGetAddr, Rpcb{Prog: 100005, Vers: 2}, "192.0.2.7.2.123"},
		{"of exactly that version", "udp", host4, peer4, 4, RpcbGetVersAddr, Rpcb{Prog: 100005, Vers: 3}, "192.0.2.7.2.124"},
		{"of exactly a version that there is not", "udp", host4, peer4, 4, RpcbGetVersAddr, Rpcb{Prog: 100005, Vers: 2}, ""},
		{"of no program", "tcp", host4, peer4, 4, RpcbGetAddr, Rpcb{Prog: 7, Vers: 3}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			results, err := askMapper(c.network, c.local, c.remote, c.vers, c.proc, encoded(t, c.ask.Encode))
			if err != nil {
				t.Fatal(err)
			}
			d := NewDecoder(results, "GETADDR result")
			got := d.String(255)
			if err := d.End(); err != nil || got != c.want {
				t.Errorf("address %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestThePortMapperListsItsTable(t *testing.T) {
	results, err := askMapper("tcp", "192.0.2.7:111", "192.0.2.8:900", PmapVers, PmapDump, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseMappings(nil, results, 9)
	want := []Mapping{{100003, 3, ProtTCP, 2049}, {100005, 1, ProtUDP, 635}, {100005, 3, ProtUDP, 636}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("version 2: %v, %v, want %v", got, err, want)
	}

	results, err = askMapper("tcp", "192.0.2.7:111", "192.0.2.8:900", RpcbVers, RpcbDump, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := ParseRpcbs(nil, results, 9)
	if err != nil || len(all) != len(mapped) || all[2] != (Rpcb{100003, 3, "rdma", "192.0.2.7.78.81", ""}) {
		t.Errorf("version 3: %v, %v", all, err)
	}
	if _, err := ParseRpcbs(nil, results, 4); !errors.Is(err, ErrLimit) {
		t.Errorf("a list over the limit is read with %v", err)
	}
	for n := range results {
		if _, err := ParseRpcbs(nil, results[:n], 9); err == nil {
			t.Fatalf("the first %d octets are read as a list", n)
		}
	}
}

func TestAddressesAreListedForOneIPVersion(t *testing.T) {
	ask := Rpcb{Prog: 100003, Vers: 3}
	results, err := askMapper("tcp", "192.0.2.7:111", "192.0.2.8:900", RpcbVers4, RpcbGetAddrList, encoded(t, ask.Encode))
	want := annotated(t, `
		00000001 0000000d 3139322e 302e322e 372e382e 31000000   one: 192.0.2.7.8.1
		00000003 74637000 00000003                              "tcp", closed in good order
		00000004 696e6574 00000003 74637000                     "inet", "tcp"
		00000001 0000000f 3139322e 302e322e 372e3738 2e383100   one more: 192.0.2.7.78.81
		00000004 72646d61 00000003 00000004 696e6574 00000004 72646d61
		00000000`)
	if err != nil || !bytes.Equal(results, want) {
		t.Errorf("got % x, %v, want % x", results, err, want)
	}
}

func TestThePortMapperTakesNoOrders(t *testing.T) {
	m := Mapping{100003, 3, ProtTCP, 1}
	b := Rpcb{100003, 3, "tcp", "192.0.2.9.0.1", "x"}
	no := make([]byte, 4)
	for _, c := range []struct {
		name          string
		network       string
		vers, proc    uint32
		args, results []byte
		err           error
	}{
		{"SET", "tcp", PmapVers, PmapSet, encoded(t, m.Encode), no, nil},
		{"UNSET", "udp", PmapVers, PmapUnset, encoded(t, m.Encode), no, nil},
		{"SET of rpcbind", "tcp", RpcbVers4, RpcbSet, encoded(t, b.Encode), no, nil},
		{"UNSET of rpcbind", "tcp", RpcbVers, RpcbUnset, encoded(t, b.Encode), no, nil},
		{"CALLIT by datagram", "udp", PmapVers, PmapCallIt, nil, nil, ErrNoReply},
		{"CALLIT", "tcp", PmapVers, PmapCallIt, nil, nil, &AcceptError{Stat: ProcUnavail}},
		{"BCAST", "udp", RpcbVers4, RpcbCallIt, nil, nil, ErrNoReply},
		{"INDIRECT", "tcp", RpcbVers4, RpcbIndirect, nil, nil, &AcceptError{Stat: ProcUnavail}},
		{"GETVERSADDR of version 3", "tcp", RpcbVers, RpcbGetVersAddr, nil, nil, &AcceptError{Stat: ProcUnavail}},
		{"a procedure of no version", "tcp", PmapVers, 6, nil, nil, &AcceptError{Stat: ProcUnavail}},
		{"version 5", "tcp", 5, PmapDump, nil, nil, &AcceptError{Stat: ProgMismatch}},
		{"arguments cut short", "tcp", PmapVers, PmapGetPort, no, nil, ErrShort},
		{"arguments that go on", "tcp", RpcbVers, RpcbDump, no, nil, ErrTrailing},
	} {
		t.Run(c.name, func(t *testing.T) {
			results, err := askMapper(c.network, "192.0.2.7:111", "192.0.2.8:900", c.vers, c.proc, c.args)
			if !errors.Is(err, c.err) || !bytes.Equal(results, c.results) {
				t.Errorf("got % x, %v, want % x, %v", results, err, c.results, c.err)
			}
		})
	}
}

// A registry is a caller of a port mapper that accepts registrations.
type registry struct {
	low  uint32 // versions from low to high
	high uint32
	has  map[string]bool
	log  []string
}

func (r *registry) Close() error { return nil }

func (r *registry) Call(_ context.Context, c *ClientCall) (*ClientReply, error) {
	if c.Vers < r.low || c.Vers > r.high {
		return nil, &AcceptError{Stat: ProgMismatch, Low: r.low, High: r.high}
	}
	d := NewDecoder(bytes.Join(c.Args, nil), "arguments")
	var what string
	if c.Vers == PmapVers {
		var m Mapping
		m.Decode(&d)
		what = m.String()
	} else {
		var b Rpcb
		b.Decode(&d)
		what = b.Netid + " " + b.Addr
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	ok := r.has[what] == (c.Proc == RpcbUnset)
	if ok {
		r.has[what] = c.Proc == RpcbSet
	}
	r.log = append(r.log, map[uint32]string{RpcbSet: "set ", RpcbUnset: "unset "}[c.Proc]+what)
	e := NewEncoder(nil)
	e.Bool(ok)
	results, err := e.Finish()
	return &ClientReply{Results: results}, err
}

func TestServicesAreRegisteredAndTakenBack(t *testing.T) {
	services := []Service{mapped[0], mapped[4]}
	for _, c := range []struct {
		name      string
		low, high uint32
		want      string
	}{
		{"rpcbind", 2, 4, "set tcp 0.0.0.0.8.1|set udp 0.0.0.0.2.124|unset tcp 0.0.0.0.8.1|unset udp 0.0.0.0.2.124"},
		{"the port mapper", 2, 2, "set program 100003 version 3: TCP port 2049|set program 100005 version 3: UDP port 636|" +
			"unset program 100003 version 3: TCP port 2049|unset program 100005 version 3: UDP port 636"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &registry{low: c.low, high: c.high, has: make(map[string]bool)}
			if err := Register(context.Background(), r, "weft", services); err != nil {
				t.Fatal(err)
			}
			if err := Unregister(context.Background(), r, "weft", services); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.log, "|"); got != c.want {
				t.Errorf("calls\n%s, want\n%s", got, c.want)
			}
		})
	}
}

func TestARegistrationThatIsRefusedTakesBackTheOthers(t *testing.T) {
	r := &registry{low: 2, high: 4, has: map[string]bool{"udp 0.0.0.0.2.123": true}}
	err := Register(context.Background(), r, "weft", []Service{mapped[0], mapped[3], mapped[4]})
	if err == nil || !strings.Contains(err.Error(), "program 100005 version 1 on udp") {
		t.Errorf("the error is %v, want one that names the service", err)
	}
	if want := "set tcp 0.0.0.0.8.1|set udp 0.0.0.0.2.123|unset tcp 0.0.0.0.8.1"; strings.Join(r.log, "|") != want {
		t.Errorf("calls %q, want %q", r.log, want)
	}
	r = &registry{low: 2, high: 2, has: make(map[string]bool)}
	err = Register(context.Background(), r, "weft", mapped[2:3])
	if !errors.Is(err, &AcceptError{Stat: ProgMismatch}) {
		t.Errorf("RDMA is registered with a version 2 port mapper with %v", err)
	}
}

func FuzzPortMapper(f *testing.F) {
	ask := Rpcb{100003, 3, "tcp", "192.0.2.7.8.1", ""}
	e := NewEncoder(nil)
	ask.Encode(&e)
	args, _ := e.Finish()
	f.Add(uint32(4), uint32(RpcbGetAddr), args)
	f.Add(uint32(2), uint32(PmapGetPort), args[:16])
	f.Fuzz(func(t *testing.T, vers, proc uint32, args []byte) {
		_, _ = askMapper("tcp", "192.0.2.7:111", "192.0.2.8:900", vers, proc, args)
	})
}
