// The configuration of a server.

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

// Defaults of a [ServerConfig].
const (
	DefaultCredits     = 64
	DefaultMessageSize = 4096
	DefaultReads       = 32
	DefaultConnections = 256
	DefaultIdle        = 6 * time.Minute
)

// A ServerConfig configures a [Server]. Handler is required. Zero values are the
// defaults, which are in parentheses.
type ServerConfig struct {
	Handler  oncrpc.Handler   // executes the calls
	Bindings payload.Bindings // which items of which program may be in chunks

	// Rules limits the chunks of a call, and says how much of RFC 5666 is accepted: see
	// [wire.Rules]. Its NoChunks and ReadRead are not for servers.
	Rules wire.Rules

	// Credits is the number of credits that every reply grants: the calls that a
	// connection may have in progress (64).
	Credits int

	// SendSize and ReceiveSize are the inline thresholds: the octets of the longest
	// RPC-over-RDMA message in one Send, in either direction (4096 each; 1024 to 262144,
	// in multiples of 1024). The private data (RFC 8797) carries them to clients; the
	// smaller value of the two sides counts.
	SendSize, ReceiveSize int

	// Reads is the number of RDMA Reads that a connection may have outstanding (32). The
	// client may allow fewer.
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

	// Connections limits the connections (256). The places are divided by
	// [origin.Share]. If all are taken, a new connection evicts one of the share with the
	// most idle connections, or if none is idle, of the share with the most. In that
	// share one that has made no call goes first, then the one idle for longest. If the
	// new connection's own share has the most, and none of its connections is idle, the
	// new one is rejected. A connection is idle unless a call of it is executed, or it has
	// sent or received something within a second.
	//
	// In addition to Memory a connection has memory for Credits and 8 receives, and for
	// up to twice as many Sends: some 0.9 MiB with the defaults.
	Connections int

	// Idle is how long a connection without messages is kept ([DefaultIdle]; negative is
	// forever). Stall is how long a client may receive nothing of what it is sent, or
	// answer no RDMA Read ([DefaultStall]). The limit for all of a message is Stall, plus
	// a second for each RDMA Read or Write, plus a second for each 64 KiB.
	Idle, Stall time.Duration

	// Allow, if not nil, decides whether an address may connect.
	Allow func(remote net.Addr) bool

	// ReverseCalls is the number of calls that may be in progress to the client of a
	// connection (RFC 8167), by [oncrpc.Request.Back]; with 0 Back is nil.
	// ReverseTimeout limits each of them ([DefaultCallTimeout]).
	ReverseCalls   int
	ReverseTimeout time.Duration

	// Configure and ReadReplies enable what RFC 8166 removed from RFC 5666: CONF_RDMA,
	// and replies that the client fetches. Rules.MSGP accepts RDMA_MSGP.
	Configure   *Configurator
	ReadReplies ReadReplies

	MPA    mpa.Config   // of the connections
	Logger *slog.Logger // nil logs nothing
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
