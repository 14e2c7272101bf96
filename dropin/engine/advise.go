package main

/*
#include "engine.h"
*/
import "C"

import (
	"syscall"
	"unsafe"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// This file is memory that is paged on demand. Registration pins nothing here, so all
// memory is; an access to memory that is not there is an error of the request.

// everywhere is the first address and the length of a region of all memory there may be.
const (
	firstAddress = 1 << 12
	everywhere   = 1<<48 - firstAddress
)

// isEverywhere reports whether a registration is of all memory there may be (implicit
// on-demand paging).
func isEverywhere(a *C.struct_weft_register) bool {
	return a.access&onDemand != 0 && a.addr == 0 && uint64(a.length) == 1<<64-1
}

// advise checks that a program may use what it gives advice about.
func advise(a *C.struct_weft_advise) syscall.Errno {
	d := domains.get(uint32(a.pd))
	if d == nil {
		return syscall.EINVAL
	}
	for _, e := range elements(unsafe.Pointer(a.list), int(a.n)) {
		if errno := d.holds(e); errno != 0 {
			return errno
		}
	}
	return 0
}

// holds reports whether an element is in a region of the domain.
func (d *domain) holds(e verbs.SGE) syscall.Errno {
	for _, r := range regions.all() {
		if r.mr.STag() != e.STag || r.pd != d {
			continue
		}
		if e.TO < r.cfg.VA || e.TO-r.cfg.VA+uint64(e.Length) > uint64(len(r.cfg.Buf)) {
			return syscall.EFAULT
		}
		return 0
	}
	return refuse(syscall.ENOENT, "advise: key %v is of no region of this domain", memory.STag(e.STag))
}
