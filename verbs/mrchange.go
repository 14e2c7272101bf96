// This file holds the verbs that change a memory region that exists.

package verbs

import (
	"errors"

	"github.com/weft-rdma/weft/memory"
)

// Reregister gives the region other memory, rights and addressing, in the protection
// domain pd (RI-Reregister Non-Shared Memory Region, Verbs §9.2.6.5). It is
// Deallocate followed by RegisterMR, but that the STag index stays. The key becomes
// cfg.Key; a new one keeps out peers that know the old one. When it returns no octet can
// move by the old registration any more.
//
// The results besides success are ErrRNIC, ErrSTag, ErrMRWindows, ErrPD, ErrAccess,
// ErrLength, ErrVA, ErrFBO, ErrBufferSize, ErrBufferEntry, ErrResources, and ErrQP for
// cfg.QP. After the first three, and after ErrSTag because it is Shared, the region is
// what it was. After any other it is deallocated (Verbs §7.3.2.3).
func (mr *MR) Reregister(pd *PD, cfg MRConfig) error {
	const verb = "reregister memory region"
	r := mr.rnic
	if err := r.alive(verb); err != nil {
		return err
	}
	var mem *memory.PD
	if pd != nil {
		mem = pd.mem
	}
	c, wrong := cfg.config(verb, pd)
	if wrong != nil {
		mem = nil // which has the Table do what becomes of the region after an error
	}
	switch err := r.table.Reregister(mr.region, mem, cfg.Buf, c); {
	case err == nil:
		mr.pd.Store(pd)
		return nil
	case wrong != nil && errors.Is(err, memory.ErrPD):
		return wrong
	default:
		return r.memoryError(verb, err)
	}
}

// A SharedConfig describes a memory region over the memory of another.
type SharedConfig struct {
	ExistingKey  uint8 // the existing region's key, to be verified
	Access       memory.Access
	Key          uint8               // the new region's key
	VA           uint64              // as in MRConfig; the FBO is that of the existing region's list
	ZeroBased    bool                // as in MRConfig
	RemoteAccess memory.RemoteAccess // the new region's Remote Access Flag
}

// RegisterShared registers the memory of the region once more, with an STag, rights
// and addressing of its own, in the protection domain pd (Register Shared Memory
// Region, Verbs §9.2.6.6). Both are Shared Memory Regions from then on, for good: they
// cannot be invalidated, fast-registered or reregistered. Nothing else of the existing
// one changes, windows included. Either can be deallocated without the other.
//
// The results besides success are ErrRNIC, ErrSTag if the region is not Valid or has
// another key, ErrPD, ErrAccess, ErrVA and ErrResources.
func (mr *MR) RegisterShared(pd *PD, cfg SharedConfig) (*MR, error) {
	const verb = "register shared memory region"
	r := mr.rnic
	if err := r.alive(verb); err != nil {
		return nil, err
	}
	var mem *memory.PD
	if pd != nil {
		mem = pd.mem
	}
	existing := memory.STag(mr.region.Index()<<8 | uint32(cfg.ExistingKey))
	region, err := r.table.RegisterShared(existing, mem, memory.RegionConfig{
		Access: cfg.Access, Key: cfg.Key, VA: cfg.VA, ZeroBased: cfg.ZeroBased, RemoteAccess: cfg.RemoteAccess,
	})
	if err != nil {
		return nil, r.memoryError(verb, err)
	}
	return new(MR).init(pd, region), nil
}
