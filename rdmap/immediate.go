// This file is the codec of Immediate Data (RFC 7306 §6.2).

package rdmap

// ImmediateLen is the length of Immediate Data in octets (RFC 7306 §6.3).
const ImmediateLen = 8

// AppendImmediate appends data to dst: 8 octets right behind the DDP header, in
// the order given (RFC 7306 §6.2, Figure 7).
func AppendImmediate(dst []byte, data [ImmediateLen]byte) []byte { return append(dst, data[:]...) }

// ParseImmediate reads Immediate Data from b, the payload of its message. Any
// length but 8 octets is an [*Error] (RFC 7306 §6.3).
func ParseImmediate(op Opcode, b []byte) (data [ImmediateLen]byte, err error) {
	if len(b) != ImmediateLen {
		return data, errLength(op, len(b), ImmediateLen)
	}
	return [ImmediateLen]byte(b), nil
}
