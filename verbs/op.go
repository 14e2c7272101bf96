// This file is the operations of work requests, and the table of their properties.

package verbs

import "github.com/weft-rdma/weft/rdmap"

// An Op is the type of a work request and of its completion
// (Verbs §8.1, §9.3.1.1, §9.3.2.1; the last six are RFC 7306's).
type Op uint8

const (
	OpSend             Op = iota + 1 // Send
	OpSendSE                         // Send with Solicited Event
	OpSendInvalidate                 // Send with Invalidate
	OpSendSEInvalidate               // Send with Solicited Event and Invalidate
	OpWrite                          // RDMA Write
	OpRead                           // RDMA Read
	OpReadInvalidate                 // RDMA Read with Invalidate Local STag
	OpInvalidate                     // Invalidate Local STag; nothing goes on the wire
	OpBind                           // Bind Memory Window; the same
	OpFastRegister                   // Fast-Register Non-Shared Memory Region; the same
	OpImmediate                      // Immediate Data
	OpImmediateSE                    // Immediate Data with Solicited Event
	OpFetchAdd                       // Atomic FetchAdd
	OpCmpSwap                        // Atomic CmpSwap
	OpRecv                           // completion of a receive by a Send of any kind
	OpRecvImmediate                  // completion of a receive by Immediate Data
)

func (op Op) String() string {
	if name := op.row().name; name != "" {
		return name
	}
	return "unknown operation"
}

// An operation is what is to be known of an [Op]: its row of operations.
type operation struct {
	name string
	work workKind // what a work request counts as

	// Of work requests that become an RDMA message:
	opcode        rdmap.Opcode  // of the message that starts it
	atomic        rdmap.AOpCode // if it is an atomic, which
	needsResponse bool          // complete when the peer has answered
	extension     bool          // of RFC 7306
	remote        bool          // uses SendWR.Remote

	list        listUse // what it uses SendWR.SGL for
	invalidates bool    // uses SendWR.Invalidate

	// local executes a work request that has nothing to do with the wire.
	local func(u ulp, w *sendWQE) (Status, error)

	// finish does what is left to be done when the peer has answered, before the
	// completion: of an atomic, with the value that it found.
	finish func(u ulp, w *sendWQE, value uint64) error

	receives bool // the completion of a receive, and no work request
}

// A listUse says what a work request uses its scatter/gather list for.
type listUse uint8

const (
	noList   listUse = iota
	gathered         // payload to be sent
	sink             // one element, which the peer's answer is written to as tagged data
	value            // one element of 8 octets, which the answer is put into
)

// operations has a row for each Op.
var operations = [...]operation{
	OpSend:             {name: "Send", opcode: rdmap.OpSend, list: gathered},
	OpSendSE:           {name: "Send with Solicited Event", opcode: rdmap.OpSendSE, list: gathered},
	OpSendInvalidate:   {name: "Send with Invalidate", opcode: rdmap.OpSendInvalidate, list: gathered, invalidates: true},
	OpSendSEInvalidate: {name: "Send with Solicited Event and Invalidate", opcode: rdmap.OpSendSEInvalidate, list: gathered, invalidates: true},
	OpWrite:            {name: "RDMA Write", work: kindWrite, opcode: rdmap.OpWrite, list: gathered, remote: true},
	OpRead:             {name: "RDMA Read", work: kindRead, opcode: rdmap.OpReadRequest, needsResponse: true, list: sink, remote: true},
	OpReadInvalidate: {name: "RDMA Read with Invalidate Local STag", work: kindRead, opcode: rdmap.OpReadRequest, needsResponse: true, list: sink, remote: true,
		finish: ulp.invalidateSink},
	OpInvalidate:    {name: "Invalidate Local STag", work: kindLocal, invalidates: true, local: ulp.invalidate},
	OpBind:          {name: "Bind Memory Window", work: kindLocal, local: ulp.bind},
	OpFastRegister:  {name: "Fast-Register", work: kindLocal, local: ulp.fastRegister},
	OpImmediate:     {name: "Immediate Data", opcode: rdmap.OpImmediate, extension: true},
	OpImmediateSE:   {name: "Immediate Data with Solicited Event", opcode: rdmap.OpImmediateSE, extension: true},
	OpFetchAdd:      {name: "FetchAdd", work: kindAtomic, opcode: rdmap.OpAtomicRequest, atomic: rdmap.AOpFetchAdd, extension: true, needsResponse: true, list: value, remote: true, finish: ulp.putValue},
	OpCmpSwap:       {name: "CmpSwap", work: kindAtomic, opcode: rdmap.OpAtomicRequest, atomic: rdmap.AOpCmpSwap, extension: true, needsResponse: true, list: value, remote: true, finish: ulp.putValue},
	OpRecv:          {name: "Receive", receives: true},
	OpRecvImmediate: {name: "Receive of Immediate Data", receives: true},
}

// row is the operation's row, an empty one if there is no such operation.
func (op Op) row() *operation {
	if int(op) < len(operations) {
		return &operations[op]
	}
	return &operations[0]
}

// posted reports whether the operation can be posted to a send queue.
func (o *operation) posted() bool { return o.name != "" && !o.receives }

// Flags modify a send-queue work request.
type Flags uint8

const (
	// Signaled asks for a completion also on success. On error there is
	// always one (Verbs §8.1.3.1).
	Signaled Flags = 1 << iota
	// ReadFence holds the request back until all earlier RDMA Reads and
	// atomics of the queue have completed (Verbs §8.2.2.2).
	ReadFence
	// LocalFence holds an OpInvalidate back until all earlier requests of the
	// queue have completed (Verbs §8.2.2.3).
	LocalFence
)
