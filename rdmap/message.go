// This file is a table: what a Stream does with the messages of each opcode.

package rdmap

import "github.com/weft-rdma/weft/ddp"

// A handling is what a Stream does with the messages of one opcode. A function that is
// nil is not needed: nobody starts such a message, or it does not end in a delivery.
type handling struct {
	// start begins the message of an operation of the ULP. o.msg is set but for its
	// body.
	start func(o *outbound, op *Operation)

	// deliver deals with an untagged message of length octets that has arrived
	// whole.
	deliver func(in *inbound, length uint32) error
}

// A service answers the peer's requests of one opcode, without the ULP.
type service struct {
	// parse reads the request from the payload of its message and checks what can
	// be checked before its turn comes.
	parse func(in *inbound, r *request, payload []byte) error

	// answer starts the response, when all earlier requests have been answered. It
	// reports whether anything was done.
	answer func(o *outbound, r *request) bool

	// refused is the error that ends the stream because the memory that the request
	// names was refused.
	refused func(r *request, f ddp.Fault) error

	// count counts a request that was answered.
	count func(f *finished, r *request)
}

// handlings has a row for each opcode that a specification assigns. What follows from
// the opcode alone, without a Stream, is in opcodes; requests have a row in services,
// too.
var handlings = [16]handling{
	OpWrite:            {start: (*outbound).startWrite},
	OpReadRequest:      {start: (*outbound).startRead, deliver: (*inbound).deliverRequest},
	OpSend:             {start: (*outbound).startSend, deliver: (*inbound).deliverSend},
	OpSendInvalidate:   {start: (*outbound).startSend, deliver: (*inbound).deliverSend},
	OpSendSE:           {start: (*outbound).startSend, deliver: (*inbound).deliverSend},
	OpSendSEInvalidate: {start: (*outbound).startSend, deliver: (*inbound).deliverSend},
	OpTerminate:        {deliver: (*inbound).terminated},
	OpImmediate:        {start: (*outbound).startImmediate, deliver: (*inbound).deliverImmediate},
	OpImmediateSE:      {start: (*outbound).startImmediate, deliver: (*inbound).deliverImmediate},
	OpAtomicRequest:    {start: (*outbound).startAtomic, deliver: (*inbound).deliverRequest},
	OpAtomicResponse:   {deliver: (*inbound).deliverAtomicResponse},
}

// services has a row for each opcode that is a request.
var services = [16]*service{
	OpReadRequest:   &reads,
	OpAtomicRequest: &atomics,
}
