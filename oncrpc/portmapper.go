// This file is the port mapper's server: version 2, and versions 3 and 4, which are
// rpcbind (RFC 1833).

package oncrpc

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// A Service says where a version of a program is served.
type Service struct {
	Prog, Vers uint32
	Netid      string
	// Addr is its address. An unspecified address stands for all of the host's: each
	// client is given the address at which it has called the port mapper.
	Addr netip.AddrPort
}

// A PortMapper is a Handler that says where programs are served. Its table is
// fixed: it refuses registrations (SET, UNSET). It does not forward calls (CALLIT,
// INDIRECT), because port mappers that do have been used to attack others.
//
// Serve it on port 111, [PmapPort], over TCP and UDP, and if needed over RDMA
// (RFC 5666 §10).
type PortMapper struct {
	table []Service
}

// NewPortMapper returns a port mapper with a table.
func NewPortMapper(table []Service) *PortMapper {
	return &PortMapper{table: slices.Clone(table)}
}

// Program returns the port mapper's entry for a [Mux].
func (p *PortMapper) Program() Program {
	return Program{Prog: PmapProg, Low: PmapVers, High: RpcbVers4, Handler: p}
}

// ServeRPC executes a call of version 2, 3 or 4.
func (p *PortMapper) ServeRPC(_ context.Context, r *Request) ([]byte, error) {
	if r.Vers == PmapVers {
		return p.servePmap(r)
	}
	return p.serveRpcb(r)
}

