// The configuration of a client.

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

	// RNIC has the queue pairs of the connections. If it is nil the client opens one of
	// its own.
	RNIC *verbs.RNIC

	Bindings payload.Bindings // which items of which program may be in chunks
	Rules    wire.Rules       // what is accepted in replies, and the limits of a call's chunks

	// Credits is the number of credits that the client requests
	// ([DefaultClientCredits]). No more calls are outstanding at a time, and fewer if the
	// server grants fewer.
	Credits int

	// SendSize and ReceiveSize are the inline thresholds: the octets of the longest
	// RPC-over-RDMA message in one Send, in either direction (4096 each; 1024 to 262144,
	// in multiples of 1024). The private data (RFC 8797) carries them to the server; the
	// smaller value of the two sides counts.
	SendSize, ReceiveSize int

	// Reads is the number of RDMA Reads that the server may have outstanding (32).
	Reads int

	// NoRemoteInvalidation asks the server not to invalidate STags with its replies
	// (RFC 8797 §4.1). It is no error if a server does so nevertheless.
	NoRemoteInvalidation bool

	// MaxReply is the longest reply, in octets, to a call for which neither the caller
	// nor a binding gives a limit ([DefaultMaxReply]).
	MaxReply int

	// InlineResults accepts results that the server sent inline although there was a
	// Write chunk for them. RFC 8166 §6.1 makes that an error.
	InlineResults bool

	// Timeout limits a call, in addition to its context ([DefaultCallTimeout]; negative
	// is no limit). It runs from the call of Call, over any number of connections. The
	// error is [ErrTimeout].
	Timeout time.Duration

	// DialTimeout limits one attempt to connect ([DefaultDialTimeout]).
	DialTimeout time.Duration

	// Attempts is the number of attempts to connect that may fail in a row before the
	// waiting calls fail; with 0 they wait until they time out. A connection that is lost
	// before its first reply counts as a failed attempt. [Client.Connect] finds out at
	// once whether the server can be reached.
	Attempts int

	// Backoff is the pause after a failed attempt ([DefaultBackoff]). It doubles with
	// each further one, up to MaxBackoff ([DefaultMaxBackoff]).
	Backoff, MaxBackoff time.Duration

	// RetryRejected treats a server's rejection as a failed attempt. Otherwise a
	// rejection ends the waiting calls.
	RetryRejected bool

	// Idle is how long a connection without calls is kept; negative is forever. The
	// next call makes a new one. 0 is [DefaultClientIdle], or forever with Reverse, as
	// the server may make calls (RFC 8167 §5.4).
	Idle time.Duration

	// Reverse executes the server's calls (RFC 8167), at most ReverseCredits (2) at a
	// time. If it is nil none are accepted.
	Reverse        oncrpc.Handler
	ReverseCredits int

	// Configure begins each connection with CONF_RDMA (RFC 5666 §6), with the credential
	// ConfigureCred, as servers may require an appropriate flavor (§11). It is no error
	// if a server does not have the program. With Rules.MSGP calls may be sent as
	// RDMA_MSGP, with the alignment that the server returned.
	Configure     bool
	ConfigureCred oncrpc.OpaqueAuth

	// Connection has the parameters of the connections. Its PrivateData precedes the
	// client's own, and its Nudge, if 0, is cm.DefaultNudge.
	Connection cm.Params

	// Dial, if not nil, connects in place of [cm.Dial].
	Dial func(ctx context.Context, qp *verbs.QP, p cm.Params) (*cm.Conn, error)

	// Retrying, if not nil, is called with the reason when an attempt to connect has
	// failed, or a connection was lost with calls in progress. Waiting calls are sent
	// again over the next connection, unless Attempts are used up. The client waits for
	// Retrying to return.
	Retrying func(error)

	Logger *slog.Logger // nil logs nothing
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

// DefaultReverseCredits is the default of [ClientConfig.ReverseCredits], as Linux's client
// has it.
const DefaultReverseCredits = 2

// endpoint returns the configuration of the client's endpoints.
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
