// This file is the Initiator's side of start-up (RFC 5044 §7.1.2 rules 1, 3).

package mpa

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
)

// ErrUnanswered is in the error of Initiate when the connection ended before
// any octet of a Reply. A Responder that knows only revision 1 ends an
// enhanced Request so: a new connection and ProfileRFC5044 may succeed
// (RFC 6581 §10).
var ErrUnanswered = errors.New("no answer to the MPA Request Frame")

// Initiate starts MPA on nc as Initiator: it sends a Request with privateData
// and waits for the Reply, no longer than ctx and cfg.ReplyTimeout allow.
// nc has to be at the octet where the peer expects the Request, and may have
// carried other data before; its deadlines are cleared.
//
// The Peer is what the Reply said, nil if there was none that is valid. As to
// the error, nc is
//
//   - untouched if cfg or privateData cannot be sent (ErrPrivateData);
//   - open, and the caller's, after a *RejectError;
//   - the Conn's after an *Error with CodeInsufficientIRD or CodeNoRTR: the
//     Conn returned with it is good for the Terminate message that the peer
//     has to get (RFC 6581 §9.1, §9.2), and for nothing else;
//   - closed after any other *Error, by a reset if the Request has left, as the
//     peer may have accepted it: CodeStartup if the Reply was not valid,
//     CodeClosed if the connection failed, ctx ended, or time ran out
//     (os.ErrDeadlineExceeded).
func Initiate(ctx context.Context, nc net.Conn, cfg Config, privateData []byte) (*Conn, *Peer, error) {
	p, peer, err := initiate(ctx, nc, &cfg, privateData)
	if err != nil && !needsTerminate(err) {
		return nil, peer, err
	}
	return NewConn(nc, p), peer, err
}

// initiate is Initiate up to the terms of the stream.
func initiate(ctx context.Context, nc net.Conn, cfg *Config, privateData []byte) (Params, *Peer, error) {
	if err := cfg.CheckRequest(privateData); err != nil {
		return Params{}, nil, err
	}
	req := request(cfg, privateData)
	rep, rest, err := exchange(ctx, nc, cfg, req)
	if err != nil {
		return Params{}, nil, err
	}
	peer := newPeer(rep)
	if rep.Reject {
		return Params{}, &peer, &RejectError{PrivateData: rep.PrivateData, PeerIRD: rep.IRD, PeerORD: rep.ORD, Hint: rejectHint(req, rep)}
	}
	p, err := initiatorParams(cfg, req, rep)
	p.Early = bytes.Clone(rest)
	return p, &peer, err
}

// exchange sends the Request and reads a Reply that checkReply lets pass; rest is
// what of cfg.Early is behind it. Otherwise it closes nc (RFC 5044 §7.1.2 rules
// 3, 5).
func exchange(ctx context.Context, nc net.Conn, cfg *Config, req Frame) (rep Frame, rest []byte, err error) {
	w := begin(ctx, nc, limitOr(cfg.ReplyTimeout, DefaultReplyTimeout), "MPA Reply Frame")
	rep, rest, err = w.ask(cfg, req)
	w.end()
	if err != nil {
		w.drop()
	}
	return rep, rest, err
}

func (w *wait) ask(cfg *Config, req Frame) (rep Frame, rest []byte, err error) {
	if err := w.writeStreamMessage(cfg.StreamMessage); err != nil {
		return Frame{}, nil, w.fault(err)
	}
	if err := w.write(req); err != nil {
		return Frame{}, nil, w.fault(err)
	}
	rep, n, rest, err := w.readFrame(cfg.Early, ReplyFrame)
	if err != nil {
		if n == 0 {
			err = fmt.Errorf("%w%s: %w", ErrUnanswered, unansweredHint(req), err)
		}
		return Frame{}, nil, w.fault(err)
	}
	return rep, rest, checkReply(cfg, req, rep)
}

// needsTerminate reports whether an error of start-up is sent to the peer.
func needsTerminate(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code >= CodeCatastrophic
}
