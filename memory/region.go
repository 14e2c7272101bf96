// This file is memory regions: registration and its changes (Verbs §7.3).

package memory

import (
	"fmt"
	"math"
)

// A Stream identifies a stream within its RNIC, for STags that only one stream
// may use (RFC 5042 §2.2.5). 0 is none.
type Stream uint64

// RemoteAccess is the Remote Access Flag of a region (Verbs §7.3.2.1): whether it may
// have remote rights, now or when it is fast-registered.
type RemoteAccess uint8

const (
	RemoteAsAccess  RemoteAccess = iota // allowed if Access has a remote right
	RemoteAllowed                       // remote rights may be had later, too
	RemoteForbidden                     // no remote right, now or later
)

// RegionConfig describes a region.
type RegionConfig struct {
	// List is registered in place of a single buffer.
	List *BufferList
	// Access holds the rights; see Access.Valid for the valid sets.
	Access Access
	// RemoteAccess is the Remote Access Flag.
	RemoteAccess RemoteAccess
	// Key is the lowest octet of the STag.
	Key uint8
	// VA is the tagged offset of the first octet, unless ZeroBased
	// (Verbs §7.3.1.1). VA + length is at most 2^64. With a List, VA modulo its Size
	// has to be its FBO.
	VA uint64
	// ZeroBased makes the tagged offset of the first octet 0.
	ZeroBased bool
	// Stream, if not 0, is the only stream of the domain that may use the STag.
	Stream Stream
	// Shared is for an STag that several streams use. It can't be invalidated, only
	// deallocated, so that no peer can take it from the others (RFC 5040 §8.1.1
	// rule 7), as a Shared Memory Region of Verbs §7.2.2.
	Shared bool
}

// A Region is registered memory, a Memory Region of Verbs §7.3. It is Valid from
// Register on, or from FastRegister if AllocRegion made it, until it is invalidated; it
// exists until it is deallocated. Its methods may be called by any goroutine.
type Region struct {
	// first is the registration of Register: in one piece with the region, as programs may
	// register the buffer of each request. It is in front, for its lines of the cache.
	first registration
	object

	// Table.mu:
	remote  bool // the Remote Access Flag
	shared  bool // never reset
	entries int  // the longest list that FastRegister may give it
	windows int  // bound to it
}

// PD returns the protection domain.
func (r *Region) PD() *PD { return r.current.Load().pd }

// Buf returns the memory registered if it is in one piece, else nil.
func (r *Region) Buf() []byte { return r.current.Load().buf }

// Shared reports whether the region is a Shared Memory Region.
func (r *Region) Shared() bool {
	r.table.mu.Lock()
	defer r.table.mu.Unlock()
	return r.shared
}

// Register gives buf an STag with the rights of cfg, usable by the streams of pd
// (RI-Register Non-Shared Memory Region, Verbs §7.3.2.2). If cfg has a List, buf is
// nil. The caller still owns the memory, and has to keep it mapped until Deallocate has
// returned. Memory may be registered more than once (Verbs §7.4.3).
//
// Only with Config.ProbePages are this program's rights to the pages checked here.
// Without it, an access that the system refuses fails with ddp.FaultMemory.
//
// It fails with ErrAccess, ErrLength, ErrVA, ErrFBO, ErrBufferSize, ErrBufferEntry,
// ErrPD, ErrEntryLimit, ErrRegionLimit, ErrByteLimit or ErrClosed; a failure changes
// nothing.
func (t *Table) Register(pd *PD, buf []byte, cfg RegionConfig) (*Region, error) {
	r := new(Region)
	if err := t.RegisterAs(r, pd, buf, cfg); err != nil {
		return nil, err
	}
	return r, nil
}

// RegisterAs is Register for a caller that has the memory of the Region, which is a new one.
// After a failure it is to be dropped.
func (t *Table) RegisterAs(r *Region, pd *PD, buf []byte, cfg RegionConfig) error {
	err := t.describe(&r.first, buf, &cfg)
	if err == nil {
		err = t.register(r, pd, &cfg)
	}
	if err != nil {
		return fmt.Errorf("memory: register: %w", err)
	}
	return nil
}

// describe checks what is to be registered, as far as that does not depend on the state
// of the Table, and makes g its registration, without a domain.
func (t *Table) describe(g *registration, buf []byte, cfg *RegionConfig) error {
	if err := checkAccess(cfg.Access, cfg.RemoteAccess != RemoteForbidden); err != nil {
		return err
	}
	e := extentOf(buf)
	if l := cfg.List; l != nil {
		switch {
		case buf != nil:
			return fmt.Errorf("%w: both a buffer and a list", ErrBufferEntry)
		case len(l.Buffers) > t.cfg.MaxEntries:
			return fmt.Errorf("%w: %d entries, the limit is %d (Config.MaxEntries)", ErrEntryLimit, len(l.Buffers), t.cfg.MaxEntries)
		}
		if err := l.check(t.cfg.Block); err != nil {
			return err
		}
		e = l.extent()
	} else if len(buf) == 0 {
		return fmt.Errorf("%w: expected at least 1 octet", ErrLength)
	}
	if err := g.address(e, cfg); err != nil {
		return err
	}
	return t.probe(&g.extent, g.access)
}

