// This file holds what a client can be told.

package rpcrdma

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// Defaults of a ClientConfig. Those of connections are the same in package rpctcp.
const (
	DefaultClientCredits = 128
	DefaultMaxReply      = 1<<20 + 4<<10
	DefaultCallTimeout   = 60 * time.Second
	DefaultClientIdle    = 5 * time.Minute
	DefaultDialTimeout   = 30 * time.Second
	DefaultBackoff       = 100 * time.Millisecond
	DefaultMaxBackoff    = 30 * time.Second
)

// A ClientConfig configures a [Client]. Address is required. Zero values are the
// defaults, which are in parentheses. Options that rpctcp.ClientConfig has, too,
// have the same name and the same meaning there.
type ClientConfig struct {
	// Network and Address are those of the server, as package net has them: "tcp"
	// if Network is empty; host:port.
	Network, Address string

	// RNIC is what the connections are of. Nil opens one that is the client's.
	RNIC *verbs.RNIC

	Bindings payload.Bindings // what of which program may be reduced
	Rules    wire.Rules       // what is taken in replies; of calls, the limits of their chunks

	// Credits are asked for: no more calls are outstanding at a time, and fewer
	// if the server grants fewer ([DefaultClientCredits]).
	Credits int

	// SendSize and ReceiveSize are the octets of the longest messages that are
	// sent and taken in one piece (4096 each; 1024 to 262144, in multiples of
	// 1024). They are told to the server (RFC 8797), and what it says of itself
	// lowers them.
	SendSize, ReceiveSize int

	// Reads are the RDMA Reads that the server may have outstanding (32).
	Reads int

	// NoRemoteInvalidation tells the server not to invalidate STags by its
	// replies (RFC 8797 §4.1). One that does so nevertheless is not minded.
	NoRemoteInvalidation bool

	// MaxReply is the room, in octets, for replies to calls of which neither the
	// caller nor a binding knows how long they can become ([DefaultMaxReply]).
	MaxReply int

	// InlineResults takes results that the server has left in the stream although
	// there was a Write chunk for them. RFC 8166 §6.1 calls that an error.
	InlineResults bool

	// Timeout ends calls, whatever their contexts say, with [ErrTimeout]
	// ([DefaultCallTimeout]; never if negative). It counts from the call on,
	// through any number of connections.
	Timeout time.Duration

	// DialTimeout bounds one attempt to connect ([DefaultDialTimeout]).
	DialTimeout time.Duration

	// Attempts is how many attempts to connect in a row may fail before the calls
	// that wait fail with them; 0: any number, so that calls wait until they time
	// out. A connection that ends before any reply came counts as an attempt that
	// failed. [Client.Connect] finds out at once whether there is a server.
	Attempts int

	// Backoff is the pause after an attempt that failed ([DefaultBackoff]). It
	// doubles from attempt to attempt, up to MaxBackoff ([DefaultMaxBackoff]).
	Backoff, MaxBackoff time.Duration

	// RetryRejected counts a server's rejection as an attempt that failed.
	// Otherwise it ends the calls that wait.
	RetryRejected bool

	// Idle is how long a connection without calls is kept; negative: for ever. The
	// next call makes a new one. 0 is [DefaultClientIdle], and with Reverse for
	// ever: the server may have calls to make (RFC 8167 §5.4).
	Idle time.Duration

	// Reverse executes calls of the server's (RFC 8167), ReverseCredits (2) at a
	// time. Nil takes none.
	Reverse        oncrpc.Handler
	ReverseCredits int

	// Configure begins each connection with CONF_RDMA (RFC 5666 §6), under
	// ConfigureCred: §11 has servers ask for an appropriate flavor. A server that
	// does not have the program is not minded. Rules.MSGP lets calls travel as
	// RDMA_MSGP with the alignment that the server has told.
	Configure     bool
	ConfigureCred oncrpc.OpaqueAuth

	// Connection holds what is not the default of the connections below; its
	// PrivateData goes before the client's own, and its Nudge, if 0, is
	// cm.DefaultNudge.
	Connection cm.Params

	// Dial, if not nil, connects in place of [cm.Dial].
	Dial func(ctx context.Context, qp *verbs.QP, p cm.Params) (*cm.Conn, error)

	// Retrying, if not nil, is called when an attempt to connect has failed, or a
	// connection was lost with calls in progress, and says why. Calls that wait are
	// made again over the next connection, unless Attempts are used up. The client
	// waits for Retrying to return.
	Retrying func(error)

	Logger *slog.Logger // nil is silent
}

func (c *ClientConfig) check() error {
	if c.Address == "" && c.Dial == nil {
		return errors.New("rpcrdma: ClientConfig.Address is empty, expected host:port of the server")
	}
	return nil
}

func (c ClientConfig) withDefaults() ClientConfig {
	c.Network = cmp.Or(c.Network, "tcp")
	c.Credits = orDefault(c.Credits, DefaultClientCredits)
	c.SendSize = messageSize(c.SendSize)
	c.ReceiveSize = messageSize(c.ReceiveSize)
	c.Reads = orDefault(c.Reads, DefaultReads)
	c.MaxReply = min(orDefault(c.MaxReply, DefaultMaxReply), c.Rules.MaxOctets())
	c.Timeout = cmp.Or(c.Timeout, DefaultCallTimeout)
	if c.Idle == 0 && c.Reverse != nil {
		c.Idle = -1
	}
	c.Idle = cmp.Or(c.Idle, DefaultClientIdle)
	c.DialTimeout = cmp.Or(max(c.DialTimeout, 0), DefaultDialTimeout)
	c.Backoff = cmp.Or(max(c.Backoff, 0), DefaultBackoff)
	c.MaxBackoff = max(cmp.Or(max(c.MaxBackoff, 0), DefaultMaxBackoff), c.Backoff)
	c.ReverseCredits = orDefault(c.ReverseCredits, DefaultReverseCredits)
	c.Rules.NoChunks = false
	if c.Retrying == nil {
		c.Retrying = func(error) {}
	}
	c.Connection.Nudge = cmp.Or(c.Connection.Nudge, cm.DefaultNudge) // the first message is a call
	if c.Dial == nil {
		network, address := c.Network, c.Address
		c.Dial = func(ctx context.Context, qp *verbs.QP, p cm.Params) (*cm.Conn, error) {
			return cm.Dial(ctx, qp, network, address, p)
		}
	}
	return c
}

// DefaultReverseCredits is what Linux's client grants, too.
const DefaultReverseCredits = 2

// endpoint is how the endpoints of the client are.
func (c *ClientConfig) endpoint() endpointConfig {
	cfg := endpointConfig{
		role:     wire.Requester,
		private:  wire.PrivateData{RemoteInvalidation: !c.NoRemoteInvalidation, SendSize: uint32(c.SendSize), ReceiveSize: uint32(c.ReceiveSize)},
		rules:    c.Rules,
		receives: c.Credits + receiveSlack,
		sends:    c.Credits + receiveSlack,
		ird:      c.Reads,
	}
	if c.Reverse != nil {
		cfg.receives += c.ReverseCredits
		cfg.sends += 2 * c.ReverseCredits
	}
	if c.Rules.ReadRead {
		cfg.ord = replyReads   // else none: ORD 0 is what is agreed on
		cfg.sends += c.Credits // for each reply an RDMA_DONE
	}
	return cfg
}

// replyReads is how many RDMA Reads a client has outstanding.
const replyReads = 16
