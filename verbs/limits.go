// This file is the limits of an RNIC, and the errors of verbs that reach them.

package verbs

import (
	"sync"

	"github.com/weft-rdma/weft/memory"
)

// Limits bound what one RNIC holds at a time (Verbs §9.2.1.2, §10; RFC 5042
// §6.4). Each is a bound by itself: not all need be attainable together. Zero
// means the default in parentheses. An error says which limit was met, by its
// name here.
type Limits struct {
	PDs       int // protection domains (65536)
	CQs       int // completion queues (65536)
	CQEntries int // entries of one CQ (1048576)
	// TotalCQEntries are the entries of all CQs together (no limit).
	TotalCQEntries     int
	CompletionHandlers int // completion handlers that are set (1024)

	QPs  int // queue pairs (65536)
	WRs  int // work requests of one send or receive queue (65536)
	SGEs int // scatter/gather elements of one work request of any kind (32; at least 4)

	// IRD and ORD are of one queue pair (256 each; 16382 is the most that can
	// be negotiated). TotalIRD and TotalORD are pools from which each queue
	// pair takes its own for as long as it lives; 0 is no pool. There are no
	// more queue pairs than a pool has ones.
	IRD, ORD           int
	TotalIRD, TotalORD int

	SRQs   int // shared receive queues (65536)
	SRQWRs int // receives of one of them (1048576)
	// TotalSRQWRs are the receives of all of them together (no limit).
	TotalSRQWRs int

	Regions       int    // memory regions (1048576; at most [memory.LimitRegions])
	RegionsOctets uint64 // octets of all valid regions together (no limit)
	Windows       int    // memory windows (1048576; at most [memory.LimitWindows])
	ListEntries   int    // entries of one physical buffer list (65536)

	Listeners int // listeners of package cm (1024)
	// PendingConnections are those of all listeners together that are in
	// start-up or wait for Accept (4096).
	PendingConnections int
}

func (l Limits) withDefaults() Limits {
	for _, d := range [...]struct {
		v   *int
		def int
	}{
		{&l.PDs, 1 << 16}, {&l.CQs, 1 << 16}, {&l.CQEntries, 1 << 20}, {&l.CompletionHandlers, 1 << 10},
		{&l.QPs, 1 << 16}, {&l.WRs, 1 << 16}, {&l.SGEs, 32}, {&l.IRD, 256}, {&l.ORD, 256},
		{&l.SRQs, 1 << 16}, {&l.SRQWRs, 1 << 20},
		{&l.Regions, memory.DefaultMaxRegions}, {&l.Windows, memory.DefaultMaxWindows}, {&l.ListEntries, memory.DefaultMaxEntries},
		{&l.Listeners, 1 << 10}, {&l.PendingConnections, 1 << 12},
	} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	l.SGEs = max(l.SGEs, 4) // Verbs §8.1.3.2: no RNIC supports fewer
	l.IRD, l.ORD = min(l.IRD, 0x3FFE), min(l.ORD, 0x3FFE)
	l.Regions, l.Windows = min(l.Regions, memory.LimitRegions), min(l.Windows, memory.LimitWindows)
	l.TotalCQEntries, l.TotalSRQWRs = max(l.TotalCQEntries, 0), max(l.TotalSRQWRs, 0)
	l.TotalIRD, l.TotalORD = max(l.TotalIRD, 0), max(l.TotalORD, 0)
	for _, pool := range [...]int{l.TotalIRD, l.TotalORD} {
		if pool > 0 {
			l.QPs = min(l.QPs, pool) // Verbs §6.5: each queue pair can have 1
		}
	}
	return l
}

// refusals counts how often each limit was met.
type refusals struct {
	mu sync.Mutex
	by map[string]uint64
}

// limited is the error of a verb that reached a limit, whose name is that of the field
// of Limits. The format is of a phrase like "the limit is 3 queue pairs".
func (r *RNIC) limited(verb string, result error, limit, format string, args ...any) error {
	r.refused.mu.Lock()
	if r.refused.by == nil {
		r.refused.by = map[string]uint64{}
	}
	r.refused.by[limit]++
	r.refused.mu.Unlock()
	return fail(verb, result, format+" (Limits."+limit+")", args...)
}

// reserveReads takes IRD and ORD for a queue pair out of the RNIC's pools, or
// nothing and fails with ErrResources (Verbs §6.5). Negative numbers give back,
// which never fails.
func (r *RNIC) reserveReads(verb string, ird, ord int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.limits
	switch {
	case ird > 0 && l.TotalIRD > 0 && r.ird+ird > l.TotalIRD:
		return r.limited(verb, ErrResources, "TotalIRD", "%d of IRD, of %d in all queue pairs together %d are left", ird, l.TotalIRD, l.TotalIRD-r.ird)
	case ord > 0 && l.TotalORD > 0 && r.ord+ord > l.TotalORD:
		return r.limited(verb, ErrResources, "TotalORD", "%d of ORD, of %d in all queue pairs together %d are left", ord, l.TotalORD, l.TotalORD-r.ord)
	}
	r.ird += ird
	r.ord += ord
	return nil
}
