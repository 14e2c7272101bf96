// This file is memory regions: registration, queries and deallocation (Verbs §7.3,
// §9.2.6).

package verbs

import (
	"errors"
	"math"
	"sync/atomic"

	"github.com/weft-rdma/weft/memory"
)

// Access rights of memory regions and windows (Verbs §7.4), see [memory.Access].
const (
	LocalRead    = memory.LocalRead
	LocalWrite   = memory.LocalWrite
	RemoteRead   = memory.RemoteRead
	RemoteWrite  = memory.RemoteWrite
	RemoteAtomic = memory.RemoteAtomic
	BindWindow   = memory.BindWindow
)

// The Remote Access Flag of a region (Verbs §7.3.2.1): whether it may have remote
// rights, now or when it is fast-registered.
const (
	RemoteAsAccess  = memory.RemoteAsAccess  // allowed if Access has a remote right
	RemoteAllowed   = memory.RemoteAllowed   // remote rights may be had later, too
	RemoteForbidden = memory.RemoteForbidden // no remote right, now or later
)

// A BufferList is a Physical Buffer List (Verbs §7.6.2): memory in several []byte of
// one size, with a first byte offset. The mode that the RNIC was opened in says
// whether it is a Page List or a Block List; see [memory.BufferList].
type BufferList = memory.BufferList

// An MRConfig describes what is registered, and how.
type MRConfig struct {
	// Buf or List is the memory. The caller keeps it mapped until the registration has
	// ended: a stream that finds it unmapped, or without the right, ends with an access
	// violation. See Config.ProbePages. A Buf may have any address and length; the List
	// itself is copied.
	Buf  []byte
	List *BufferList

	Access memory.Access // see [memory.Access.Valid] for what goes together
	Key    uint8         // lowest octet of the STag, the consumer's to choose
	// VA is the tagged offset of the first octet: any number, e.g. an address. Of
	// a List, VA modulo its Size has to be its FBO.
	VA uint64
	// ZeroBased makes tagged offsets count from 0, whatever VA says. Windows
	// cannot be bound to such a region.
	ZeroBased bool

	RemoteAccess memory.RemoteAccess // the Remote Access Flag

	// QP, if not nil, is the only queue pair that may use the STag (RFC 5041
	// §8.2: stream association). It has to be of the same protection domain.
	QP *QP
}

// config is cfg for a region of pd, as package memory has it.
func (cfg *MRConfig) config(verb string, pd *PD) (memory.RegionConfig, error) {
	c := memory.RegionConfig{
		List: cfg.List, Access: cfg.Access, Key: cfg.Key, VA: cfg.VA, ZeroBased: cfg.ZeroBased, RemoteAccess: cfg.RemoteAccess,
	}
	if cfg.QP == nil {
		return c, nil
	}
	cfg.QP.mu.Lock()
	dead := cfg.QP.dead
	cfg.QP.mu.Unlock()
	switch {
	case dead:
		return c, cfg.QP.rnic.gone(verb, ErrQP)
	case cfg.QP.pd != pd:
		return c, fail(verb, ErrQP, "it belongs to another protection domain")
	}
	c.Stream = memory.Stream(cfg.QP.num)
	return c, nil
}

// An MR is a memory region (Verbs §7.3): memory that work requests and, as far as its
// rights go, peers may use by STag. It is Valid while it has memory: from RegisterMR
// or an OpFastRegister on until it is invalidated. It exists until Deallocate.
//
// Methods may be called by any goroutine.
type MR struct {
	rnic   *RNIC
	pd     atomic.Pointer[PD]
	region *memory.Region
}

// init makes mr the handle of a region of pd.
func (mr *MR) init(pd *PD, region *memory.Region) *MR {
	mr.rnic, mr.region = pd.rnic, region
	mr.pd.Store(pd)
	return mr
}

// Register registers buf with tagged offsets that count from 0; see RegisterMR.
func (pd *PD) Register(buf []byte, access memory.Access) (*MR, error) {
	return pd.RegisterMR(MRConfig{Buf: buf, Access: access})
}

// RegisterMR registers a memory region (RI-Register Non-Shared Memory Region,
// Verbs §9.2.6.2). The results besides success are ErrRNIC, ErrPD, ErrAccess,
// ErrLength, ErrVA, ErrFBO, ErrBufferSize, ErrBufferEntry, ErrResources, and ErrQP
// for cfg.QP.
func (pd *PD) RegisterMR(cfg MRConfig) (*MR, error) {
	const verb = "register memory region"
	r := pd.rnic
	if err := pd.check(verb); err != nil {
		return nil, err
	}
	c, err := cfg.config(verb, pd)
	if err != nil {
		return nil, err
	}
	both := new(struct {
		region memory.Region // in front, for its lines of the cache
		mr     MR
	})
	if err := r.table.RegisterAs(&both.region, pd.mem, cfg.Buf, c); err != nil {
		return nil, r.memoryError(verb, err)
	}
	return both.mr.init(pd, &both.region), nil
}

// AllocMR allocates an STag without memory, Invalid (Allocate Non-Shared Memory
// Region STag, Verbs §9.2.6.1): for OpFastRegister of up to entries buffers, or for
// Reregister. remote is its Remote Access Flag: without, it never gets remote rights.
// MR.Query returns how many entries it has. The results besides success are ErrRNIC,
// ErrPD and ErrResources, which an entries above Limits.ListEntries has, too.
func (pd *PD) AllocMR(entries int, remote bool) (*MR, error) {
	const verb = "allocate STag"
	r := pd.rnic
	if err := pd.check(verb); err != nil {
		return nil, err
	}
	region, err := r.table.AllocRegion(pd.mem, entries, remote)
	if err != nil {
		return nil, r.memoryError(verb, err)
	}
	return new(MR).init(pd, region), nil
}

