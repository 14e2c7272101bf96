package memory

import (
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/weft-rdma/weft/ddp"
)

const (
	// DefaultMaxRegions is the limit of regions where Config gives none.
	DefaultMaxRegions = 1 << 20
	// LimitRegions is the largest limit of regions: half of all STag indices,
	// so that a free one is found by drawing at random.
	LimitRegions = 1 << (indexBits - 1)

	// resting is how many freed indices are kept from being drawn again: a
	// peer's stale STag meets nothing for a long time (RFC 5042 §6.1.1).
	resting = 4096
)

// Config bounds a Table. The zero value is useful.
type Config struct {
	// MaxRegions is how many regions may exist at a time; 0 means
	// DefaultMaxRegions, and more than LimitRegions means LimitRegions.
	MaxRegions int
	// MaxBytes is how many octets may be registered at a time, counting
	// overlapping regions each; 0 means no limit.
	MaxBytes uint64
	// Rand is where STag indices come from; nil means crypto/rand. It is for
	// tests: STags are to be unpredictable.
	Rand io.Reader
}

// A Table knows all STags of one RNIC. Its methods may be called by any
// goroutine.
type Table struct {
	maxRegions int
	maxBytes   uint64
	rand       io.Reader

	dir directory // lookups without lock, changes under mu

	mu      sync.Mutex
	closed  bool
	regions int                 // not yet deallocated
	bytes   uint64              // registered
	rest    [resting]uint32     // ring of indices freed last; 0 is none
	restAt  int                 // where the next goes
	resting map[uint32]struct{} // the same as a set
}

// NewTable creates a Table without regions.
func NewTable(cfg Config) *Table {
	t := &Table{
		maxRegions: cfg.MaxRegions,
		maxBytes:   cfg.MaxBytes,
		rand:       cfg.Rand,
		resting:    make(map[uint32]struct{}),
	}
	if t.maxRegions <= 0 {
		t.maxRegions = DefaultMaxRegions
	}
	t.maxRegions = min(t.maxRegions, LimitRegions)
	if t.maxBytes == 0 {
		t.maxBytes = math.MaxUint64
	}
	if t.rand == nil {
		t.rand = rand.Reader
	}
	return t
}

// Usage reports how many regions exist and how many octets they have together.
func (t *Table) Usage() (regions int, bytes uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.regions, t.bytes
}

// Limits reports how many regions and octets there may be at a time.
func (t *Table) Limits() (regions int, bytes uint64) { return t.maxRegions, t.maxBytes }

// Close deallocates all regions and refuses new ones. It returns when no octet
// can move through any of them. The caller holds none of them.
func (t *Table) Close() {
	t.mu.Lock()
	t.closed = true
	var all []*Region
	for r := range t.dir.all() {
		all = append(all, r)
	}
	t.mu.Unlock()
	for _, r := range all {
		// One that somebody else deallocates at this moment is waited for, too.
		_ = t.Deallocate(r)
	}
}

// valid finds the registration that stag names, if it is valid now and a
// stream of this domain may use it (RFC 5041 §7.1, Verbs §7.6.3).
func (t *Table) valid(stag uint32, pd *PD, stream Stream) (*registration, ddp.Fault) {
	r := t.dir.lookup(STag(stag).Index())
	if r == nil {
		return nil, ddp.FaultSTag
	}
	g := r.current.Load()
	switch {
	case g.stag != STag(stag), g.revoked():
		return nil, ddp.FaultSTag
	case g.pd != pd, g.stream != 0 && g.stream != stream:
		return nil, ddp.FaultAssociation
	}
	return g, ddp.NoFault
}

// draw finds a free index: random, not 0, not freed lately. It needs t.mu.
func (t *Table) draw() (uint32, error) {
	var b [indexBits / 8]byte
	for {
		if _, err := io.ReadFull(t.rand, b[:]); err != nil {
			return 0, fmt.Errorf("no random STag index: %w", err)
		}
		index := uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
		if index == 0 || t.dir.lookup(index) != nil {
			continue
		}
		if _, rests := t.resting[index]; !rests {
			return index, nil
		}
	}
}

// retire keeps a freed index from being drawn for a while. It needs t.mu.
func (t *Table) retire(index uint32) {
	delete(t.resting, t.rest[t.restAt])
	t.rest[t.restAt] = index
	t.restAt = (t.restAt + 1) % resting
	t.resting[index] = struct{}{}
}
