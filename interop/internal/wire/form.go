// This file checks the fields of atomics and Terminate Messages.

package wire

import "encoding/binary"

// formAtomic checks the fields of an Atomic Request (RFC 7306 §5.2.1).
func (s *sequences) formAtomic(f directed) {
	p := f.Segment.Payload
	operation := binary.BigEndian.Uint32(p)
	if operation&^0xf != 0 {
		s.c.find(f.Direction, f.Last, RuleReserved, "Atomic Request with reserved bits %#x", operation&^0xf)
	}
	switch operation & 0xf {
	case 0:
		if compare, mask := binary.BigEndian.Uint64(p[36:]), binary.BigEndian.Uint64(p[44:]); compare != 0 || mask != ^uint64(0) {
			s.c.find(f.Direction, f.Last, RuleReserved, "FetchAdd with Compare Data %#x and Compare Mask %#x, expected 0 and all ones", compare, mask)
		}
	case 2:
	default:
		s.c.find(f.Direction, f.Last, RuleOpcode, "Atomic Request with AOpCode %d, defined are 0 and 2", operation&0xf)
	}
}

// terminateCodes are the defined codes by layer and error type (RFC 5040
// §4.8, RFC 5041 §7.2, RFC 5044 §8, RFC 6581 §8). An absent list takes any.
var terminateCodes = map[[2]byte][]byte{
	{0, 0}: nil,
	{0, 1}: {0, 1, 2, 3, 4, 9, 0xff},
	{0, 2}: {5, 6, 7, 8, 9, 0xff},
	{1, 0}: nil,
	{1, 1}: {0, 1, 2, 3, 4},
	{1, 2}: {1, 2, 3, 4, 5, 6},
	{2, 0}: {1, 2, 3, 4, 5, 6, 7},
}

// TerminateCode returns what a Terminate says: layer, error type and code.
func (g Segment) TerminateCode() (layer, etype, code byte) {
	if g.Opcode != Terminate || len(g.Payload) < 2 {
		return 0xff, 0xff, 0xff
	}
	return g.Payload[0] >> 4, g.Payload[0] & 0xf, g.Payload[1]
}

// formTerminate checks the contents of a Terminate (RFC 5040 §4.8).
func (s *sequences) formTerminate(f directed) {
	g := f.Segment
	fault := func(format string, args ...any) { s.c.find(f.Direction, f.Last, RuleTerminate, format, args...) }
	if !g.Last {
		fault("a Terminate of the %v in more than one segment", f.Direction)
	}
	if len(g.Payload) < 4 {
		fault("a Terminate of %d octets, expected at least 4", len(g.Payload))
		return
	}
	layer, etype, code := g.TerminateCode()
	codes, known := terminateCodes[[2]byte{layer, etype}]
	listed := codes == nil
	for _, c := range codes {
		listed = listed || c == code
	}
	if !known || !listed {
		fault("a Terminate with layer %d, type %d, code %#02x, which is not defined", layer, etype, code)
	}
	if g.Payload[2]&0x1f != 0 || g.Payload[3] != 0 {
		fault("a Terminate with reserved bits % x", g.Payload[2:4])
	}
	length, header, request := g.Payload[2]&0x80 != 0, g.Payload[2]&0x40 != 0, g.Payload[2]&0x20 != 0
	want := 4
	if header {
		want += 2 + 18
		if len(g.Payload) > 6 && g.Payload[6]&0x80 != 0 {
			want -= 4 // the terminated segment is tagged
		}
	}
	if request {
		want += 28
	}
	if length && !header || request && !header {
		fault("a Terminate with M %v, D %v and R %v (RFC 5040 figure 10)", length, header, request)
	}
	if len(g.Payload) != want {
		fault("a Terminate of %d octets, M %v D %v R %v make %d", len(g.Payload), length, header, request, want)
	}
}