// address makes g, a new one, the registration of memory with its tagged offsets.
func (g *registration) address(e extent, cfg *RegionConfig) error {
	g.stag, g.access, g.zero, g.stream = makeSTag(0, cfg.Key), cfg.Access, cfg.ZeroBased, cfg.Stream
	g.extent = e
	if cfg.ZeroBased {
		return nil
	}
	switch g.base = cfg.VA; {
	case g.base%e.size != e.fbo:
		return fmt.Errorf("%w: %#x modulo the buffer size %d is not the FBO %d", ErrVA, cfg.VA, e.size, e.fbo)
	case g.base > math.MaxUint64-(e.length-1):
		return fmt.Errorf("%w, %w: %#x + %d exceeds 2^64", ErrVA, ErrWrap, cfg.VA, e.length)
	}
	return nil
}

// checkAccess checks the rights of a region (Verbs figure 18).
func checkAccess(a Access, remote bool) error {
	switch {
	case !a.Valid():
		return fmt.Errorf("%w: %v: expected at least one local right, and with each remote right the local ones that it requires", ErrAccess, a)
	case a.Remote() && !remote:
		return fmt.Errorf("%w: %v: the Remote Access Flag forbids remote rights", ErrAccess, a)
	}
	return nil
}

// entries returns the number of entries of the list; a plain buffer is one.
func (c *RegionConfig) entries() int {
	if c.List == nil {
		return 1
	}
	return len(c.List.Buffers)
}

func (c *RegionConfig) remote() bool {
	return c.RemoteAccess == RemoteAllowed || c.RemoteAccess == RemoteAsAccess && c.Access.Remote()
}

// register adds r with its first registration.
func (t *Table) register(r *Region, pd *PD, cfg *RegionConfig) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkRoom(pd, &r.first); err != nil {
		return err
	}
	r.remote, r.shared, r.entries = cfg.remote(), cfg.Shared, cfg.entries()
	return t.addRegion(r, pd, &r.first)
}

// checkRoom returns an error if no other region of pd may have the registration g. It
// needs mu.
func (t *Table) checkRoom(pd *PD, g *registration) error {
	switch err := t.checkPD(pd); {
	case t.closed:
		return ErrClosed
	case err != nil:
		return err
	case t.usage.Regions >= t.cfg.MaxRegions:
		return fmt.Errorf("%w: the limit is %d (Config.MaxRegions)", ErrRegionLimit, t.cfg.MaxRegions)
	}
	return t.checkBytes(g.length)
}

// checkBytes returns an error if not n more octets may be Valid. It needs mu.
func (t *Table) checkBytes(n uint64) error {
	if n > t.cfg.MaxBytes-t.usage.Bytes {
		return fmt.Errorf("%w: %d and %d more, the limit is %d (Config.MaxBytes)", ErrByteLimit, t.usage.Bytes, n, t.cfg.MaxBytes)
	}
	return nil
}

// addRegion adds a region, Valid or not, after checkRoom. It needs mu.
func (t *Table) addRegion(r *Region, pd *PD, g *registration) error {
	g.pd = pd
	r.region = r
	if err := t.add(&r.object, g); err != nil {
		return err
	}
	t.usage.Regions++
	pd.regions++
	if !g.revoked() {
		t.usage.Bytes += g.length
	}
	return nil
}

// AllocRegion makes an Invalid region without memory, for FastRegister or Reregister
// (Allocate Non-Shared Memory Region STag, Verbs §7.3.2.1). FastRegister may give it
// lists of up to entries buffers, at least 1; remote is its Remote Access Flag.
//
// It fails with ErrPD, ErrEntryLimit, ErrRegionLimit or ErrClosed; a failure changes
// nothing.
func (t *Table) AllocRegion(pd *PD, entries int, remote bool) (*Region, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &Region{remote: remote, entries: max(entries, 1)}
	r.first.mark() // never valid
	err := t.checkRoom(pd, &r.first)
	if err == nil && entries > t.cfg.MaxEntries {
		err = fmt.Errorf("%w: %d, the limit is %d (Config.MaxEntries)", ErrEntryLimit, entries, t.cfg.MaxEntries)
	}
	if err == nil {
		err = t.addRegion(r, pd, &r.first)
	}
	if err != nil {
		return nil, fmt.Errorf("memory: allocate STag: %w", err)
	}
	return r, nil
}

// RegionAttributes is the result of Query Memory Region (Verbs §9.2.6.3).
type RegionAttributes struct {
	Index        uint32 // STag index
	Key          uint8  // STag key, if Valid
	Valid        bool   // state
	Shared       bool   // type
	RemoteAccess bool   // Remote Access Flag
	PD           *PD
	Entries      int    // of the longest list that FastRegister may give it
	Access       Access // if not Valid, of the last registration
	Windows      int    // bound to it
}

// QueryRegion returns the attributes of the region with an STag index. It fails with
// ErrRegion if there is none.
func (t *Table) QueryRegion(index uint32) (RegionAttributes, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.dir.lookup(index)
	if o == nil || o.region == nil {
		return RegionAttributes{}, fmt.Errorf("memory: query region: %w: index %#x", ErrRegion, index)
	}
	r, g := o.region, o.current.Load()
	a := RegionAttributes{
		Index: index, Valid: !g.revoked(), Shared: r.shared, RemoteAccess: r.remote, PD: g.pd,
		Entries: r.entries, Access: g.access, Windows: r.windows,
	}
	if a.Valid {
		a.Key = g.stag.Key()
	}
	return a, nil
}
