// What one sample does: a peer, an operation, a size and how it is driven. A
// Workload is comparable, so that it can be the key of its samples.

package main

import (
	"fmt"
	"strings"
)

// A Peer is what carries the octets.
type Peer string

const (
	Weft   Peer = "weft"
	TCPC   Peer = "tcp-c"     // plain TCP, a program in C
	TCPGo  Peer = "tcp-go"    // plain TCP, the net package
	Fabric Peer = "libfabric" // its tcp provider, connected endpoints
	GRPC   Peer = "grpc-go"

	// Perftest is the programs of that package, as Debian has them, under weft run.
	Perftest Peer = "weft-run"

	// Servers of files. Their client is Weft's.
	WeftRDMA Peer = "weft-rdma" // what weft serve runs, NFS over RDMA
	WeftTCP  Peer = "weft-tcp"  // the same over TCP
	GoNFS    Peer = "go-nfs"    // over TCP

	// GoMap is a map of Go's, which memory registration is set against.
	GoMap Peer = "go-map"

	// Before is Weft at an older commit, which --before names.
	Before Peer = "weft-before"
)

// hasCRC says that the peer's FPDUs may have CRCs.
func (p Peer) hasCRC() bool { return p == Weft || p == WeftRDMA || p == Perftest || p == Before }

// A Shape is the pattern of the traffic.
type Shape string

const (
	Stream    Shape = "stream"    // one way, as fast as it goes
	PingPong  Shape = "ping-pong" // one message there, one back, and again
	File      Shape = "file"      // reads or writes of parts of a file over NFS
	Connect   Shape = "connect"   // a connection is made, carries a message and ends, and again
	Footprint Shape = "footprint" // none: connections are made and looked at
	Register  Shape = "register"  // none: memory is registered and deallocated
)

// A Path is what lies between the two ends.
type Path string

const (
	Loopback Path = ""
	MTU1500  Path = "MTU 1500" // a veth pair between two network namespaces
	Delayed  Path = "20 ms"    // loopback through a relay that delays all it carries by 10 ms each way
)

// An Op is the operation that carries the message.
type Op string

const (
	Octets   Op = "octets"   // plain TCP knows no other
	Write    Op = "write"    // RDMA Write
	Read     Op = "read"     // RDMA Read
	Send     Op = "send"     // Send into a posted receive
	FetchAdd Op = "fetchadd" // Atomic FetchAdd of 8 octets
	Message  Op = "message"  // on a stream of gRPC
	Call     Op = "call"     // unary, of gRPC
	None     Op = "none"     // of a Footprint
)

// A Workload is what one sample does.
type Workload struct {
	Peer  Peer
	Shape Shape
	Op    Op
	Size  int  // octets of a message
	CRC   bool // CRC32C in each FPDU; of Weft only

	// TLS encrypts the connection; of streams over Weft and of TCPGo.
	TLS bool

	// Batch is about streams: Weft posts lists of work requests, TCP gathers
	// its messages into writes of gatherSize. Without it, each message is one
	// post, or one write.
	Batch bool

	// Polling is about ping-pong: each end polls for its message. Without it
	// they wait for an event.
	Polling bool

	// Loop is about ping-pong that polls: the consumer calls Poll in a loop, at a completion
	// queue without Spin, as a program does that knows other RNICs and not this option.
	Loop bool

	// Unpinned is about ping-pong that waits: both ends may use every processor.
	// Without it they share one.
	Unpinned bool

	// Connections of a stream, that all do the same; of a File, its users over
	// one connection. 0 is one.
	Connections int

	// Path is what lies between the ends; of streams over Weft, TCPC and TCPGo.
	Path Path

	// Idle is how many connections there are besides, that do nothing.
	Idle int
}

// work names what is done, without peer, size and CRC.
func (w Workload) work() string {
	if w.Shape == Footprint {
		return "idle connection"
	}
	if w.Shape == Connect {
		return "connect, send, close"
	}
	if w.Shape == Register {
		return map[Peer]string{Weft: "register, deallocate", GoMap: "insert"}[w.Peer]
	}
	s := fmt.Sprintf("%s %s", w.Op, w.Shape)
	if w.Op == FetchAdd && w.Shape == PingPong {
		s = string(FetchAdd)
	}
	switch {
	case w.Shape == File:
		return fmt.Sprintf("%s, %d at a time", s, w.connections())
	case w.Shape == PingPong && w.Polling:
		s += ", polling"
		if w.Loop {
			s += " without Spin"
		}
	case w.Shape == PingPong:
		s += ", event-driven"
		if w.Unpinned {
			s += ", ends not pinned"
		}
	case w.Op == FetchAdd && w.Shape == Stream:
		s += fmt.Sprintf(", %d outstanding", additions)
	case w.Batch:
		s += ", batched"
	}
	if w.Connections > 1 && w.Shape == PingPong {
		return s + fmt.Sprintf(", %d queue pairs at one CQ", w.Connections)
	}
	if w.TLS {
		s += ", TLS"
	}
	if w.Connections > 1 {
		s += fmt.Sprintf(", %d connections", w.Connections)
	}
	if w.Path != Loopback {
		s += ", " + string(w.Path)
	}
	if w.Idle > 0 {
		s += fmt.Sprintf(", among %d idle", w.Idle)
	}
	return s
}

// String names everything: it is what --only is matched with.
func (w Workload) String() string {
	s := fmt.Sprintf("%s %s", w.Peer, w.work())
	if w.Size > 0 {
		s += " " + sizeName(w.Size)
	}
	if w.CRC {
		s += " crc"
	}
	return s
}

// fileName is String fit for the name of a file.
func (w Workload) fileName() string {
	return strings.ReplaceAll(strings.ReplaceAll(w.String(), ",", ""), " ", "-")
}

// connections is how many connections carry w's messages.
func (w Workload) connections() int { return max(1, w.Connections) }

// crowded says that the connections are too many for memory and a goroutine each.
func (w Workload) crowded() bool { return w.Shape == Stream && w.Connections > maxConnections }

// windowSize is the least memory that a stream walks through, in octets. It is
// what a good TCP reader takes in one call: both kinds of streams then touch
// the same amount of memory.
const windowSize = 256 << 10

// gatherSize is how much a batching TCP sender hands to one write.
const gatherSize = 64 << 10

// window is the memory, in octets, that a stream of w walks through: a whole
// number of messages.
func (w Workload) window() int {
	if w.crowded() {
		return w.connections() * crowdList * w.Size
	}
	return w.slots() * w.Size
}

// slots is how many messages fit the window.
func (w Workload) slots() int {
	return max(1, windowSize/max(1, w.Size))
}

// sizeName is n octets in the largest binary unit that divides it.
func sizeName(n int) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%dGiB", n>>30)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprintf("%dB", n)
}
