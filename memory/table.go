// This file is the table of all STags of an RNIC, and its locks.

package memory

import (
	"bufio"
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
	// DefaultMaxWindows is the limit of windows where Config gives none.
	DefaultMaxWindows = 1 << 20
	// LimitWindows is the largest limit of windows: a quarter of all STag indices.
	LimitWindows = 1 << (indexBits - 2)

	// drawnAhead is how many octets are taken from the source of indices at a time.
	drawnAhead = 64 * indexBits / 8
)

// Config configures a Table. The zero value is useful.
type Config struct {
	// MaxRegions is how many regions may exist at a time; 0 means
	// DefaultMaxRegions, and more than LimitRegions means LimitRegions.
	MaxRegions int
	// MaxWindows is how many windows may exist at a time; 0 means
	// DefaultMaxWindows, and more than LimitWindows means LimitWindows.
	MaxWindows int
	// MaxBytes is how many octets may be registered at a time in regions that are
	// Valid, counting overlapping regions each; 0 means no limit.
	MaxBytes uint64
	// MaxEntries is how many buffers one BufferList may have; 0 means
	// DefaultMaxEntries.
	MaxEntries int
	// Block is Block Mode: lists are Block Lists, not Page Lists (Verbs §7.6.2).
	Block bool
	// Physical is the memory of the STag of zero: its tagged offsets are offsets into
	// it (Verbs §7.2.1). If it is nil, that STag is invalid.
	Physical []byte
	// ProbePages makes each registration touch the pages of its memory, to find out
	// whether this program may read them and, for LocalWrite, write them; otherwise it
	// fails with ErrAccess. Contents do not change, even while others write them, but
	// the system has to provide each page.
	ProbePages bool
	// Rand is the source of STag indices; nil means crypto/rand. It is for tests:
	// STags have to be unpredictable.
	Rand io.Reader
}

func (c Config) withDefaults() Config {
	if c.MaxRegions <= 0 {
		c.MaxRegions = DefaultMaxRegions
	}
	if c.MaxWindows <= 0 {
		c.MaxWindows = DefaultMaxWindows
	}
	if c.MaxEntries <= 0 {
		c.MaxEntries = DefaultMaxEntries
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = math.MaxUint64
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	c.MaxRegions, c.MaxWindows = min(c.MaxRegions, LimitRegions), min(c.MaxWindows, LimitWindows)
	return c
}

// Usage counts the objects of a Table.
type Usage struct {
	Regions int    // not deallocated
	Windows int    // not deallocated
	Bytes   uint64 // octets of the regions that are Valid
}

// A Table has all STags of one RNIC. Its methods may be called by any goroutine.
type Table struct {
	cfg      Config        // defaults filled in
	physical *registration // of the STag of zero; nil if there is none

	dir directory // lookups without lock, changes under mu

	// mu guards all below, and the fields of regions, windows and domains that name
	// it. Nobody waits for holders of memory with mu locked.
	mu      sync.Mutex
	closed  bool
	usage   Usage
	bound   map[Stream]int      // windows bound to each stream
	retired map[Stream]struct{} // streams that no window may be bound to
	random  *bufio.Reader       // of Config.Rand
	resting resting
}

// NewTable returns an empty Table.
func NewTable(cfg Config) *Table {
	t := &Table{
		cfg:     cfg.withDefaults(),
		bound:   make(map[Stream]int),
		retired: make(map[Stream]struct{}),
	}
	t.random = bufio.NewReaderSize(t.cfg.Rand, drawnAhead)
	if len(cfg.Physical) > 0 {
		t.physical = &registration{access: anyLocal, zero: true, extent: extentOf(cfg.Physical)}
	}
	return t
}

// Usage returns the counts of what exists.
func (t *Table) Usage() Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.usage
}

// Config returns the configuration, with defaults filled in.
func (t *Table) Config() Config { return t.cfg }

// Close deallocates all windows and regions and refuses new ones. It returns when no
// octet can move through any of them, or through the STag of zero. The caller must hold
// none of them.
func (t *Table) Close() {
	var all []*registration
	t.mu.Lock()
	t.closed = true
	for _, windows := range [...]bool{true, false} { // windows before their regions
		for o := range t.dir.all() {
			if windows == (o.window != nil) {
				all = append(all, o.current.Load())
				t.drop(o)
			}
		}
	}
	if t.physical != nil {
		all = append(all, t.physical)
		t.physical.mark()
	}
	t.mu.Unlock()
	for _, g := range all {
		g.await()
	}
}

// valid returns the registration of stag, if it is valid now and the stream may use it:
// any of its domain (RFC 5041 §7.1, Verbs §7.6.3); a window only the one that it is bound
// to, whatever the domain (§7.10.2).
func (t *Table) valid(stag uint32, pd *PD, stream Stream) (*registration, ddp.Fault) {
	o := t.dir.lookup(STag(stag).Index())
	if o == nil {
		return nil, ddp.FaultSTag
	}
	g := o.current.Load()
	switch {
	case g.stag != STag(stag), g.revoked():
		return nil, ddp.FaultSTag
	case g.pd != pd && !g.window, g.stream != 0 && g.stream != stream:
		return nil, ddp.FaultAssociation
	}
	return g, ddp.NoFault
}

// draw returns a free index: random, not 0, not freed lately. It needs t.mu.
func (t *Table) draw() (uint32, error) {
	for {
		b, err := t.random.Peek(indexBits / 8)
		if err != nil {
			return 0, fmt.Errorf("no random STag index: %w", err)
		}
		index := uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
		_, _ = t.random.Discard(len(b)) // they are there
		if index == 0 || t.dir.lookup(index) != nil {
			continue
		}
		if !t.resting.has(index) {
			return index, nil
		}
	}
}
