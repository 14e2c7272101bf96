// This file holds the messages of rpcbind, versions 3 and 4 of the port mapper, which
// support networks other than TCP and UDP over IPv4 (RFC 1833 §2).

package oncrpc

// The versions of the port mapper's program that are rpcbind (RFC 1833 §2.1).
const (
	RpcbVers  = 3
	RpcbVers4 = 4
)

// The procedures of rpcbind (RFC 1833 §2.1), with arguments and results. Those
// from RpcbGetVersAddr on exist in version 4 only.
const (
	RpcbNull        = 0  // void; void
	RpcbSet         = 1  // Rpcb; boolean
	RpcbUnset       = 2  // Rpcb without Addr; boolean
	RpcbGetAddr     = 3  // Rpcb; universal address as a string, empty if there is none
	RpcbDump        = 4  // void; list of Rpcb, see EncodeRpcbs
	RpcbCallIt      = 5  // CallIt; universal address and results, or no reply
	RpcbGetTime     = 6  // void; seconds since 1970 as an unsigned integer
	RpcbUaddr2Taddr = 7  // universal address; netbuf
	RpcbTaddr2Uaddr = 8  // netbuf; universal address
	RpcbGetVersAddr = 9  // as RpcbGetAddr
	RpcbIndirect    = 10 // as RpcbCallIt, but always with a reply
	RpcbGetAddrList = 11 // Rpcb; list of entries
	RpcbGetStat     = 12 // void; statistics
)

// maxRpcbString bounds the strings of an Rpcb, in octets. The RFC sets no limit.
const maxRpcbString = 255

// An Rpcb says where a version of a program is served (RFC 1833 §2.1). In
// octets: 0-3 program, 4-7 version, then three strings.
type Rpcb struct {
	Prog, Vers uint32
	Netid      string // network identifier; see NetidTCP
	Addr       string // universal address; see ParseUaddr
	Owner      string // who registered it
}

// Encode appends r to e. Its strings have at most 255 octets.
func (r *Rpcb) Encode(e *Encoder) {
	e.Uint32(r.Prog)
	e.Uint32(r.Vers)
	e.String(r.Netid, maxRpcbString)
	e.String(r.Addr, maxRpcbString)
	e.String(r.Owner, maxRpcbString)
}

// Decode reads r from d. Its strings have at most 255 octets.
func (r *Rpcb) Decode(d *Decoder) {
	r.Prog = d.Uint32()
	r.Vers = d.Uint32()
	r.Netid = d.String(maxRpcbString)
	r.Addr = d.String(maxRpcbString)
	r.Owner = d.String(maxRpcbString)
}

// EncodeRpcbs appends the result of [RpcbDump] to e: a list of optional data.
func EncodeRpcbs(e *Encoder, list []Rpcb) {
	for i := range list {
		e.Optional(true)
		list[i].Encode(e)
	}
	e.Optional(false)
}

// ParseRpcbs reads the whole result of [RpcbDump] and appends at most limit entries
// to dst. After an error, a [*DecodeError], it returns dst unchanged.
func ParseRpcbs(dst []Rpcb, results []byte, limit int) ([]Rpcb, error) {
	d := NewDecoder(results, "DUMP result")
	list := dst
	for at := 0; d.Optional(); at = d.Pos() {
		if len(list)-len(dst) >= limit {
			d.failAt(at, ErrLimit, "more than %d entries", limit)
			break
		}
		var r Rpcb
		r.Decode(&d)
		list = append(list, r)
	}
	if err := d.End(); err != nil {
		return dst, err
	}
	return list, nil
}
