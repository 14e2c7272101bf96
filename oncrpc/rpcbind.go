// This file holds the messages of rpcbind, versions 3 and 4 of the port mapper,
// which knows of other networks than TCP and UDP over IP version 4 (RFC 1833 §2).

package oncrpc

// The versions of the port mapper's program that are rpcbind (RFC 1833 §2.1).
const (
	RpcbVers  = 3
	RpcbVers4 = 4
)

// The procedures of rpcbind (RFC 1833 §2.1), with arguments and results. Those
// from RpcbGetVersAddr on are of version 4.
const (
	RpcbNull        = 0  // nothing; nothing
	RpcbSet         = 1  // Rpcb; boolean
	RpcbUnset       = 2  // Rpcb, of which Addr is ignored; boolean
	RpcbGetAddr     = 3  // Rpcb; universal address as a string, empty if there is none
	RpcbDump        = 4  // nothing; list of Rpcb, see EncodeRpcbs
	RpcbCallIt      = 5  // CallIt; universal address and results, or silence
	RpcbGetTime     = 6  // nothing; seconds since 1970 as an unsigned integer
	RpcbUaddr2Taddr = 7  // universal address; netbuf
	RpcbTaddr2Uaddr = 8  // netbuf; universal address
	RpcbGetVersAddr = 9  // as RpcbGetAddr
	RpcbIndirect    = 10 // as RpcbCallIt, but never silent
	RpcbGetAddrList = 11 // Rpcb; list of entries
	RpcbGetStat     = 12 // nothing; statistics
)

// maxRpcbString bounds the strings of an Rpcb, in octets. The RFC has no limit.
const maxRpcbString = 255

// An Rpcb says where a version of a program is served (RFC 1833 §2.1). In
// octets: 0-3 program, 4-7 version, then three strings.
type Rpcb struct {
	Prog, Vers uint32
	Netid      string // what carries the calls; see NetidTCP
	Addr       string // universal address; see ParseUaddr
	Owner      string // who has registered it
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

// EncodeRpcbs appends the result of [RpcbDump] to e: a list, each entry behind a
// word that says there is one.
func EncodeRpcbs(e *Encoder, list []Rpcb) {
	for i := range list {
		e.Optional(true)
		list[i].Encode(e)
	}
	e.Optional(false)
}

// ParseRpcbs reads the result of [RpcbDump], whole, and appends at most limit
// entries to dst. An error is a [*DecodeError]; dst is then returned as it was.
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
