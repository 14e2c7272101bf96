// This file holds the decisions of start-up, as functions of the two frames
// and the configuration: no I/O, no state (RFC 5044 §7.1, appendix C; RFC 6581 §9).

package mpa

import "fmt"

// request is the Request that cfg asks for.
func request(cfg *Config, privateData []byte) Frame {
	f := Frame{
		Kind:        RequestFrame,
		Markers:     cfg.Markers,
		CRC:         !cfg.NoCRC,
		PrivateData: privateData,
	}
	switch {
	case cfg.Profile == ProfileRDMAC:
		f.Revision = RevisionRDMAC
		f.Markers, f.CRC = true, true // RFC 5044 appendix C.2.4
	case cfg.enhances():
		f.Revision = Revision2 // RFC 6581 §6: for any enhanced feature
		f.Enhanced = true
		f.IRD, f.ORD = cfg.IRD, cfg.ORD
		f.PeerToPeer = cfg.PeerToPeer
		if f.PeerToPeer {
			f.RTR = cfg.rtr()
		}
	default:
		f.Revision = Revision1 // RFC 6581 §10: nothing enhanced without need
	}
	return f
}

// checkReply reports whether the Initiator can go on from the Reply at all; if
// not, the error has CodeStartup and the connection is to be closed.
func checkReply(cfg *Config, req, rep Frame) error {
	rdmac := rep.Revision == RevisionRDMAC
	switch {
	case rdmac && cfg.Profile != ProfileRDMAC && cfg.Profile != ProfilePermissive:
		return startupError("Reply of %v, which the %v profile does not speak", rep.Revision, cfg.Profile)
	case !rdmac && cfg.Profile == ProfileRDMAC:
		return startupError("Reply of %v, the %v profile speaks only %v", rep.Revision, cfg.Profile, RevisionRDMAC)
	case rep.Reject:
		return nil // taken as such, whatever it is a Reply to
	case rdmac:
		return checkRDMAC(rep)
	case rep.Enhanced != req.Enhanced:
		// RFC 6581 §10: like answers like.
		return startupError("%s Reply to an %s Request", formName(rep), formName(req))
	}
	return nil
}

// rejectHint is what of a Request its rejecting Reply may be about.
func rejectHint(req, rep Frame) string {
	switch {
	case rep.Revision != req.Revision, rep.Enhanced != req.Enhanced:
		return fmt.Sprintf("its Reply is %s, of %v, where the Request was %s, of %v, which it may not speak", formName(rep), rep.Revision, formName(req), req.Revision)
	case req.Markers && req.Revision != RevisionRDMAC:
		return "it may refuse the Markers that were asked for, as Linux siw does"
	case rep.Enhanced && rep.ORD != NotNegotiated && rep.ORD > req.IRD:
		return fmt.Sprintf("it needs an ORD of %d, and was offered an IRD of %d", rep.ORD, req.IRD)
	}
	return ""
}

// unansweredHint is what of a Request a peer that closes may not have liked.
func unansweredHint(req Frame) string {
	if req.Enhanced {
		return ", which is enhanced: it may know " + Revision1.String() + " only"
	}
	return ""
}

// checkRequest reports whether the Responder can answer the Request; if not, the
// error has CodeStartup and the connection is to be closed. downgrade asks for
// a Reply of revision 1 before that.
func checkRequest(cfg *Config, req Frame) (downgrade bool, err error) {
	switch {
	case req.Revision == RevisionRDMAC && cfg.Profile != ProfileRDMAC && cfg.Profile != ProfilePermissive:
		// RFC 5044 appendix C.2.1.
		return true, startupError("Request of %v, which the %v profile does not speak", req.Revision, cfg.Profile)
	case req.Revision == RevisionRDMAC:
		return false, checkRDMAC(req)
	case req.Enhanced && (cfg.Profile == ProfileRFC5044 || cfg.Profile == ProfileRDMAC):
		// RFC 6581 §10: the connection is closed.
		return false, startupError("enhanced Request, which the %v profile does not speak", cfg.Profile)
	}
	return false, nil
}

// checkRDMAC holds a frame of revision 0 to RFC 5044 appendix C.1, figure 14.
func checkRDMAC(f Frame) error {
	if !f.Markers || !f.CRC {
		return startupError("%v of %v without both M and C", f.Kind, f.Revision)
	}
	return nil
}

func formName(f Frame) string {
	if f.Enhanced {
		return "enhanced"
	}
	return "unenhanced"
}

