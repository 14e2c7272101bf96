// This file makes an RDMA connection of one that is in use already.

package cm

import (
	"fmt"
	"net"

	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// An Adoption describes how a connection that its consumers have already used
// continues as RDMA. Nothing of it is negotiated: the consumers agree on it in a
// protocol of their own, and both sides' have to match.
type Adoption struct {
	// Initiator is set on the side that may send first; the other waits for its
	// first message. It is the side that received the last message in streaming
	// mode, the passive side of Verbs §6.6.1.2. Without such a message the
	// consumers choose it (§13.1).
	Initiator bool

	// StreamMessage is the last message in streaming mode, sent before iWARP
	// begins (§6.6.1.1).
	StreamMessage []byte

	// Early are octets that were read from the connection beyond the peer's last
	// message in streaming mode: the beginning of its iWARP stream.
	Early []byte

	// MPA has what start-up would negotiate: Profile (the revision), NoCRC, Markers
	// (both ways or neither), IRD and ORD (0 is the queue pair's); also MaxULPDU
	// and ReadBuffer. Its other fields are not used.
	MPA mpa.Config
}

// params returns the terms of the stream.
func (a *Adoption) params(ird, ord uint16) mpa.Params {
	p := mpa.Params{
		Revision: mpa.Revision2, CRC: !a.MPA.NoCRC, SendMarkers: a.MPA.Markers, RecvMarkers: a.MPA.Markers,
		Initiator: a.Initiator, Early: append([]byte(nil), a.Early...),
		IRD: ird, ORD: ord, PeerIRD: mpa.NotNegotiated, PeerORD: mpa.NotNegotiated,
		MaxULPDU: a.MPA.MaxULPDU, ReadBuffer: a.MPA.ReadBuffer,
	}
	switch a.MPA.Profile {
	case mpa.ProfileRFC5044:
		p.Revision = mpa.Revision1
	case mpa.ProfileRDMAC: // RFC 5044 appendix C: with CRC and markers, always
		p.Revision, p.CRC, p.SendMarkers, p.RecvMarkers = mpa.RevisionRDMAC, true, true, true
	}
	return p
}

// Adopt connects an Idle queue pair over an established connection in streaming
// mode, without the start-up frames of MPA (Modify QP from Idle to RTS, Verbs
// §6.2.1.2, §6.6.1). When it returns, the queue pair is in RTS and owns the
// connection; after an error the caller still owns it. Only sending a StreamMessage
// takes time, at most the RNIC's CloseTimeout.
//
// For streaming mode followed by start-up frames use [Connect], or [Receive] and
// [Request.Accept], with StreamMessage and Early of their mpa.Config.
func Adopt(qp *verbs.QP, nc net.Conn, a Adoption) (*Conn, error) {
	if err := checkIdle(qp); err != nil {
		return nil, err
	}
	cfg, err := (&Params{MPA: a.MPA}).config(qp)
	if err != nil {
		return nil, err
	}
	mc := mpa.NewConn(nc, a.params(cfg.IRD, cfg.ORD))
	terms := verbs.Terms{IRD: agreed(cfg.IRD, cfg.IRD), ORD: agreed(cfg.ORD, cfg.ORD), Initiator: a.Initiator}
	if _, err := qp.Modify(verbs.RTS, verbs.QPModify{LLP: mc, Terms: &terms, StreamMessage: a.StreamMessage}); err != nil {
		return nil, fmt.Errorf("cm: adopt: %w", err)
	}
	return &Conn{qp: qp, mpa: mc, terms: terms}, nil
}