// memoryError is the verb's failure for an error of package memory.
func (r *RNIC) memoryError(verb string, err error) error {
	l := &r.limits
	switch {
	case errors.Is(err, memory.ErrRegionLimit):
		return r.limited(verb, ErrResources, "Regions", "the limit is %d memory regions", l.Regions)
	case errors.Is(err, memory.ErrWindowLimit):
		return r.limited(verb, ErrResources, "Windows", "the limit is %d memory windows", l.Windows)
	case errors.Is(err, memory.ErrEntryLimit):
		return r.limited(verb, ErrResources, "ListEntries", "the limit is %d entries of a buffer list", l.ListEntries)
	case errors.Is(err, memory.ErrByteLimit):
		return r.limited(verb, ErrResources, "RegionsOctets", "the limit is %d octets in all valid regions", l.RegionsOctets)
	}
	for _, m := range [...]struct{ is, result error }{
		{memory.ErrAccess, ErrAccess}, {memory.ErrLength, ErrLength}, {memory.ErrVA, ErrVA}, {memory.ErrFBO, ErrFBO},
		{memory.ErrBufferSize, ErrBufferSize}, {memory.ErrBufferEntry, ErrBufferEntry}, {memory.ErrPD, ErrPD},
		{memory.ErrRegion, ErrSTag}, {memory.ErrWindow, ErrSTag}, {memory.ErrWindows, ErrMRWindows}, {memory.ErrClosed, ErrRNIC},
	} {
		if errors.Is(err, m.is) {
			return fail(verb, m.result, "%v", err)
		}
	}
	return fail(verb, ErrResources, "%v", err)
}

// STag names the region to peers, with the key last given.
func (mr *MR) STag() memory.STag { return mr.region.STag() }

// Base returns the tagged offset of the first octet.
func (mr *MR) Base() uint64 { return mr.region.Base() }

// Len returns the number of octets.
func (mr *MR) Len() uint64 { return mr.region.Len() }

// Valid reports whether the STag gives access now.
func (mr *MR) Valid() bool { return mr.region.Valid() }

// PD returns the region's protection domain.
func (mr *MR) PD() *PD { return mr.pd.Load() }

// SGE names n octets of the region from off on for a local work request. It
// does not check them: the work request does. An n that no message can have,
// below 0 or above 2^32-1, becomes 2^32-1.
func (mr *MR) SGE(off, n int) SGE {
	length := uint32(math.MaxUint32)
	if n >= 0 && uint64(n) < math.MaxUint32 {
		length = uint32(n)
	}
	return SGE{STag: mr.STag(), TO: mr.Base() + uint64(off), Length: length}
}

// Remote names the octets from off on, to be advertised to a peer.
func (mr *MR) Remote(off int) Remote {
	return Remote{STag: mr.STag(), TO: mr.Base() + uint64(off)}
}

// Deallocate ends the region (Deallocate STag, Verbs §9.2.6.4). When it returns
// no octet can move through the STag any more, in either direction; messages
// that were using it fail with a protection error. It never waits for a peer. The
// results besides success are ErrRNIC, ErrSTag, and ErrMRWindows while memory
// windows are bound to the region.
func (mr *MR) Deallocate() error {
	const verb = "deallocate STag"
	if err := mr.rnic.alive(verb); err != nil {
		return err
	}
	if err := mr.rnic.table.Deallocate(mr.region); err != nil {
		return mr.rnic.memoryError(verb, err)
	}
	return nil
}

// DeallocateSTag deallocates the memory region or window with an STag index; see
// [MR.Deallocate] and [MW.Deallocate].
func (r *RNIC) DeallocateSTag(index uint32) error {
	const verb = "deallocate STag"
	if err := r.alive(verb); err != nil {
		return err
	}
	if err := r.table.DeallocateIndex(index); err != nil {
		return r.memoryError(verb, err)
	}
	return nil
}

// MRAttributes are the attributes of a memory region (Verbs §9.2.6.3).
type MRAttributes struct {
	Index        uint32 // STag index, the upper 24 bits of the STag
	Key          uint8  // STag key, if Valid
	Valid        bool   // STag state
	Shared       bool   // STag type
	RemoteAccess bool   // Remote Access Flag
	PD           *PD
	Entries      int           // of the longest buffer list that it can have
	Access       memory.Access // BindWindow included; if not Valid, what it had last
	Windows      int           // memory windows bound to it
}

// Query returns the attributes of the region (Query Memory Region). The results besides
// success are ErrRNIC and ErrSTag.
func (mr *MR) Query() (MRAttributes, error) { return mr.rnic.QueryMR(mr.region.Index()) }

// QueryMR returns the attributes of the memory region with an STag index. The results besides
// success are ErrRNIC and ErrSTag.
func (r *RNIC) QueryMR(index uint32) (MRAttributes, error) {
	const verb = "query memory region"
	if err := r.alive(verb); err != nil {
		return MRAttributes{}, err
	}
	a, err := r.table.QueryRegion(index)
	if err != nil {
		return MRAttributes{}, r.memoryError(verb, err)
	}
	return MRAttributes{
		Index: a.Index, Key: a.Key, Valid: a.Valid, Shared: a.Shared, RemoteAccess: a.RemoteAccess, PD: r.pdOf(a.PD),
		Entries: a.Entries, Access: a.Access, Windows: a.Windows,
	}, nil
}

// pdOf is the protection domain that package memory knows as mem.
func (r *RNIC) pdOf(mem *memory.PD) *PD {
	r.mu.Lock()
	defer r.mu.Unlock()
	for pd := range r.pds {
		if pd.mem == mem {
			return pd
		}
	}
	return nil
}
