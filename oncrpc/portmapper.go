// This file is a port mapper: the program by which clients find the others of a
// server, in the version that Sun began with and as rpcbind (RFC 1833).

package oncrpc

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// A Service is a version of a program and where it is served.
type Service struct {
	Prog, Vers uint32
	Netid      string
	// Addr is where. With an unspecified address it is any of the host's: those
	// who ask are told the one that they have asked at.
	Addr netip.AddrPort
}

// A PortMapper is a Handler that answers where programs are served. It keeps to
// the table that it is given: registrations by others are refused. It calls no
// program for anybody (CALLIT, INDIRECT), by which port mappers have been made to
// attack others.
//
// It is served on port 111, [PmapPort], over TCP and UDP. Over RDMA it does as
// well (RFC 5666 §10).
type PortMapper struct {
	table []Service
}

// NewPortMapper returns a port mapper with a table.
func NewPortMapper(table []Service) *PortMapper {
	return &PortMapper{table: slices.Clone(table)}
}

// Program is the port mapper as a program of a [Mux].
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
		return nil, unheard(r)
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

// netidOfProt is the network that a protocol number of version 2 stands for.
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
		return nil, unheard(r)
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

// room is how many octets the longest results have.
func (p *PortMapper) room() int { return 64 + 160*len(p.table) }

// unheard is what becomes of a call that is to be passed on: on networks with
// broadcasts nothing, so that nobody is flooded (RFC 1833 §2.2.1).
func unheard(r *Request) error {
	if r.Network == "udp" {
		return ErrNoReply
	}
	return &AcceptError{Stat: ProcUnavail}
}

// find returns a program's service on a network: of the version asked for, or
// unless that matters of another one, whose server will tell which it has.
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

// netidFor is the network that GETADDR is about: the one that the call came by,
// whatever it names (RFC 1833 §2.2.1). Only the RDMA networks can be named, or
// nobody could ask for them before having found them.
func netidFor(r *Request, named string) string {
	if named == NetidRDMA || named == NetidRDMA6 {
		return named
	}
	return NetidOf(r.Network, ipOf(r.Remote))
}

// uaddr is the service's universal address for the one who asks.
func (s *Service) uaddr(r *Request) string {
	a := s.Addr
	if a.Addr().IsUnspecified() {
		if local := askedAt(r); local.IsValid() && local.Unmap().Is4() == a.Addr().Is4() {
			a = netip.AddrPortFrom(local, a.Port())
		}
	}
	return FormatUaddr(a)
}

// askedAt is the address of this host that a call was sent to. A socket for
// datagrams to all addresses does not tell; then it is the one from which the
// reply goes.
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

// ipOf is the IP address in an address, or none.
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
	semanticsCOTSOrd = 3 // NC_TPI_COTS_ORD: connections, closed in good order
)

// encodeAddrs appends the result of GETADDRLIST: where the version is served, on
// all networks of the IP version that the call came by (RFC 1833 §2.1,
// rpcb_entry_list).
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
