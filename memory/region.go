package memory

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/weft-rdma/weft/ddp"
)

// A Stream identifies a stream within its RNIC, for STags that only one stream
// may use (RFC 5042 §2.2.5). 0 is none.
type Stream uint64

// RegionConfig says how a region may be used.
type RegionConfig struct {
	// Access holds the rights; see Access.Valid for the valid sets.
	Access Access
	// Key becomes the lowest octet of the STag.
	Key uint8
	// VA is the tagged offset of the first octet, unless ZeroBased
	// (Verbs §7.3.1.1). VA + length may be 2^64 at most.
	VA uint64
	// ZeroBased makes the tagged offset of the first octet 0.
	ZeroBased bool
	// Stream, if not 0, is the only stream of the domain that may use the STag.
	Stream Stream
	// Shared tells that several streams are to use the STag. Then no peer can
	// take it from the others (RFC 5040 §8.1.1 rule 7): it cannot be
	// invalidated, only deallocated, as a Shared Memory Region of Verbs §7.2.2.
	Shared bool
}

// A Region is registered memory: a Non-Shared Memory Region of Verbs §7.3. It
// is Valid from Register until it is invalidated, and exists until it is
// deallocated. Its methods may be called by any goroutine.
type Region struct {
	table   *Table
	index   uint32
	pd      *PD
	stream  Stream
	zero    bool // zero based
	shared  bool // cannot be invalidated
	remote  bool // the Remote Access Flag (Verbs §7.3.2.1): kept while Invalid
	gone    bool // deallocated; Table.mu
	current atomic.Pointer[registration]
}

// Register gives buf an STag with the rights of cfg, usable by the streams of
// pd. The memory stays the caller's: it has to keep it mapped until Deallocate
// has returned. Memory may be registered more than once (Verbs §7.4.3).
//
// It fails with ErrAccess, ErrLength, ErrVA, ErrPD, ErrRegionLimit,
// ErrByteLimit or ErrClosed; a failure changes nothing.
func (t *Table) Register(pd *PD, buf []byte, cfg RegionConfig) (*Region, error) {
	r, err := t.register(pd, buf, cfg)
	if err != nil {
		return nil, fmt.Errorf("memory: register %d octets: %w", len(buf), err)
	}
	return r, nil
}

func (t *Table) register(pd *PD, buf []byte, cfg RegionConfig) (*Region, error) {
	if !cfg.Access.Valid() {
		return nil, fmt.Errorf("%w: %v: at least one local right is needed, and under each remote right its local ones", ErrAccess, cfg.Access)
	}
	if len(buf) == 0 {
		return nil, fmt.Errorf("%w: at least 1 octet is expected", ErrLength)
	}
	var base uint64
	if !cfg.ZeroBased {
		base = cfg.VA
	}
	size := uint64(len(buf))
	if base > math.MaxUint64-(size-1) {
		return nil, fmt.Errorf("%w: %#x + %d exceeds 2^64", ErrVA, base, size)
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	if err := t.checkPD(pd); err != nil {
		return nil, err
	}
	if t.regions >= t.maxRegions {
		return nil, fmt.Errorf("%w: the limit is %d (Config.MaxRegions)", ErrRegionLimit, t.maxRegions)
	}
	if size > t.maxBytes-t.bytes {
		return nil, fmt.Errorf("%w: %d are, and the limit is %d (Config.MaxBytes)", ErrByteLimit, t.bytes, t.maxBytes)
	}
	index, err := t.draw()
	if err != nil {
		return nil, err
	}
	r := &Region{
		table:  t,
		index:  index,
		pd:     pd,
		stream: cfg.Stream,
		zero:   cfg.ZeroBased,
		shared: cfg.Shared,
		remote: cfg.Access.Remote(),
	}
	r.current.Store(&registration{
		stag:    makeSTag(index, cfg.Key),
		access:  cfg.Access,
		pd:      pd,
		stream:  cfg.Stream,
		base:    base,
		buf:     buf,
		drained: make(chan struct{}),
	})
	t.dir.insert(r)
	t.regions++
	t.bytes += size
	pd.regions++
	return r, nil
}

// Deallocate ends a region whatever its state (Verbs §7.9). It returns when no
// octet can move through the STag any more, in either direction; the caller
// must not hold the region. Accesses in process fail with a protection error
// from their next segment on.
//
// A second Deallocate of a region fails with ErrRegion, but not before the
// first has done its work.
func (t *Table) Deallocate(r *Region) error {
	if r == nil || r.table != t {
		return fmt.Errorf("memory: deallocate: %w: not of this RNIC", ErrRegion)
	}
	t.mu.Lock()
	g := r.current.Load()
	if r.gone {
		t.mu.Unlock()
		<-g.drained
		return fmt.Errorf("memory: deallocate STag %v: %w: already deallocated", g.stag, ErrRegion)
	}
	r.gone = true
	t.dir.remove(r)
	t.retire(r.index)
	t.mu.Unlock()

	g.revoke()

	t.mu.Lock()
	t.regions--
	t.bytes -= uint64(len(g.buf))
	r.pd.regions--
	t.mu.Unlock()
	return nil
}

// Invalidate takes the region that stag names from Valid to Invalid
// (Verbs §7.8). A region already Invalid stays so, whatever the key. It returns
// when no octet can move through the STag any more; the caller must not hold
// the region, on any of its Holders.
//
// stream and pd are those of the stream that asks. remote tells that its peer
// asked (Send with Invalidate): that needs a remote right on the region.
//
// A fault means that nothing changed: FaultSTag, the STag is unknown or has
// another key; FaultAssociation, it is of another domain or stream, or Shared
// and remote asked; FaultSTag, it is Shared and remote did not ask (Verbs
// §9.5.2); FaultAccess, it lacks the right.
func (t *Table) Invalidate(stag uint32, pd *PD, stream Stream, remote bool) ddp.Fault {
	r := t.dir.lookup(STag(stag).Index())
	if r == nil {
		return ddp.FaultSTag
	}
	g := r.current.Load()
	switch {
	case g.stag != STag(stag) && !g.revoked():
		return ddp.FaultSTag
	case r.pd != pd, r.stream != 0 && r.stream != stream:
		return ddp.FaultAssociation
	case r.shared && remote:
		return ddp.FaultAssociation
	case r.shared:
		return ddp.FaultSTag
	case remote && !r.remote:
		// Verbs §7.4.2: local rights alone give a peer no power over the STag.
		return ddp.FaultAccess
	}
	g.revoke()
	return ddp.NoFault
}

// STag is the name of the region: its index and the key last given.
func (r *Region) STag() STag { return r.current.Load().stag }

// Valid reports whether the STag gives access now.
func (r *Region) Valid() bool { return !r.current.Load().revoked() }

// Base is the tagged offset of the first octet.
func (r *Region) Base() uint64 { return r.current.Load().base }

// ZeroBased reports whether tagged offsets count from 0 rather than from VA.
func (r *Region) ZeroBased() bool { return r.zero }

// Len is the number of octets.
func (r *Region) Len() uint64 { return uint64(len(r.current.Load().buf)) }

// PD is the protection domain.
func (r *Region) PD() *PD { return r.pd }

// Stream is the only stream that may use the region; 0 means all of its domain.
func (r *Region) Stream() Stream { return r.stream }

// Shared reports whether the region cannot be invalidated.
func (r *Region) Shared() bool { return r.shared }

// Access is the set of rights.
func (r *Region) Access() Access { return r.current.Load().access }

// Buf is the memory registered.
func (r *Region) Buf() []byte { return r.current.Load().buf }
