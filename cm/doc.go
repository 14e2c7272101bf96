// Package cm is the connection manager. It makes RDMA connections over TCP or any
// net.Conn, negotiates their terms with the peer (MPA start-up, RFC 5044 §7.1 and
// RFC 6581), and hands them to queue pairs.
//
// One side listens:
//
//	ln, err := cm.Listen(ctx, rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{})
//	req, err := ln.Accept(ctx)
//	conn, err := req.Accept(ctx, qp, cm.Params{PrivateData: hello})
//
// and the other dials:
//
//	conn, err := cm.Dial(ctx, qp, "tcp", ln.Addr().String(), cm.Params{})
//
// Either side closes a [Conn]: Close waits a bounded time for what is outstanding,
// Shutdown as long as a context lasts.
//
// The side that dials has to send first: what the other side posts is held until
// the dialer's first message has arrived (RFC 5044 §7.1.2), unless the dialer asks
// for the peer-to-peer model of RFC 6581. Post receives before the queue pair is
// connected.
//
// The system tunes the sockets, unless a [Socket] chooses their congestion control or
// buffer sizes.
package cm
