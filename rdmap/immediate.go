// This file is Immediate Data (RFC 7306 §6): its codec, and how it is sent and
// received.

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

// startImmediate starts an Immediate Data message.
func (o *outbound) startImmediate(op *Operation) {
	o.startUntagged(AppendImmediate(o.msg.fixed[:0], op.Immediate), QueueSend)
}

// deliverImmediate completes a receive, whose buffer it leaves alone.
func (in *inbound) deliverImmediate(length uint32) error {
	data, err := ParseImmediate(in.message, in.fixed[:length])
	if err != nil {
		return err
	}
	in.delivery = Delivery{Opcode: in.message, Length: length, Immediate: data}
	in.delivered()
	return nil
}
