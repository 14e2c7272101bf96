// This file says how a server can be.

package rpcrdma

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// What a server has where its configuration says nothing.
const (
	DefaultCredits     = 64
	DefaultMessageSize = 4096
	DefaultReads       = 32
	DefaultConnections = 256
	DefaultIdle        = 6 * time.Minute
)

// A ServerConfig says what a Server serves, and within which bounds. Numbers
// that are 0 stand for the defaults in parentheses.
type ServerConfig struct {
	Handler  oncrpc.Handler   // executes the calls
	Bindings payload.Bindings // what of which program may be reduced

	// Rules bound the chunks of a call, and say what of RFC 5666 is taken: see
	// [wire.Rules]. Its NoChunks and ReadRead are not for servers.
	Rules wire.Rules

	// Credits are what every reply grants: calls that a connection may have in
	// progress (64).
	Credits int

	// SendSize and ReceiveSize are the octets of the longest messages that are
	// sent and taken in one piece (4096 each; 1024 to 262144, in multiples of
	// 1024). They are told to clients when they connect (RFC 8797), and what a
	// client says of itself lowers them.
	SendSize, ReceiveSize int

	// Reads are the RDMA Reads that a connection has outstanding (32). The client
	// may serve fewer.
	Reads int

	// NoRemoteInvalidation keeps replies from invalidating STags of clients that
	// support it (RFC 8797 §4.1).
	NoRemoteInvalidation bool

	// Memory limits the octets of calls and replies of all connections
	// ([DefaultMemory]). One half is for calls that are fetched by RDMA Read, the other
	// for what handlers get from Request.Alloc beyond what fits into a Send. Each is a
	// hard limit: a call is not fetched, and Request.Alloc does not return, until there
	// is memory. (A message longer than a half is accepted when it is alone. A handler
	// that asks a second time waits for a second at most.)
	//
	// CallMemory limits those of one connection: so many octets in calls, and as many
	// in replies ([DefaultCallMemory]). The share that has least gets memory first. A
	// share that is alone gets at most three quarters of a half. If others wait for
	// memory, a connection is closed whose peer for 250 ms receives nothing of its
	// replies, or does not answer RDMA Reads.
	//
	// IdleMemory is the number of octets of registered memory that the server keeps for
	// reuse ([DefaultIdleMemory]).
	CallMemory, Memory, IdleMemory int

	// Connections bounds them (256). They are divided by [origin.Share]: one more takes
	// the place of one of the share with the most that do nothing, or if all work, with
	// the most; first of one that has not called yet, then of the one idle for longest.
	// It is rejected if its own share has the most and all of that work, which is:
	// execute a call, or have sent or taken something within a second. A connection has
	// memory for Credits and 8 receives, and for up to twice as many Sends, beside
	// Memory: some 0.9 MiB with the defaults.
	Connections int

	// Idle is how long a connection may go without a message before it is closed
	// ([DefaultIdle]; negative: for ever). Stall is how long a client may take
	// nothing of what it is sent, or answer no RDMA Read ([DefaultStall]); in all it
	// has that, a second for each RDMA Read or Write, and one for 64 KiB.
	Idle, Stall time.Duration

	// Allow, if not nil, says whether an address may connect.
	Allow func(remote net.Addr) bool

	// ReverseCalls is how many calls a connection may have in progress to its
	// client (RFC 8167), by [oncrpc.Request.Back]; 0: none, and Back is nil.
	// ReverseTimeout ends them ([DefaultCallTimeout]).
	ReverseCalls   int
	ReverseTimeout time.Duration

	// Configure and ReadReplies are what RFC 5666 has and RFC 8166 has not:
	// CONF_RDMA, and replies that the client fetches. Rules.MSGP takes RDMA_MSGP.
	Configure   *Configurator
	ReadReplies ReadReplies

	MPA    mpa.Config   // what is not the default of the connections below
	Logger *slog.Logger // nil is silent
}

func (c *ServerConfig) check() error {
	if c.Handler == nil {
		return errors.New("rpcrdma: ServerConfig.Handler is nil, expected the handler of the calls")
	}
	return nil
}

func (c ServerConfig) withDefaults() ServerConfig {
	c.Credits = orDefault(c.Credits, DefaultCredits)
	c.SendSize = messageSize(c.SendSize)
	c.ReceiveSize = messageSize(c.ReceiveSize)
	c.Reads = orDefault(c.Reads, DefaultReads)
	c.Connections = orDefault(c.Connections, DefaultConnections)
	c.Idle = cmp.Or(c.Idle, DefaultIdle)
	c.ReverseTimeout = cmp.Or(max(c.ReverseTimeout, 0), DefaultCallTimeout)
	c.ReverseCalls = max(c.ReverseCalls, 0)
	c.Rules.NoChunks, c.Rules.ReadRead = false, false
	return c
}

// orDefault returns n, or standard where n is not above zero.
func orDefault(n, standard int) int { return cmp.Or(max(n, 0), standard) }

// messageSize returns a size that private data can state.
func messageSize(n int) int { return wire.RoundSize(orDefault(n, DefaultMessageSize)) }

// receiveSlack is how many messages more than its credits allow a client may
// send before they find no receive, which ends its connection.
const receiveSlack = 8

// endpoint is how the endpoints of the server are.
func (c *ServerConfig) endpoint() endpointConfig {
	cfg := endpointConfig{
		role:     wire.Responder,
		private:  wire.PrivateData{RemoteInvalidation: !c.NoRemoteInvalidation, SendSize: uint32(c.SendSize), ReceiveSize: uint32(c.ReceiveSize)},
		rules:    c.Rules,
		receives: c.Credits + c.ReverseCalls + receiveSlack,
		sends:    max(2*c.Credits, 128) + 2*c.ReverseCalls,
		ord:      c.Reads,
		ird:      1,
		idle:     c.Idle,
		stall:    c.Stall,
	}
	if c.ReadReplies.Enabled {
		// RFC 5666 §3.8: an RDMA_DONE takes a receive like a call.
		cfg.receives += c.ReadReplies.replies()
		cfg.ird = 16
	}
	return cfg
}

// responder is how the responders of the server are.
func (c *ServerConfig) responder(f *failures, in, out *fairness.Memory) responderConfig {
	return responderConfig{
		handler: c.Handler, bindings: c.Bindings, rules: c.Rules, credits: uint32(c.Credits), memory: c.CallMemory, in: in, out: out,
		conf: c.Configure, read: c.ReadReplies, failures: f, logger: c.Logger,
	}
}
