package verbs

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

var opNames = [...]string{
	OpSend:             "Send",
	OpSendSE:           "Send with Solicited Event",
	OpSendInvalidate:   "Send with Invalidate",
	OpSendSEInvalidate: "Send with Solicited Event and Invalidate",
	OpWrite:            "RDMA Write",
	OpRead:             "RDMA Read",
	OpReadInvalidate:   "RDMA Read with Invalidate Local STag",
	OpInvalidate:       "Invalidate Local STag",
	OpBind:             "Bind Memory Window",
	OpFastRegister:     "Fast-Register",
	OpImmediate:        "Immediate Data",
	OpImmediateSE:      "Immediate Data with Solicited Event",
	OpFetchAdd:         "FetchAdd",
	OpCmpSwap:          "CmpSwap",
	OpRecv:             "Receive",
	OpRecvImmediate:    "Receive of Immediate Data",
}

func (op Op) String() string {
	if int(op) < len(opNames) && opNames[op] != "" {
		return opNames[op]
	}
	return "unknown operation"
}

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
