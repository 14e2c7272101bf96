// Atomics (RFC 7306 §5): how they are asked for and served.

package rdmap

import "github.com/weft-rdma/weft/ddp"

// startAtomic asks the peer for an atomic.
func (o *outbound) startAtomic(op *Operation) {
	a := &op.Atomic
	// The identifier is ours to choose (RFC 7306 §5.2.1); the response's
	// MSN counts requests, so the low half of the ticket will do.
	a.ID, a.STag, a.TO = uint32(op.Ticket), op.RemoteSTag, op.RemoteTO
	o.ask(a.Append(o.msg.fixed[:0]), &pending{ticket: op.Ticket, id: a.ID})
}

var atomics = service{
	parse: func(in *inbound, r *request, payload []byte) error {
		if err := r.op.Parse(payload); err != nil {
			return err
		}
		if !r.op.AOpCode.Defined() {
			return errAtomicOpcode(r.op.AOpCode)
		}
		if aligned, f := in.s.ulp.CheckAtomic(&r.op); !aligned || f != ddp.NoFault {
			return r.atomicFault(aligned, f)
		}
		return nil
	},
	answer:  (*outbound).startAtomicResponse,
	refused: func(r *request, f ddp.Fault) error { return r.atomicFault(true, f) },
	count:   func(f *finished, _ *request) { f.atomics++ },
}

// startAtomicResponse does what the request asks and starts its answer. The
// operation is executed when the answers to all earlier requests have been
// generated (RFC 7306 §5.4 rule 8, §7).
func (o *outbound) startAtomicResponse(r *request) bool {
	a := &r.op
	found, aligned, f := o.s.ulp.Atomic(a)
	if !aligned || f != ddp.NoFault {
		o.unanswered(r.atomicFault(aligned, f))
		return true // gather goes on with the Terminate
	}
	o.msg.opcode = OpAtomicResponse
	response := AtomicResponse{ID: a.ID, Original: found}
	o.startUntagged(response.Append(o.msg.fixed[:0]), QueueAtomicResponse)
	return true
}

// deliverAtomicResponse completes the oldest request of ours, which is an atomic.
func (in *inbound) deliverAtomicResponse(length uint32) error {
	var r AtomicResponse
	if err := r.Parse(in.fixed[:length]); err != nil {
		return err
	}
	if r.ID != in.response.id {
		return errWrongAnswer(r.ID, in.response.id)
	}
	return in.respond(r.Original)
}

// atomicFault is the error of an atomic that was not executed. The Terminate message
// has no RDMA header for it (RFC 7306 §8.1).
func (r *request) atomicFault(aligned bool, f ddp.Fault) error {
	var err error = NewProtectionError(f, "%s at offset %#x of STag 0x%08x: %s", r.op.AOpCode, r.op.TO, r.op.STag, f.Reason())
	if f == ddp.NoFault && !aligned {
		err = errMisaligned(&r.op)
	}
	return &offence{err: err, header: r.header[:], length: r.length}
}

func errWrongAnswer(got, want uint32) error {
	return NewError(RemoteOperation, CodeStream, "Atomic Response to request %#x, expected %#x", got, want)
}

func errAtomicOpcode(a AOpCode) error {
	return NewError(RemoteOperation, CodeOpcode, "Atomic Request: %s", a)
}

func errMisaligned(a *AtomicRequest) error {
	return NewError(RemoteOperation, CodeStream, "%s at offset %#x of STag 0x%08x, which is not at a multiple of 8 in memory", a.AOpCode, a.TO, a.STag)
}