// initiatorParams are the Initiator's terms after an accepting Reply that
// checkReply let pass. An error has a code that the peer is to get in
// a Terminate message under these terms.
func initiatorParams(cfg *Config, req, rep Frame) (Params, error) {
	p := commonParams(cfg, req, rep)
	p.Initiator = true
	p.SendMarkers, p.RecvMarkers = rep.Markers, req.Markers
	p.PeerIRD, p.PeerORD = rep.IRD, rep.ORD
	if p.Revision == RevisionRDMAC {
		p.RecvMarkers = true // RFC 5044 appendix C.2.5: whatever the Request had
	}
	if !p.Enhanced {
		return p, nil
	}

	// RFC 6581 §9.1: ORD at most the Responder's IRD, IRD at least its ORD;
	// NotNegotiated leaves ours as it was.
	p.ORD = min(p.ORD, rep.IRD)
	if rep.ORD != NotNegotiated {
		if limit := cfg.maxIRD(); rep.ORD > limit {
			return p, errorf(CodeInsufficientIRD, "the peer wants to make %d RDMA Reads at a time, we take at most %d", rep.ORD, limit)
		}
		p.IRD = max(p.IRD, rep.ORD)
	}

	if rep.PeerToPeer != req.PeerToPeer { // RFC 6581 §9.2: A answers A
		return p, errorf(CodeNoRTR, "peer-to-peer asked for: %t, answered: %t", req.PeerToPeer, rep.PeerToPeer)
	}
	if p.PeerToPeer {
		p.RTR = chooseRTR(req.RTR&rep.RTR, rep.IRD)
		if p.RTR == 0 {
			return p, errorf(CodeNoRTR, "we can send %v, the peer takes %v with IRD %d", req.RTR, rep.RTR, rep.IRD)
		}
		if p.RTR == RTRRead {
			p.ORD = max(p.ORD, 1) // the RTR is a Read
		}
	}
	return p, nil
}

// chooseRTR takes the kind with the least side effects: a Write has none,
// a Read takes one of the peer's IRD, a Send one of its receive messages.
func chooseRTR(common RTR, peerIRD uint16) RTR {
	switch {
	case common&RTRWrite != 0:
		return RTRWrite
	case common&RTRRead != 0 && peerIRD > 0:
		return RTRRead
	}
	return common & RTRSend
}

// reply is the accepting Reply to a Request that checkRequest let pass, and
// the terms of the Responder from there.
func reply(cfg *Config, profile Profile, req Frame, privateData []byte) (Frame, Params) {
	f := replyBase(cfg, profile, req, privateData)
	p := commonParams(cfg, req, f)
	p.SendMarkers, p.RecvMarkers = req.Markers, f.Markers
	p.PeerIRD, p.PeerORD = req.IRD, req.ORD
	if p.Revision == RevisionRDMAC {
		p.SendMarkers = true
	}
	if !f.Enhanced {
		return f, p
	}

	// RFC 6581 §9.1: IRD at least the Initiator's ORD if that can be, ORD at
	// most its IRD. The Reply has the values set.
	if req.ORD != NotNegotiated {
		p.IRD = max(p.IRD, min(req.ORD, cfg.maxIRD()))
		if f.RTR&RTRRead != 0 {
			p.IRD = max(p.IRD, 1) // the RTR may be a Read
		}
		f.IRD = p.IRD
	}
	if req.IRD != NotNegotiated {
		p.ORD = min(p.ORD, req.IRD)
		f.ORD = p.ORD
	}
	p.RTR = f.RTR
	return f, p
}

// rejection is the rejecting Reply to a Request that checkRequest let pass.
func rejection(cfg *Config, profile Profile, req Frame, privateData []byte) Frame {
	f := replyBase(cfg, profile, req, privateData)
	f.Reject = true
	if f.Enhanced {
		if req.ORD != NotNegotiated {
			f.IRD = cfg.IRD
		}
		if req.IRD != NotNegotiated {
			f.ORD = cfg.ORD // RFC 6581 §9.1: what would be needed
		}
	}
	return f
}

// replyBase is what accepting and rejecting Replies have in common; IRD and
// ORD are NotNegotiated.
func replyBase(cfg *Config, profile Profile, req Frame, privateData []byte) Frame {
	f := Frame{
		Kind:        ReplyFrame,
		Markers:     cfg.Markers,
		CRC:         req.CRC || !cfg.NoCRC, // so that it alone tells the outcome, as siw has it
		Revision:    req.Revision,
		Enhanced:    req.Enhanced, // RFC 6581 §10: like answers like
		IRD:         NotNegotiated,
		ORD:         NotNegotiated,
		PrivateData: privateData,
	}
	if profile == ProfileRDMAC {
		f.Revision = RevisionRDMAC // RFC 5044 appendix C.2.2, C.2.5
	}
	if f.Revision == RevisionRDMAC {
		f.Markers, f.CRC = true, true
	}
	if f.Enhanced && req.PeerToPeer { // RFC 6581 §9.2: A answers A
		f.PeerToPeer = true
		f.RTR = req.RTR & cfg.rtr()
		if f.RTR == 0 {
			f.RTR = cfg.rtr() // nothing in common: say what there is
		}
	}
	return f
}

// downgradeReply tells an RNIC of the RDMA Consortium that it found one that
// is not permissive (RFC 5044 appendix C.2.1). It rejects, lest a peer that is
// content with revision 1 go on.
func downgradeReply(cfg *Config) Frame {
	return Frame{Kind: ReplyFrame, CRC: !cfg.NoCRC, Reject: true, Revision: Revision1}
}

func commonParams(cfg *Config, req, rep Frame) Params {
	return Params{
		Revision:   min(req.Revision, rep.Revision),
		CRC:        req.CRC || rep.CRC, // RFC 5044 §7.1.1: C in either frame
		MaxULPDU:   cfg.MaxULPDU,
		Enhanced:   rep.Enhanced,
		PeerToPeer: req.Enhanced && req.PeerToPeer,
		IRD:        cfg.IRD,
		ORD:        cfg.ORD,
		ReadBuffer: cfg.ReadBuffer,
	}
}
