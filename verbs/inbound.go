// This file is what a queue pair lets its peer do (Verbs §7.6.3, §8.1.2.2).

package verbs

import (
	"sync/atomic"

	"github.com/weft-rdma/weft/memory"
)

// inboundRights are the accesses of a peer that a queue pair enables.
const inboundRights = RemoteRead | RemoteWrite | RemoteAtomic

// responses, beside them, is that Read Responses are let in. It is the Verbs' one enable
// with RemoteWrite, but for sinks that Local Write is enough for.
const responses memory.Access = 1 << 7

// An inbound is the accesses that are enabled. Both halves of the stream read it.
type inbound struct {
	enabled  atomic.Uint32
	modified atomic.Bool // by Modify QP
}

// init enables what the configuration does.
func (in *inbound) init(c *QPConfig) {
	var a memory.Access
	if !c.NoRemoteRead {
		a |= RemoteRead
	}
	if !c.NoRemoteWrite {
		a |= RemoteWrite | responses
	}
	if !c.NoRemoteRead && !c.NoRemoteWrite {
		a |= RemoteAtomic
	}
	in.enabled.Store(uint32(a))
}

// set enables a and nothing else. localSinks: the sinks of Reads need Local Write alone.
func (in *inbound) set(a memory.Access, localSinks bool) {
	if localSinks || a&RemoteWrite != 0 {
		a |= responses
	}
	in.modified.Store(true)
	in.enabled.Store(uint32(a))
}

// has reports whether an access is enabled.
func (in *inbound) has(a memory.Access) bool { return in.access()&a != 0 }

func (in *inbound) access() memory.Access { return memory.Access(in.enabled.Load()) }

// lacks says why an access is not enabled, or none for 0.
func (in *inbound) lacks(a memory.Access) string {
	switch {
	case in.modified.Load() && a == 0:
		return "the queue pair was modified to let nothing in (QPModify.Inbound)"
	case in.modified.Load():
		return "the queue pair was modified not to let it in (QPModify.Inbound)"
	case a == RemoteRead:
		return "QPConfig.NoRemoteRead is set"
	case a == RemoteWrite:
		return "QPConfig.NoRemoteWrite is set"
	case a == RemoteAtomic:
		return "QPConfig.NoRemoteRead or NoRemoteWrite is set"
	}
	return "QPConfig.NoRemoteRead and NoRemoteWrite are set"
}
