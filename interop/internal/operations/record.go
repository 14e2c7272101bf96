// This file records an operation.

package operations

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/weft-rdma/weft/capture"
	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/interop/internal/node"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// Terms are how a connection is set up.
type Terms struct {
	Address              string // to listen on; empty is 127.0.0.1
	Initiator, Responder mpa.Config
	PrivateData          []byte // of both sides
	NoExtensions         bool   // leave RFC 7306 out
	Actors               Actors
}

// Actors says which sides perform the operations. The capture is made at the
// end of the one that acts alone: what it writes is recorded write by write,
// while what arrives is recorded as it is read, and two FPDUs may be read
// together.
type Actors int

const (
	Both Actors = iota // recorded at the initiator's end
	InitiatorOnly
	ResponderOnly
)

// An end is one side of a connection, with memory for its own work requests
// and memory that the peer may use.
type end struct {
	*node.Node
	local, remote     []byte
	localMR, remoteMR *verbs.MR
}

func newEnd(rnic *verbs.RNIC, t Terms) (*end, error) {
	n, err := node.New(rnic, verbs.QPConfig{
		SendDepth: 16, RecvDepth: 16, SendSGEs: 1, RecvSGEs: 1, IRD: 4, ORD: 4, Extensions: !t.NoExtensions,
	})
	if err != nil {
		return nil, err
	}
	e := &end{Node: n, local: make([]byte, large), remote: make([]byte, large)}
	if e.localMR, err = n.Register(e.local, verbs.LocalRead|verbs.LocalWrite); err == nil {
		e.remoteMR, err = n.Register(e.remote, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic)
	}
	if err != nil {
		n.Release()
		return nil, err
	}
	return e, nil
}

// A recording is a pair of RNICs and the capture that is made of them.
type recording struct {
	terms                Terms
	rnic                 *verbs.RNIC
	initiator, responder *end
	listener             *cm.Listener
	writer               *capture.Writer
}

// begin readies everything but the connection.
func begin(ctx context.Context, path string, t Terms) (r *recording, err error) {
	if t.Address == "" {
		t.Address = "127.0.0.1"
	}
	r = &recording{terms: t}
	defer func() {
		if err != nil {
			r.end()
		}
	}()
	if r.writer, err = capture.Create(path); err != nil {
		return nil, err
	}
	if r.rnic, err = verbs.Open(verbs.Config{}); err != nil {
		return nil, err
	}
	if r.initiator, err = newEnd(r.rnic, t); err != nil {
		return nil, err
	}
	if r.responder, err = newEnd(r.rnic, t); err != nil {
		return nil, err
	}
	cfg := cm.ListenConfig{MPA: t.Responder}
	if t.Actors == ResponderOnly {
		cfg.Wrap = r.record
	}
	r.listener, err = cm.Listen(ctx, r.rnic, "tcp", net.JoinHostPort(t.Address, "0"), cfg)
	return r, err
}

// end gives everything back and completes the capture.
func (r *recording) end() error {
	if r.listener != nil {
		r.listener.Close()
	}
	for _, e := range []*end{r.initiator, r.responder} {
		if e != nil {
			e.Release()
		}
	}
	if r.rnic != nil {
		r.rnic.Close()
	}
	if r.writer == nil {
		return nil
	}
	return r.writer.Close()
}

func (r *recording) params(cfg mpa.Config) cm.Params {
	return cm.Params{MPA: cfg, PrivateData: r.terms.PrivateData}
}

// record has the capture made of a connection.
func (r *recording) record(nc net.Conn) net.Conn { return capture.Conn(nc, r.writer) }

// dial connects the initiator.
func (r *recording) dial(ctx context.Context) (*cm.Conn, error) {
	p := r.params(r.terms.Initiator)
	if r.terms.Actors != ResponderOnly {
		p.Wrap = r.record
	}
	return cm.Dial(ctx, r.initiator.QP, "tcp", r.listener.Addr().String(), p)
}

// connect sets up the connection and returns both of its ends.
func (r *recording) connect(ctx context.Context) (initiator, responder *cm.Conn, err error) {
	type accepted struct {
		conn *cm.Conn
		err  error
	}
	done := make(chan accepted, 1)
	go func() {
		req, err := r.listener.Accept(ctx)
		if err != nil {
			done <- accepted{nil, err}
			return
		}
		conn, err := req.Accept(ctx, r.responder.QP, r.params(r.terms.Responder))
		done <- accepted{conn, err}
	}()
	initiator, dialErr := r.dial(ctx)
	if dialErr != nil {
		r.listener.Close() // nobody else will come
	}
	a := <-done
	return initiator, a.conn, errors.Join(dialErr, a.err)
}

// Record performs the operations, by the initiator and then by the responder,
// on one connection set up on these terms, and writes the capture to path.
func Record(ctx context.Context, path string, t Terms, operations []Operation) (err error) {
	r, err := begin(ctx, path, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	initiator, responder, err := r.connect(ctx)
	if err != nil {
		return err
	}
	if t.Actors == ResponderOnly { // the responder may not send first (RFC 5044 §7.1.2)
		if err := (Operation{Name: "hello", op: verbs.OpSend}).perform(ctx, r.initiator, r.responder); err != nil {
			return fmt.Errorf("opening the stream: %w", err)
		}
	}
	for _, o := range operations {
		if t.Actors != ResponderOnly {
			if err := o.perform(ctx, r.initiator, r.responder); err != nil {
				return fmt.Errorf("%s by the initiator: %w", o.Name, err)
			}
		}
		if t.Actors != InitiatorOnly {
			if err := o.perform(ctx, r.responder, r.initiator); err != nil {
				return fmt.Errorf("%s by the responder: %w", o.Name, err)
			}
		}
	}
	return errors.Join(initiator.Shutdown(ctx), responder.Shutdown(ctx))
}
