package verbs

import (
	"errors"
	"math"

	"github.com/weft-rdma/weft/memory"
)

// Access rights of memory regions (Verbs §7.4), see [memory.Access].
const (
	LocalRead    = memory.LocalRead
	LocalWrite   = memory.LocalWrite
	RemoteRead   = memory.RemoteRead
	RemoteWrite  = memory.RemoteWrite
	RemoteAtomic = memory.RemoteAtomic
)

// A PD is a protection domain (Verbs §5.2): queue pairs use the memory regions
// of their own domain only.
type PD struct {
	rnic *RNIC
	mem  *memory.PD
	num  uint64
	qps  int // RNIC.mu, like srqs
	srqs int
}

// ID is the PD ID: a number that no other protection domain of the RNIC has.
func (pd *PD) ID() uint64 { return pd.num }

// RNIC returns what the protection domain belongs to.
func (pd *PD) RNIC() *RNIC { return pd.rnic }

// AllocPD allocates a protection domain (Verbs §9.2.2.1).
func (r *RNIC) AllocPD() (*PD, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.alive("allocate PD"); err != nil {
		return nil, err
	}
	if len(r.pds) >= r.limits.PDs {
		return nil, r.limited("allocate PD", ErrResources, "PDs", "the limit is %d protection domains", r.limits.PDs)
	}
	r.pdn++
	pd := &PD{rnic: r, mem: r.table.AllocPD(), num: r.pdn}
	r.pds[pd] = struct{}{}
	return pd, nil
}

// Dealloc deallocates the protection domain. It fails with ErrPDInUse while a
// queue pair, shared receive queue or memory region belongs to it (Verbs §9.2.2.2).
func (pd *PD) Dealloc() error {
	r := pd.rnic
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := pd.check("deallocate PD"); err != nil {
		return err
	}
	if pd.qps > 0 || pd.srqs > 0 {
		return fail("deallocate PD", ErrPDInUse, "by %d queue pairs and %d shared receive queues: destroy them first", pd.qps, pd.srqs)
	}
	if err := r.table.FreePD(pd.mem); err != nil {
		return fail("deallocate PD", ErrPDInUse, "%v", err)
	}
	delete(r.pds, pd)
	return nil
}

// check needs RNIC.mu.
func (pd *PD) check(verb string) error {
	if err := pd.rnic.alive(verb); err != nil {
		return err
	}
	if _, ok := pd.rnic.pds[pd]; !ok {
		return fail(verb, ErrPD, "it has been deallocated")
	}
	return nil
}

// An MRConfig describes a memory region to be registered.
type MRConfig struct {
	Buf    []byte        // stays the caller's, who keeps it mapped until Deallocate has returned
	Access memory.Access // see [memory.Access.Valid] for what goes together
	Key    uint8         // lowest octet of the STag, the consumer's to choose
	VA     uint64        // tagged offset of the first octet; any number, e.g. an address
	// ZeroBased makes tagged offsets count from 0, whatever VA says.
	ZeroBased bool
	// QP, if not nil, is the only queue pair that may use the STag (RFC 5041
	// §8.2: stream association). It has to be of the same protection domain.
	QP *QP
}

// An MR is a memory region: []byte that work requests and, as far as its rights
// go, peers may use by STag (Verbs §7.3).
type MR struct {
	pd     *PD
	region *memory.Region
}

// Register registers buf with tagged offsets that count from 0; see RegisterMR.
func (pd *PD) Register(buf []byte, access memory.Access) (*MR, error) {
	return pd.RegisterMR(MRConfig{Buf: buf, Access: access})
}

// RegisterMR registers a memory region (RI-Register Non-Shared Memory Region,
// Verbs §9.2.6.2). The results besides success are ErrRNIC, ErrPD, ErrAccess,
// ErrLength, ErrVA and ErrResources.
func (pd *PD) RegisterMR(cfg MRConfig) (*MR, error) {
	const verb = "register memory region"
	r := pd.rnic
	r.mu.Lock()
	err := pd.check(verb)
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var stream memory.Stream
	if cfg.QP != nil {
		cfg.QP.mu.Lock()
		dead := cfg.QP.dead
		cfg.QP.mu.Unlock()
		switch {
		case dead:
			return nil, fail(verb, ErrQP, "it has been destroyed")
		case cfg.QP.pd != pd:
			return nil, fail(verb, ErrQP, "it belongs to another protection domain")
		}
		stream = memory.Stream(cfg.QP.num)
	}
	region, err := r.table.Register(pd.mem, cfg.Buf, memory.RegionConfig{
		Access: cfg.Access, Key: cfg.Key, VA: cfg.VA, ZeroBased: cfg.ZeroBased, Stream: stream,
	})
	switch {
	case errors.Is(err, memory.ErrRegionLimit):
		return nil, fail(verb, ErrResources, "the limit is %d regions (Limits.Regions)", r.limits.Regions)
	case errors.Is(err, memory.ErrByteLimit):
		return nil, fail(verb, ErrResources, "the limit is %d octets in all regions (Limits.RegionsOctets)", r.limits.RegionsOctets)
	case err != nil:
		return nil, fail(verb, resultOf(err), "%v", err)
	}
	return &MR{pd: pd, region: region}, nil
}

// resultOf is the verb's result for an error of package memory.
func resultOf(err error) error {
	for _, m := range [...]struct{ is, result error }{
		{memory.ErrAccess, ErrAccess}, {memory.ErrLength, ErrLength}, {memory.ErrVA, ErrVA},
		{memory.ErrPD, ErrPD}, {memory.ErrClosed, ErrRNIC}, {memory.ErrRegion, ErrSTag},
	} {
		if errors.Is(err, m.is) {
			return m.result
		}
	}
	return ErrResources
}

// STag names the region to peers; Base is the tagged offset of its first octet
// and Len their number.
func (mr *MR) STag() memory.STag { return mr.region.STag() }

// Base returns the tagged offset of the first octet.
func (mr *MR) Base() uint64 { return mr.region.Base() }

// Len returns the number of octets.
func (mr *MR) Len() uint64 { return mr.region.Len() }

// Valid reports whether the STag gives access now: it has not been invalidated.
func (mr *MR) Valid() bool { return mr.region.Valid() }

// PD returns the region's protection domain.
func (mr *MR) PD() *PD { return mr.pd }

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

// Remote names the octets from off on for a peer that is told of them.
func (mr *MR) Remote(off int) Remote {
	return Remote{STag: mr.STag(), TO: mr.Base() + uint64(off)}
}

// Deallocate ends the region (Deallocate STag, Verbs §9.2.6.4). When it returns
// no octet can move through the STag any more, in either direction; messages
// that were using it fail with a protection error. It never waits for a peer.
func (mr *MR) Deallocate() error {
	if err := mr.pd.rnic.table.Deallocate(mr.region); err != nil {
		return fail("deallocate STag", ErrSTag, "%v", err)
	}
	return nil
}
