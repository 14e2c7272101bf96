package main

/*
#include "engine.h"
#include <infiniband/verbs.h>
*/
import "C"

import (
	"syscall"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// This file is the program's memory: regions and windows. Memory is registered by its
// address, and the tagged offset of an octet is its address, too. Deregistration waits
// for what uses the memory at that moment, as verbs does.

// A region is registered memory.
type region struct {
	mr  *verbs.MR
	pd  *domain
	cfg verbs.MRConfig

	demand bool // paged on demand: it need not be mapped

	scrap *verbs.MR // of a null region
}

const onDemand = C.IBV_ACCESS_ON_DEMAND

// access is what the rights of the verbs are here. Whoever registers memory may read it.
func access(flags uint32) (verbs.MRConfig, syscall.Errno) {
	const known = C.IBV_ACCESS_LOCAL_WRITE | C.IBV_ACCESS_REMOTE_WRITE | C.IBV_ACCESS_REMOTE_READ | C.IBV_ACCESS_REMOTE_ATOMIC |
		C.IBV_ACCESS_MW_BIND | C.IBV_ACCESS_ZERO_BASED | C.IBV_ACCESS_ON_DEMAND | C.IBV_ACCESS_HUGETLB | C.IBV_ACCESS_RELAXED_ORDERING
	if flags&^known != 0 {
		return verbs.MRConfig{}, refuse(syscall.EOPNOTSUPP, "register: access %#x is not supported", flags&^known)
	}
	if flags&onDemand != 0 && !rcPersona {
		return verbs.MRConfig{}, refuse(syscall.EOPNOTSUPP, "register: an RNIC has no on-demand paging; with `weft run --persona rc` there is")
	}
	cfg := verbs.MRConfig{Access: verbs.LocalRead | remoteAccess(flags), ZeroBased: flags&C.IBV_ACCESS_ZERO_BASED != 0}
	if flags&C.IBV_ACCESS_LOCAL_WRITE != 0 {
		cfg.Access |= verbs.LocalWrite
	}
	if flags&C.IBV_ACCESS_MW_BIND != 0 {
		cfg.Access |= verbs.BindWindow
	}
	return cfg, 0
}

// remoteAccess are the rights of a peer.
func remoteAccess(flags uint32) (a memory.Access) {
	for _, right := range [...]struct {
		flag uint32
		is   memory.Access
	}{
		{C.IBV_ACCESS_REMOTE_WRITE, verbs.RemoteWrite}, {C.IBV_ACCESS_REMOTE_READ, verbs.RemoteRead},
		{C.IBV_ACCESS_REMOTE_ATOMIC, verbs.RemoteAtomic},
	} {
		if flags&right.flag != 0 {
			a |= right.is
		}
	}
	return a
}

func register(a *C.struct_weft_register) syscall.Errno {
	d := domains.get(uint32(a.pd))
	if d == nil {
		return syscall.EINVAL
	}
	cfg, errno := access(uint32(a.access))
	if errno != 0 {
		return errno
	}
	if isEverywhere(a) {
		a.addr, a.length, a.offset = firstAddress, everywhere, firstAddress
	}
	ok := false
	if cfg.Buf, ok = octets(uint64(a.addr), uint64(a.length)); !ok {
		return refuse(syscall.EFAULT, "register: there are no %d octets at %#x", a.length, a.addr)
	}
	if a.access&onDemand == 0 && !isThere(cfg.Buf, cfg.Access) {
		return refuse(syscall.EFAULT, "register: of %d octets at %#x some are not mapped, or not with the rights %#x", a.length, a.addr, a.access)
	}
	cfg.VA = uint64(a.offset)
	mr, err := d.pd.RegisterMR(cfg)
	if err != nil {
		return errnoOf(err)
	}
	a.handle, a.key = C.uint32_t(regions.add(&region{mr: mr, pd: d, cfg: cfg, demand: a.access&onDemand != 0})), C.uint32_t(mr.STag())
	return 0
}

// reregister changes the domain, the memory or the rights, and leaves the others.
func reregister(a *C.struct_weft_register) syscall.Errno {
	r := regions.get(uint32(a.handle))
	if r == nil {
		return syscall.EINVAL
	}
	if r.scrap != nil {
		return refuse(syscall.EINVAL, "reregister: it is a null region")
	}
	cfg, pd, demand := r.cfg, r.pd, r.demand
	if a.change&C.IBV_REREG_MR_CHANGE_ACCESS != 0 {
		demand = a.access&onDemand != 0
		rights, errno := access(uint32(a.access))
		if errno != 0 {
			return errno
		}
		cfg.Access, cfg.ZeroBased = rights.Access, rights.ZeroBased
	}
	if a.change&C.IBV_REREG_MR_CHANGE_TRANSLATION != 0 {
		ok := false
		if cfg.Buf, ok = octets(uint64(a.addr), uint64(a.length)); !ok {
			return refuse(syscall.EFAULT, "register again: there are no %d octets at %#x", a.length, a.addr)
		}
		cfg.VA = uint64(a.offset)
	}
	if a.change&C.IBV_REREG_MR_CHANGE_PD != 0 {
		if pd = domains.get(uint32(a.pd)); pd == nil {
			return syscall.EINVAL
		}
	}
	if !cfg.Access.Valid() || len(cfg.Buf) == 0 {
		return syscall.EINVAL // before anything changes
	}
	if a.change&(C.IBV_REREG_MR_CHANGE_TRANSLATION|C.IBV_REREG_MR_CHANGE_ACCESS) != 0 && !demand && !isThere(cfg.Buf, cfg.Access) {
		return refuse(syscall.EFAULT, "register again: of %d octets some are not mapped, or not with the rights that are asked for", len(cfg.Buf))
	}
	cfg.Key = r.mr.STag().Key() // programs expect the key that their peers know to stay
	if err := r.mr.Reregister(pd.pd, cfg); err != nil {
		return errnoOf(err)
	}
	r.cfg, r.pd, r.demand = cfg, pd, demand
	a.key = C.uint32_t(r.mr.STag())
	return 0
}

func deregister(a *C.struct_weft_object) syscall.Errno {
	r := regions.get(uint32(a.handle))
	if r == nil {
		return syscall.EINVAL
	}
	if err := r.mr.Deallocate(); err != nil {
		return errnoOf(err)
	}
	regions.remove(uint32(a.handle))
	freeNull(r)
	return 0
}

// findDomain and findRegion are for programs that import what they have made elsewhere.
func findDomain(a *C.struct_weft_object) syscall.Errno {
	if domains.get(uint32(a.handle)) == nil {
		return syscall.ENOENT
	}
	return 0
}

func findRegion(a *C.struct_weft_register) syscall.Errno {
	r := regions.get(uint32(a.handle))
	if r == nil || r.pd != domains.get(uint32(a.pd)) {
		return syscall.ENOENT
	}
	a.key, a.length = C.uint32_t(r.mr.STag()), C.uint64_t(len(r.cfg.Buf))
	return 0
}

// A window is a memory window.
type window struct {
	mw *verbs.MW
}

func allocWindow(a *C.struct_weft_window) syscall.Errno {
	d := domains.get(uint32(a.pd))
	if d == nil {
		return syscall.EINVAL
	}
	mw, err := d.pd.AllocMW()
	if err != nil {
		return errnoOf(err)
	}
	a.handle, a.key = C.uint32_t(windows.add(&window{mw})), C.uint32_t(mw.STag())
	return 0
}

func freeWindow(a *C.struct_weft_object) syscall.Errno {
	w := windows.get(uint32(a.handle))
	if w == nil {
		return syscall.EINVAL
	}
	if err := w.mw.Deallocate(); err != nil {
		return errnoOf(err)
	}
	windows.remove(uint32(a.handle))
	return 0
}

// binding is what a bind request asks for. No length unbinds, which is an invalidation.
func binding(s *C.struct_weft_send) verbs.Binding {
	return verbs.Binding{
		Window: memory.STag(s.remote_key)&^0xFF | memory.STag(s.immediate)&0xFF, Region: memory.STag(s.region),
		VA: uint64(s.remote), Length: uint64(s.operand), Access: remoteAccess(uint32(s.compare)),
		ZeroBased: s.compare&C.IBV_ACCESS_ZERO_BASED != 0,
	}

}
