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
	// DefaultMaxWindows is the limit of windows where Config gives none.
	DefaultMaxWindows = 1 << 20
	// LimitWindows is the largest limit of windows: a quarter of all STag indices.
	LimitWindows = 1 << (indexBits - 2)

	// resting is how many freed indices are kept from being drawn again: a
	// peer's stale STag meets nothing for a long time (RFC 5042 §6.1.1).
	resting = 4096
)

// Config says how a Table is to be. The zero value is useful.
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
	// Physical is what the STag of zero names: its tagged offsets are offsets into
	// this memory (Verbs §7.2.1). Without, that STag names nothing.
	Physical []byte
	// ProbePages has each registration touch the pages of its memory, to find out
	// whether this program may read them and, for LocalWrite, write them. Memory that
	// it may not is refused with ErrAccess. Their content stays as it is, whoever else
	// changes it meanwhile, but the system has to provide each page.
	ProbePages bool
	// Rand is where STag indices come from; nil means crypto/rand. It is for
	// tests: STags are to be unpredictable.
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

// Usage counts what exists in a Table.
type Usage struct {
	Regions int    // not deallocated
	Windows int    // the same
	Bytes   uint64 // octets of the regions that are Valid
}

// A Table knows all STags of one RNIC. Its methods may be called by any
// goroutine.
type Table struct {
	cfg      Config        // defaults filled in
	physical *registration // of the STag of zero; nil if there is none

	dir directory // lookups without lock, changes under mu

	// mu guards all below, and whatever a region, window or domain says it does.
	// Nobody waits for holders of memory while having it.
	mu      sync.Mutex
	closed  bool
	usage   Usage
	bound   map[Stream]int      // windows bound to each stream
	retired map[Stream]struct{} // streams that no window may be bound to
	rest    [resting]uint32     // ring of indices freed last; 0 is none
	restAt  int                 // where the next goes
	resting map[uint32]struct{} // the same as a set
}

// NewTable creates a Table without regions.
func NewTable(cfg Config) *Table {
	t := &Table{
		cfg:     cfg.withDefaults(),
		bound:   make(map[Stream]int),
		retired: make(map[Stream]struct{}),
		resting: make(map[uint32]struct{}),
	}
	if len(cfg.Physical) > 0 {
		t.physical = &registration{access: anyLocal, zero: true, extent: extentOf(cfg.Physical), drained: make(chan struct{})}
	}
	return t
}

// Usage reports how much there is.
func (t *Table) Usage() Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.usage
}

// Config returns what the Table was created with, defaults filled in.
func (t *Table) Config() Config { return t.cfg }

// Close deallocates all windows and regions and refuses new ones. It returns when
// no octet can move through any of them, nor through the STag of zero. The caller
// holds none of them.
func (t *Table) Close() {
	var all []*registration
	t.mu.Lock()
	t.closed = true
	for _, windows := range [...]bool{true, false} { // they stand on regions
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
		<-g.drained
	}
}

// valid finds the registration that stag names, if it is valid now and a
// stream of this domain may use it (RFC 5041 §7.1, Verbs §7.6.3). A window is its
// stream's alone, whatever the domain (§7.10.2).
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

// draw finds a free index: random, not 0, not freed lately. It needs t.mu.
func (t *Table) draw() (uint32, error) {
	var b [indexBits / 8]byte
	for {
		if _, err := io.ReadFull(t.cfg.Rand, b[:]); err != nil {
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
