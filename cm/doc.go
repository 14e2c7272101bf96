// Package cm is the connection manager: it makes RDMA connections over TCP, or
// over any net.Conn, agrees with the peer on their terms (MPA start-up, RFC 5044
// §7.1 and RFC 6581), and hands them to queue pairs.
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
// A [Conn] is closed by either side: Close waits for what is outstanding, for a
// bounded time, and Shutdown for as long as a context lasts.
//
// The side that dials has to send first: what the other side posts is held back
// until its first message has arrived (RFC 5044 §7.1.2), unless the dialer asks
// for the peer-to-peer model of RFC 6581. Receives belong on a queue pair before
// it is connected.
//
// The sockets are tuned as the system tunes them, unless a [Socket] chooses their
// congestion control or their buffers.
package cm
