// The result of start-up: the parameters with which a stream enters Full Operation.

package mpa

import (
	"fmt"
	"strings"
)

// A Revision is the Rev field of the start-up frames (RFC 5044 §7.1.1).
type Revision uint8

const (
	RevisionRDMAC Revision = 0 // RDMA Consortium; goes with DDP and RDMAP version 0
	Revision1     Revision = 1 // RFC 5044
	Revision2     Revision = 2 // RFC 6581
)

func (r Revision) String() string {
	switch r {
	case RevisionRDMAC:
		return "revision 0 (RDMA Consortium)"
	case Revision1:
		return "revision 1 (RFC 5044)"
	case Revision2:
		return "revision 2 (RFC 6581)"
	}
	return fmt.Sprintf("revision %d (unknown)", uint8(r))
}

// RTR is a set of ready-to-receive indications: the kinds of zero-length
// message that an Initiator can send first, in the peer-to-peer model, so that
// the Responder may send too (RFC 6581 §9.2).
type RTR uint8

const (
	RTRSend  RTR = 1 << iota // flag B: a Send of no octets
	RTRWrite                 // flag C: an RDMA Write of no octets
	RTRRead                  // flag D: an RDMA Read of no octets

	RTRAny = RTRSend | RTRWrite | RTRRead
)

func (r RTR) String() string {
	if r&RTRAny == 0 {
		return "none"
	}
	var kinds []string
	for _, k := range [...]struct {
		kind RTR
		name string
	}{{RTRSend, "Send"}, {RTRWrite, "Write"}, {RTRRead, "Read"}} {
		if r&k.kind != 0 {
			kinds = append(kinds, k.name)
		}
	}
	return strings.Join(kinds, "|")
}

// NotNegotiated stands for an IRD or ORD that start-up leaves to the ULP
// (RFC 6581 §9.1: all ones). It is above every value that can be negotiated:
// min(NotNegotiated, limit) is limit.
const NotNegotiated uint16 = 0x3FFF

// Limits of a ULPDU, in octets (RFC 5044 §3: MULPDU).
const (
	MinMULPDU = 128
	MaxMULPDU = 64768
)

// Params are the terms of a stream in Full Operation, fixed when start-up ends.
type Params struct {
	Revision Revision // what both sides speak

	CRC         bool // CRC32C is generated and checked, in both directions
	SendMarkers bool // the peer asked for Markers in what we send
	RecvMarkers bool // we asked for Markers in what we receive

	// Initiator: we may send at once. A Responder is fenced until the first
	// FPDU has been received and validated (RFC 5044 §7.1.2 rule 4).
	Initiator bool

	// MaxULPDU is the largest ULPDU to be sent, in octets, from MinMULPDU to
	// MaxMULPDU; 0 means MULPDU, from the connection's EMSS (§4.5).
	MaxULPDU int

	// Early holds octets of Full Operation that were read from the
	// connection before; they are the beginning of the FPDU stream.
	Early []byte

	Enhanced   bool // both frames carried enhanced data (RFC 6581 §9)
	PeerToPeer bool // flag A: an RTR goes first

	// RTR is, in the peer-to-peer model, the one kind that this Initiator has
	// to send, or the kinds that this Responder said it takes.
	RTR RTR

	// IRD and ORD are ours as agreed; NotNegotiated leaves the ULP's own.
	IRD, ORD uint16
	// PeerIRD and PeerORD are the values in the peer's frame as they stood,
	// NotNegotiated when the frame had none.
	PeerIRD, PeerORD uint16

	ReadBuffer int // limit of the read-ahead buffer in octets, see Config
}
