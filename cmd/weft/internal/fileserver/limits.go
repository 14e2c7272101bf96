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
	// transportMemory limits the calls and replies over each transport, in bytes.
	transportMemory = 256 << 20
	// waitingMemory limits those of them that wait because of quotas of exports.
	waitingMemory = transportMemory / 8
	// helperMemory is the same for MOUNT over UDP and for the port mapper.
	helperMemory = 4 << 20
	// helperRecord is the longest call to the port mapper, in bytes.
	helperRecord = 64 << 10
)

// limits are the numbers of connections.
type limits struct {
	rdma, tcp int // that are served
	backlog   int // in start-up over RDMA, and as many that wait to be accepted
	mapper    int // to the port mapper
}

// limitsFor divides half of the descriptors among connections. The other half is for
// files, or for the connections of a gateway to its server.
func limitsFor(descriptors int) limits {
	half := max(descriptors/2, 32)
	return limits{
		rdma:    min(half/4, rpcrdma.DefaultConnections),
		tcp:     min(half/2, rpctcp.DefaultConnections),
		backlog: min(half/16, 128),
		mapper:  min(half/8, 64),
	}
}

// atMost reduces l to at most wanted connections over all transports; 0 is no limit.
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

// Connections returns the most connections that a file server in this process serves,
// over RDMA and TCP together: at most half of its descriptors.
func Connections() int {
	l := limitsFor(fairness.Descriptors())
	return l.rdma + l.tcp
}

// helper configures MOUNT over UDP and the port mapper, whose messages are few and
// short.
func helper(h oncrpc.Handler, connections int) rpctcp.ServerConfig {
	return rpctcp.ServerConfig{
		Handler: h, Connections: connections, Calls: 16,
		Memory: helperMemory, Record: oncrpc.RecordLimits{Record: helperRecord},
	}
}