// servePmap executes a call of version 2 (RFC 1833 §3).
func (p *PortMapper) servePmap(r *Request) ([]byte, error) {
	d := NewDecoder(r.Args, "port mapper arguments")
	var m Mapping
	switch r.Proc {
	case PmapSet, PmapUnset, PmapGetPort:
		m.Decode(&d)
	case PmapNull, PmapDump:
	case PmapCallIt:
		return nil, refuseForward(r)
	default:
		return nil, &AcceptError{Stat: ProcUnavail}
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	e := r.Accept(p.room())
	switch r.Proc {
	case PmapSet, PmapUnset:
		e.Bool(false)
	case PmapGetPort:
		var port uint16
		if netid, ok := netidOfProt(m.Prot); ok {
			if s := p.find(m.Prog, m.Vers, netid, false); s != nil {
				port = s.Addr.Port()
			}
		}
		e.Uint32(uint32(port))
	case PmapDump:
		var list []Mapping
		for _, s := range p.table {
			switch s.Netid {
			case NetidTCP:
				list = append(list, Mapping{s.Prog, s.Vers, ProtTCP, uint32(s.Addr.Port())})
			case NetidUDP:
				list = append(list, Mapping{s.Prog, s.Vers, ProtUDP, uint32(s.Addr.Port())})
			}
		}
		EncodeMappings(&e, list)
	}
	return e.Finish()
}

// netidOfProt is the network identifier for a protocol number of version 2.
func netidOfProt(prot uint32) (netid string, ok bool) {
	switch prot {
	case ProtTCP:
		return NetidTCP, true
	case ProtUDP:
		return NetidUDP, true
	}
	return "", false
}

// serveRpcb executes a call of version 3 or 4 (RFC 1833 §2).
func (p *PortMapper) serveRpcb(r *Request) ([]byte, error) {
	d := NewDecoder(r.Args, "rpcbind arguments")
	var b Rpcb
	switch r.Proc {
	case RpcbGetVersAddr, RpcbGetAddrList:
		if r.Vers < RpcbVers4 {
			return nil, &AcceptError{Stat: ProcUnavail}
		}
		b.Decode(&d)
	case RpcbSet, RpcbUnset, RpcbGetAddr:
		b.Decode(&d)
	case RpcbNull, RpcbDump, RpcbGetTime:
	case RpcbCallIt:
		return nil, refuseForward(r)
	default:
		return nil, &AcceptError{Stat: ProcUnavail}
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	e := r.Accept(p.room())
	switch r.Proc {
	case RpcbSet, RpcbUnset:
		e.Bool(false)
	case RpcbGetAddr, RpcbGetVersAddr:
		addr := ""
		if s := p.find(b.Prog, b.Vers, netidFor(r, b.Netid), r.Proc == RpcbGetVersAddr); s != nil {
			addr = s.uaddr(r)
		}
		e.String(addr, maxRpcbString)
	case RpcbDump:
		list := make([]Rpcb, 0, len(p.table))
		for i := range p.table {
			s := &p.table[i]
			list = append(list, Rpcb{s.Prog, s.Vers, s.Netid, FormatUaddr(s.Addr), ""})
		}
		EncodeRpcbs(&e, list)
	case RpcbGetTime:
		e.Uint32(uint32(time.Now().Unix()))
	case RpcbGetAddrList:
		p.encodeAddrs(&e, r, b)
	}
	return e.Finish()
}

// room is the length in octets of the longest results.
func (p *PortMapper) room() int { return 64 + 160*len(p.table) }

// refuseForward answers CALLIT. Over UDP it is silent, because the call may be a
// broadcast, and refusals from all hosts would flood the client (RFC 1833 §2.2.1).
func refuseForward(r *Request) error {
	if r.Network == "udp" {
		return ErrNoReply
	}
	return &AcceptError{Stat: ProcUnavail}
}

// find returns a program's service on a network. If the version is not served and
// need not be exact, it returns another version, whose server answers PROG_MISMATCH.
func (p *PortMapper) find(prog, vers uint32, netid string, exact bool) *Service {
	var other *Service
	for i := range p.table {
		s := &p.table[i]
		if s.Prog != prog || s.Netid != netid {
			continue
		}
		if s.Vers == vers {
			return s
		}
		if other == nil {
			other = s
		}
	}
	if exact {
		return nil
	}
	return other
}

// netidFor is the network that GETADDR asks about: the one that carried the call,
// whatever the arguments name (RFC 1833 §2.2.1). RDMA is an exception, as a client
// looks for it over another network.
func netidFor(r *Request, named string) string {
	if named == NetidRDMA || named == NetidRDMA6 {
		return named
	}
	return NetidOf(r.Network, ipOf(r.Remote))
}

// uaddr is the service's universal address for the client of r.
func (s *Service) uaddr(r *Request) string {
	a := s.Addr
	if a.Addr().IsUnspecified() {
		if local := askedAt(r); local.IsValid() && local.Unmap().Is4() == a.Addr().Is4() {
			a = netip.AddrPortFrom(local, a.Port())
		}
	}
	return FormatUaddr(a)
}

// askedAt is the address of this host that the call was sent to. A UDP socket bound
// to all addresses does not know it; then it is the source address of the reply.
func askedAt(r *Request) netip.Addr {
	local := ipOf(r.Local)
	if r.Network != "udp" || !local.IsUnspecified() {
		return local
	}
	c, err := net.Dial("udp", r.Remote.String()) // sends nothing
	if err != nil {
		return local
	}
	defer c.Close()
	return ipOf(c.LocalAddr())
}

// ipOf is the IP address of a, or the zero Addr.
func ipOf(a net.Addr) netip.Addr {
	if a == nil {
		return netip.Addr{}
	}
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

// Transport semantics in an entry of GETADDRLIST (RFC 1833 §2.1).
const (
	semanticsCLTS    = 1 // NC_TPI_CLTS: connectionless
	semanticsCOTSOrd = 3 // NC_TPI_COTS_ORD: connection-oriented, with orderly release
)

// encodeAddrs appends the result of GETADDRLIST: the addresses of a version on all
// networks of the call's IP version (RFC 1833 §2.1, rpcb_entry_list).
func (p *PortMapper) encodeAddrs(e *Encoder, r *Request, b Rpcb) {
	six := NetidOf("", ipOf(r.Remote)) == "6"
	for i := range p.table {
		s := &p.table[i]
		family, semantics := "inet", uint32(semanticsCOTSOrd)
		proto, is6 := strings.CutSuffix(s.Netid, "6")
		if is6 {
			family = "inet6"
		}
		if s.Prog != b.Prog || s.Vers != b.Vers || is6 != six {
			continue
		}
		if proto == NetidUDP {
			semantics = semanticsCLTS
		}
		e.Optional(true)
		e.String(s.uaddr(r), maxRpcbString)
		e.String(s.Netid, maxRpcbString)
		e.Uint32(semantics)
		e.String(family, maxRpcbString)
		e.String(proto, maxRpcbString)
	}
	e.Optional(false)
}
