// This file holds the messages of version 2 of the port mapper, which says on
// which port a program is served (RFC 1833 §3).

package oncrpc

import "fmt"

// The port mapper's program, version and port (RFC 1833 §3.1).
const (
	PmapProg = 100000
	PmapVers = 2
	PmapPort = 111
)

// The port mapper's procedures (RFC 1833 §3.1), with arguments and results.
const (
	PmapNull    = 0 // void; void
	PmapSet     = 1 // Mapping; boolean
	PmapUnset   = 2 // Mapping without Prot and Port; boolean
	PmapGetPort = 3 // Mapping without Port; port as an unsigned integer, see ParsePort
	PmapDump    = 4 // void; list of Mapping, see EncodeMappings
	PmapCallIt  = 5 // CallIt; CallItResult, or no reply
)

// Values of [Mapping.Prot] (RFC 1833 §3.1).
const (
	ProtTCP = 6
	ProtUDP = 17
)

// A Mapping says where a version of a program is served (RFC 1833 §3.1). In
// octets: 0-3 program, 4-7 version, 8-11 protocol, 12-15 port.
type Mapping struct {
	Prog, Vers uint32
	Prot       uint32 // ProtTCP or ProtUDP
	Port       uint32
}

func (m Mapping) String() string {
	prot := fmt.Sprintf("protocol %d", m.Prot)
	switch m.Prot {
	case ProtTCP:
		prot = "TCP"
	case ProtUDP:
		prot = "UDP"
	}
	return fmt.Sprintf("program %d version %d: %s port %d", m.Prog, m.Vers, prot, m.Port)
}

// Encode appends m to e.
func (m *Mapping) Encode(e *Encoder) {
	e.Uint32(m.Prog)
	e.Uint32(m.Vers)
	e.Uint32(m.Prot)
	e.Uint32(m.Port)
}

// Decode reads m from d.
func (m *Mapping) Decode(d *Decoder) {
	m.Prog = d.Uint32()
	m.Vers = d.Uint32()
	m.Prot = d.Uint32()
	m.Port = d.Uint32()
}

// ParsePort reads the whole result of [PmapGetPort]. Port zero means that the program
// is not registered. An error is a [*DecodeError]; a port above 65535 is one, too.
func ParsePort(results []byte) (uint16, error) {
	d := NewDecoder(results, "GETPORT result")
	port := d.Uint32()
	if port > 0xffff {
		d.Fail(0, "port %d, expected at most 65535", port)
	}
	if err := d.End(); err != nil {
		return 0, err
	}
	return uint16(port), nil
}

// EncodeMappings appends the result of [PmapDump] to e: a list of optional data
// (RFC 1833 §3.1, pmaplist).
func EncodeMappings(e *Encoder, list []Mapping) {
	for i := range list {
		e.Optional(true)
		list[i].Encode(e)
	}
	e.Optional(false)
}

// ParseMappings reads the whole result of [PmapDump] and appends at most limit
// entries to dst. After an error, a [*DecodeError], it returns dst unchanged.
func ParseMappings(dst []Mapping, results []byte, limit int) ([]Mapping, error) {
	d := NewDecoder(results, "DUMP result")
	list := dst
	for at := 0; d.Optional(); at = d.Pos() {
		if len(list)-len(dst) >= limit {
			d.failAt(at, ErrLimit, "more than %d mappings", limit)
			break
		}
		var m Mapping
		m.Decode(&d)
		list = append(list, m)
	}
	if err := d.End(); err != nil {
		return dst, err
	}
	return list, nil
}

// CallIt is the argument of [PmapCallIt]: a call for the port mapper to forward to a
// program on its machine (RFC 1833 §3.1, call_args). In octets: 0-3 program,
// 4-7 version, 8-11 procedure, 12-15 length of the arguments, the arguments and
// their roundup.
type CallIt struct {
	Prog, Vers, Proc uint32
	Args             []byte // already encoded
}

// Encode appends c to e. The arguments have at most limit octets.
func (c *CallIt) Encode(e *Encoder, limit uint32) {
	e.Uint32(c.Prog)
	e.Uint32(c.Vers)
	e.Uint32(c.Proc)
	e.Opaque(c.Args, limit)
}

// Decode reads c from d. The arguments, of at most limit octets, are part of d's
// slice.
func (c *CallIt) Decode(d *Decoder, limit uint32) {
	c.Prog = d.Uint32()
	c.Vers = d.Uint32()
	c.Proc = d.Uint32()
	c.Args = d.Opaque(limit)
}

// CallItResult is the result of [PmapCallIt] (RFC 1833 §3.1, call_result). In
// octets: 0-3 port, 4-7 length of the results, the results and their roundup.
type CallItResult struct {
	Port uint32 // of the program
	Res  []byte // the program's results
}

// Encode appends c to e. The results have at most limit octets.
func (c *CallItResult) Encode(e *Encoder, limit uint32) {
	e.Uint32(c.Port)
	e.Opaque(c.Res, limit)
}

// Decode reads c from d. The results, of at most limit octets, are part of d's
// slice.
func (c *CallItResult) Decode(d *Decoder, limit uint32) {
	c.Port = d.Uint32()
	c.Res = d.Opaque(limit)
}
