package cm

import (
	"fmt"
	"net"

	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// An Adoption says how a connection goes on as RDMA whose consumers have used it
// before and agreed on all of this in their own words: nothing of it is negotiated.
// The two sides' have to match.
type Adoption struct {
	// Initiator is the side that may send first; the other waits for its first
	// message. It is the one that got the last message in streaming mode, the
	// passive side of Verbs §6.6.1.2; with no such message it is for the
	// consumers to decide (§13.1).
	Initiator bool

	// StreamMessage is the last message in streaming mode, sent before iWARP
	// begins (§6.6.1.1).
	StreamMessage []byte

	// Early are octets that were read from the connection and are behind the
	// peer's last message in streaming mode: the beginning of its iWARP stream.
	Early []byte

	// MPA says, of what start-up would settle, the profile, which is the
	// revision, CRC, markers, which go both ways or none, IRD and ORD, which if 0
	// are the queue pair's, and the rest that is for mpa.Params. Nothing else of
	// it is used.
	MPA mpa.Config
}

// params are the terms of the stream.
func (a *Adoption) params(ird, ord uint16) mpa.Params {
	p := mpa.Params{
		Revision: mpa.Revision2, CRC: !a.MPA.NoCRC, SendMarkers: a.MPA.Markers, RecvMarkers: a.MPA.Markers,
		Initiator: a.Initiator, Early: append([]byte(nil), a.Early...),
		IRD: ird, ORD: ord, PeerIRD: mpa.NotNegotiated, PeerORD: mpa.NotNegotiated,
		MaxULPDU: a.MPA.MaxULPDU, Spin: a.MPA.Spin, ReadBuffer: a.MPA.ReadBuffer,
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
// §6.2.1.2, §6.6.1). When it returns the queue pair is in RTS, and owns the
// connection; on an error that is still the caller's. Only a StreamMessage takes
// time, at most the RNIC's CloseTimeout.
//
// For start-up frames behind a streaming mode there is [Connect], and [Receive]
// and [Request.Accept], with StreamMessage and Early of their mpa.Config.
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
