// This file connects Peers to a Side.

package wiretest

import (
	"context"
	"errors"
	"net"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// A Listener accepts connections of Peers to a Side.
type Listener struct {
	*cm.Listener
	side *Side
	wire Wire
	net  net.Listener
	conn *cm.Conn // the last one accepted
}

// Listen returns a listener of the Side's RNIC, closed when the test ends.
func (s *Side) Listen(w Wire, cfg mpa.Config) *Listener {
	s.t.Helper()
	nl, err := w.Listen(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	ln, err := cm.NewListener(s.RNIC, nl, cm.ListenConfig{MPA: cfg, TLS: w.serverTLS()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = ln.Close() }) // the test may have closed it
	return &Listener{Listener: ln, side: s, wire: w, net: nl}
}

// Dial connects a Peer, before start-up, closed when the test ends.
func (l *Listener) Dial() *iwarptest.Peer {
	l.side.t.Helper()
	nc, err := l.wire.Dial(context.Background(), l.net)
	if err != nil {
		l.side.t.Fatal(err)
	}
	p := iwarptest.NewPeer(l.wire.client(nc))
	p.Trickle = l.wire.Trickle
	l.side.t.Cleanup(func() { _ = nc.Close() }) // the test may have closed it
	return p
}

// Connect connects a Peer, as Initiator, to a queue pair.
func (l *Listener) Connect(qp *verbs.QP) *iwarptest.Peer {
	l.side.t.Helper()
	return l.ConnectAs(qp, l.wire.Startup(), cm.Params{MPA: l.wire.Config()})
}

// ConnectAs is Connect with other terms. It does not wait for the first message of a
// peer-to-peer stream.
func (l *Listener) ConnectAs(qp *verbs.QP, s iwarptest.Startup, params cm.Params) *iwarptest.Peer {
	l.side.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), iwarptest.DefaultTimeout)
	accepted := make(chan error, 1)
	go func() {
		defer cancel()
		req, err := l.Accept(ctx)
		if err == nil {
			l.conn, err = req.Accept(ctx, qp, params)
		}
		accepted <- err
	}()
	p := l.Dial()
	_, err := p.Initiate(s)
	if err == nil && (s.Enhanced == nil || s.Enhanced[0]&0x80 == 0) {
		err = <-accepted
	}
	if err != nil {
		l.side.t.Fatal(err)
	}
	return p
}

// Connect connects the Side's queue pair, as Initiator, to a Peer.
func (s *Side) Connect(w Wire, answer iwarptest.Startup, params cm.Params) *iwarptest.Peer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), iwarptest.DefaultTimeout)
	defer cancel()
	ours, theirs, err := w.Pair(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	p := iwarptest.NewPeer(w.server(theirs))
	p.Trickle = w.Trickle
	s.t.Cleanup(func() { _ = theirs.Close() }) // the test may have closed it
	answered := make(chan error, 1)
	go func() {
		_, err := p.Respond(answer)
		answered <- err
	}()
	params.TLS = w.clientTLS()
	_, err = cm.Connect(ctx, s.QP, ours, params)
	if err := errors.Join(err, <-answered); err != nil {
		s.t.Fatal(err)
	}
	return p
}
