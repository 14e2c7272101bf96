// This file is the Responder's side of start-up (RFC 5044 §7.1.2 rules 2, 4).

package mpa

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/weft-rdma/weft/internal/panics"
)

// ErrAnswered is returned when a Request has been accepted, rejected or closed
// before.
var ErrAnswered = errors.New("mpa: the request has been answered")

// A Request is a Request Frame that waits for the ULP's decision: Accept,
// Reject or Close, once. When cfg.DecisionTimeout has passed without one, the
// connection is closed. Its methods may be called from any goroutine.
type Request struct {
	// Peer is what the Request said; PrivateData is without enhanced data.
	Peer

	nc    net.Conn
	cfg   Config
	frame Frame
	timer *time.Timer // nil if there is no limit

	mu       sync.Mutex
	claimed  bool               // an answer is under way, or over
	cut      context.CancelFunc // ends the answer under way, or nil
	answered bool               // the timer has nothing to do any more
	expired  error              // set by the timer
	over     func()             // called then, if not nil
}

// Await starts MPA on nc as Responder: it waits for a Request no longer than
// ctx and cfg.RequestTimeout allow. nc has to be at the octet where the peer
// puts the Request; its deadlines are cleared.
//
// On an error nc is untouched if cfg is not valid, otherwise closed without
// a Reply, and the error is an *Error: CodeStartup if the Request was not
// valid, CodeClosed if the connection failed, ctx ended, or time ran out
// (os.ErrDeadlineExceeded). One exception is a Request of revision 0 that
// cfg.Profile does not permit: a Reply of revision 1 goes before the close
// (RFC 5044 appendix C.2.1).
func Await(ctx context.Context, nc net.Conn, cfg Config) (*Request, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	f, err := await(ctx, nc, &cfg)
	if err != nil {
		nc.Close() // RFC 5044 §7.1.2 rules 2, 5
		return nil, err
	}
	r := &Request{Peer: newPeer(f), nc: nc, cfg: cfg, frame: f}
	if limit := limitOr(cfg.DecisionTimeout, DefaultDecisionTimeout); limit >= 0 {
		r.timer = time.AfterFunc(limit, func() {
			defer panics.Recover()
			r.expire(limit)
		})
	}
	return r, nil
}

// await reads a Request that checkRequest lets pass.
func await(ctx context.Context, nc net.Conn, cfg *Config) (Frame, error) {
	w := begin(ctx, nc, limitOr(cfg.RequestTimeout, DefaultRequestTimeout), "MPA Request Frame")
	defer w.end()
	if err := w.writeStreamMessage(cfg.StreamMessage); err != nil {
		return Frame{}, w.fault(err)
	}
	f, _, rest, err := w.readFrame(cfg.Early, RequestFrame)
	if err == nil {
		err = silence(len(rest), nil)
	}
	if err != nil {
		return Frame{}, w.fault(err)
	}
	downgrade, err := checkRequest(cfg, f)
	if downgrade {
		w.write(downgradeReply(cfg)) // a courtesy: the connection is closed in any case
	}
	return f, err
}

// Accept answers the Request with an accepting Reply that carries privateData,
// and returns the stream in Full Operation; nothing can be sent on it until
// the peer's first FPDU has come. Of cfg it takes what makes the terms: NoCRC,
// Markers, RTR, IRD, MaxIRD, ORD, MaxULPDU and ReadBuffer.
//
// On an error the Request is as it was if cfg or privateData cannot be sent
// (ErrPrivateData); otherwise nc is closed, by a reset if the Reply has left, and
// the error is an *Error: CodeStartup if the peer has sent more than its Request,
// CodeClosed if the connection failed, ctx ended, or the decision came too late
// (os.ErrDeadlineExceeded).
func (r *Request) Accept(ctx context.Context, cfg Config, privateData []byte) (*Conn, error) {
	p, err := r.accept(ctx, &cfg, privateData)
	if err != nil {
		return nil, err
	}
	return NewConn(r.nc, p), nil
}

// accept is Accept up to the terms of the stream.
func (r *Request) accept(ctx context.Context, cfg *Config, privateData []byte) (Params, error) {
	if err := cfg.check(); err != nil {
		return Params{}, err
	}
	f, p := reply(cfg, r.cfg.Profile, r.frame, privateData)
	return p, r.answer(ctx, f)
}

// Reject answers the Request with a rejecting Reply that carries privateData.
// IRD, ORD and RTR in it are those of Await's cfg: ORD says what the ULP would
// need (RFC 6581 §9.1). Without an error MPA is over and the connection stays
// open, the caller's to close or to use (RFC 5044 §7.1.2 rule 2); errors are
// those of Accept.
func (r *Request) Reject(privateData []byte) error {
	return r.RejectWith(r.cfg, privateData)
}

// RejectWith is Reject with the IRD, ORD and RTR of cfg.
func (r *Request) RejectWith(cfg Config, privateData []byte) error {
	if err := cfg.check(); err != nil {
		return err
	}
	return r.answer(context.Background(), rejection(&cfg, r.cfg.Profile, r.frame, privateData))
}

// Close closes the connection without an answer. It may be called at any time
// before the Request has been answered; later it returns ErrAnswered.
func (r *Request) Close() error {
	if err := r.claim(nil); err != nil {
		return err
	}
	r.stopTimer()
	return r.nc.Close()
}

// answer sends the Reply and ends the time limit.
func (r *Request) answer(ctx context.Context, f Frame) error {
	if err := checkPrivateData(f.PrivateData, f.Enhanced); err != nil {
		return err
	}
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	if err := r.claim(cut); err != nil {
		return err
	}
	w := begin(ctx, r.nc, -1, "")
	err := r.send(w, f)
	w.end()
	if late := r.stopTimer(); late != nil {
		err = late
	}
	if err != nil {
		w.drop()
	}
	return err
}

// send makes sure that the peer waits for the Reply, and sends it.
func (r *Request) send(w *wait, f Frame) error {
	if err := checkSilence(r.nc); err != nil {
		return w.fault(err)
	}
	if err := w.write(f); err != nil {
		return w.fault(err)
	}
	return nil
}

// claim makes the caller the one who answers. cut, if there is one, ends that.
func (r *Request) claim(cut context.CancelFunc) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.claimed {
		return ErrAnswered
	}
	r.claimed, r.cut = true, cut
	return nil
}

// stopTimer ends the time limit and returns the error if it had been reached.
func (r *Request) stopTimer() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered = true
	if r.timer != nil {
		r.timer.Stop()
	}
	return r.expired
}

// OnExpiry has f called when the time for an answer is over, in a goroutine of its own: at
// once, if it is over already. A later call replaces f.
func (r *Request) OnExpiry(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over = f; r.expired != nil {
		go recovering(f)
	}
}

// recovering calls f in a goroutine of its own.
func recovering(f func()) {
	defer panics.Recover()
	f()
}

// Expired reports that the time for an answer is over: the connection has been
// closed.
func (r *Request) Expired() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.expired != nil
}

// expire is the end of the time limit.
func (r *Request) expire(limit time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return
	}
	r.expired = &Error{Code: CodeClosed, Detail: "during start-up", Err: fmt.Errorf("no answer to the MPA Request Frame within %v: %w", limit, os.ErrDeadlineExceeded)}
	if r.cut != nil {
		r.cut()
	} else {
		r.nc.Close()
	}
	if r.over != nil {
		go recovering(r.over)
	}
}
