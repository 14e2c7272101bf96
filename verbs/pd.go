// This file is protection domains (Verbs §5.2).

package verbs

import (
	"sync/atomic"

	"github.com/weft-rdma/weft/memory"
)

// A PD is a protection domain (Verbs §5.2): queue pairs use the memory regions
// of their own domain only.
type PD struct {
	rnic *RNIC
	mem  *memory.PD
	num  uint64
	qps  int // RNIC.mu, like srqs
	srqs int

	deallocated atomic.Bool // changes under RNIC.mu
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
// queue pair, shared receive queue, memory region or window belongs to it
// (Verbs §9.2.2.2).
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
	pd.deallocated.Store(true)
	return nil
}

// check returns the failure of a verb that would use the protection domain, or nil. Only under
// RNIC.mu is that so afterwards, too.
func (pd *PD) check(verb string) error {
	if err := pd.rnic.alive(verb); err != nil {
		return err
	}
	if pd.deallocated.Load() {
		return fail(verb, ErrPD, "it has been deallocated")
	}
	return nil
}
