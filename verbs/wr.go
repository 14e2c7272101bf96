// This file is work requests.

package verbs

import "github.com/weft-rdma/weft/memory"

// An SGE names Length octets of local memory at tagged offset TO of STag. An
// SGE of length zero names nothing: its STag is not looked at.
type SGE struct {
	TO     uint64
	STag   memory.STag // behind TO, where it takes no more room than it has octets
	Length uint32
}

// Remote names the peer's memory: the STag and tagged offset it advertised.
type Remote struct {
	STag memory.STag
	TO   uint64
}

// Atomic holds the operands of FetchAdd and CmpSwap (RFC 7306 §5.1).
type Atomic struct {
	Data        uint64 // what is added, or swapped in
	Mask        uint64 // FetchAdd: set bits end a field, 0 is a plain 64-bit add; CmpSwap: bits that are swapped
	Compare     uint64 // CmpSwap: compared with the target,
	CompareMask uint64 // in these bits
}

// A SendWR is a work request for the send queue (Verbs §8.1.2, §9.3.1.1).
//
//	Op                    SGL                        also
//	OpSend, OpSendSE      gathered, 0 to 2^32-1      -
//	OpSend…Invalidate     gathered                   Invalidate: the peer's STag
//	OpWrite               gathered                   Remote
//	OpRead                one SGE, the sink          Remote
//	OpReadInvalidate      one SGE, the sink          Remote; the sink's STag is invalidated
//	OpInvalidate          none                       Invalidate: a local STag
//	OpBind                none                       Bind
//	OpFastRegister        none                       FastRegister
//	OpImmediate…          none                       Immediate
//	OpFetchAdd, OpCmpSwap one SGE of 8 octets        Remote, Atomic
//
// An atomic puts the value that the target held before, as a host-endian
// uint64, where its SGE says. The memory that SGL names must not be modified
// (for a read: used) until the request has completed.
type SendWR struct {
	ID         uint64 // returned in the completion
	Op         Op
	Flags      Flags
	SGL        []SGE
	Remote     Remote
	Invalidate memory.STag
	Immediate  [8]byte // opaque octets, carried as they are
	Atomic     Atomic

	// Both are copied by PostSend, like all else.
	Bind         *Binding
	FastRegister *FastRegister
}

// A RecvWR is a work request for the receive queue (Verbs §8.1.2.5): the
// buffer for one Send or Immediate Data message. A longer message is an error
// that ends the stream; Immediate Data arrives in the completion and leaves
// the buffer alone.
type RecvWR struct {
	ID  uint64
	SGL []SGE
}
