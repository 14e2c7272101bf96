// This file is how many connections a file server has, as far as the system lets it
// open files, and how much memory.

package fileserver

import (
	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpctcp"
)

const (
	// transportMemory is the bytes of calls and replies over each transport.
	transportMemory = 256 << 20
	// helperMemory is that of MOUNT by datagrams, and of the port mapper.
	helperMemory = 4 << 20
	// helperRecord is the longest call to the port mapper, in bytes.
	helperRecord = 64 << 10
)

// limits are numbers of connections.
type limits struct {
	rdma, tcp int // that are served
	backlog   int // in start-up over RDMA, and as many that wait to be accepted
	mapper    int // to the port mapper
}

// limitsFor divides descriptors, of which one half is left for files, or for
// connections behind a gateway.
func limitsFor(descriptors int) limits {
	half := max(descriptors/2, 32)
	return limits{
		rdma:    min(half/4, rpcrdma.DefaultConnections),
		tcp:     min(half/2, rpctcp.DefaultConnections),
		backlog: min(half/16, 128),
		mapper:  min(half/8, 64),
	}
}

// atMost is l with no more connections served, over all transports together, than
// are wanted; 0 is any number.
func (l limits) atMost(wanted int, rdma bool) limits {
	if wanted == 0 {
		return l
	}
	if rdma {
		l.rdma = min(l.rdma, max(wanted/2, 1))
		wanted -= wanted / 2
	}
	l.tcp = min(l.tcp, max(wanted, 1))
	return l
}

// Connections is how many connections file servers of this process serve, over RDMA
// and TCP together: half of the descriptors that the system lets it have at most.
func Connections() int {
	l := limitsFor(fairness.Descriptors())
	return l.rdma + l.tcp
}

// helper is how MOUNT by datagrams and the port mapper are served: their messages
// are short, and there are few.
func helper(h oncrpc.Handler, connections int) rpctcp.ServerConfig {
	return rpctcp.ServerConfig{
		Handler: h, Connections: connections, Calls: 16,
		Memory: helperMemory, Record: oncrpc.RecordLimits{Record: helperRecord},
	}
}
