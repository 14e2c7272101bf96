// This file names the RDMA messages and holds the facts that follow from the
// opcode alone (RFC 5040 §4.1, Figure 4; RFC 7306 §4.1, Figure 2).

package rdmap

import "fmt"

// An Opcode says which RDMA message a segment belongs to: the low four bits of
// the RDMAP Control Field.
type Opcode uint8

// The opcodes of RFC 5040 (0 to 7) and RFC 7306 (8 to B). The others are
// reserved.
const (
	OpWrite            Opcode = 0x0 // RDMA Write
	OpReadRequest      Opcode = 0x1 // RDMA Read Request
	OpReadResponse     Opcode = 0x2 // RDMA Read Response
	OpSend             Opcode = 0x3 // Send
	OpSendInvalidate   Opcode = 0x4 // Send with Invalidate
	OpSendSE           Opcode = 0x5 // Send with Solicited Event
	OpSendSEInvalidate Opcode = 0x6 // Send with Solicited Event and Invalidate
	OpTerminate        Opcode = 0x7 // Terminate
	OpImmediate        Opcode = 0x8 // Immediate Data
	OpImmediateSE      Opcode = 0x9 // Immediate Data with Solicited Event
	OpAtomicRequest    Opcode = 0xA // Atomic Request
	OpAtomicResponse   Opcode = 0xB // Atomic Response
)

// Untagged queues and what arrives on them (RFC 5040 §4.1, RFC 7306 §4).
const (
	QueueSend           = 0 // Sends and Immediate Data
	QueueRequest        = 1 // Read Requests and Atomic Requests
	QueueTerminate      = 2 // Terminate
	QueueAtomicResponse = 3 // Atomic Responses
)

// facts is a row of the tables in RFC 5040 §4.1 and RFC 7306 §4.1.
type facts struct {
	name       string
	tagged     bool
	queue      uint32
	invalidate bool
	solicited  bool
	extension  bool
	request    bool   // answered by the peer's RDMAP
	answers    Opcode // of a response: the request
	length     int    // of the payload, if the message is a header and nothing else
	hint       string // what a catastrophic error about it may mean
}

var opcodes = [16]facts{
	OpWrite:            {name: "RDMA Write", tagged: true},
	OpReadRequest:      {name: "RDMA Read Request", queue: QueueRequest, request: true, length: ReadRequestLen},
	OpReadResponse:     {name: "RDMA Read Response", tagged: true, answers: OpReadRequest},
	OpSend:             {name: "Send", queue: QueueSend},
	OpSendInvalidate:   {name: "Send with Invalidate", queue: QueueSend, invalidate: true},
	OpSendSE:           {name: "Send with SE", queue: QueueSend, solicited: true},
	OpSendSEInvalidate: {name: "Send with SE and Invalidate", queue: QueueSend, solicited: true, invalidate: true},
	OpTerminate:        {name: "Terminate", queue: QueueTerminate},
	OpImmediate:        {name: "Immediate Data", queue: QueueSend, extension: true, length: ImmediateLen},
	OpImmediateSE:      {name: "Immediate Data with SE", queue: QueueSend, solicited: true, extension: true, length: ImmediateLen},
	OpAtomicRequest:    {name: "Atomic Request", queue: QueueRequest, extension: true, request: true, length: AtomicRequestLen, hint: atomicHint},
	OpAtomicResponse:   {name: "Atomic Response", queue: QueueAtomicResponse, extension: true, answers: OpAtomicRequest, length: AtomicResponseLen},
}

const atomicHint = "the target of an atomic has to lie at a multiple of 8 in memory"

// Defined reports whether a specification assigns op.
func (op Opcode) Defined() bool { return opcodes[op&opcodeMask].name != "" && op <= opcodeMask }

// Extension reports whether op comes from RFC 7306.
func (op Opcode) Extension() bool { return opcodes[op&opcodeMask].extension }

// Tagged reports whether the message goes to a Tagged Buffer.
func (op Opcode) Tagged() bool { return opcodes[op&opcodeMask].tagged }

// Queue is the untagged queue that the message goes to; it has no meaning for
// tagged messages.
func (op Opcode) Queue() uint32 { return opcodes[op&opcodeMask].queue }

// Invalidates reports whether the message carries an Invalidate STag.
func (op Opcode) Invalidates() bool { return opcodes[op&opcodeMask].invalidate }

// Solicited reports whether the message asks for an event at the Remote Peer.
func (op Opcode) Solicited() bool { return opcodes[op&opcodeMask].solicited }

// Requests reports whether the message is a request that the peer's RDMAP answers.
func (op Opcode) Requests() bool { return opcodes[op&opcodeMask].request }

func (op Opcode) String() string {
	if op.Defined() {
		return opcodes[op].name
	}
	return fmt.Sprintf("reserved opcode %#x", uint8(op))
}

// answers is the request that the message, a response, answers.
func (op Opcode) answers() Opcode { return opcodes[op&opcodeMask].answers }

// maxFixed is the longest fixedLength.
const maxFixed = AtomicRequestLen

// fixedLength is the payload of messages that are a header and nothing else, in
// octets. MPA's smallest MULPDU takes each whole (RFC 5044 §4.5).
func (op Opcode) fixedLength() (n int, fixed bool) {
	n = opcodes[op&opcodeMask].length
	return n, n > 0
}
