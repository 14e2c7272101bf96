package main

/*
#include "engine.h"
*/
import "C"

import (
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// This file is null regions: what is sent from one is zeroes, and what is received or
// read into one is lost. A null region is two of verbs, of which the program knows one
// key. An element that names it, at whatever address, gets the other key where something
// is put into it.

// nullLength is that of a null region's memory: the longest message fits.
const nullLength = 1 << 32

// scrapLength is how much of what is lost is kept in memory.
const scrapLength = 16 << 20

// nulls are the null regions: the key for what is put into one, by the key of it. There
// are none as long as any is not set.
var nulls struct {
	any  atomic.Bool
	keys sync.Map // memory.STag to memory.STag
}

// nullMemory makes the memory of all null regions, once.
var nullMemory = sync.OnceValues(func() (m [2][]byte, err error) {
	zeroes, err := unix.MmapPtr(-1, 0, nil, nullLength, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return m, err
	}
	scrap, err := mapScrap()
	if err != nil {
		_ = unix.MunmapPtr(zeroes, nullLength)
		return m, err
	}
	return [2][]byte{unsafe.Slice((*byte)(zeroes), nullLength), unsafe.Slice((*byte)(scrap), nullLength)}, nil
})

// mapScrap maps a little memory again and again.
func mapScrap() (unsafe.Pointer, error) {
	fd, err := unix.MemfdCreate("weft-null", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, scrapLength); err != nil {
		return nil, err
	}
	all, err := unix.MmapPtr(-1, 0, nil, nullLength, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	for at := 0; at < nullLength; at += scrapLength {
		if _, err := unix.MmapPtr(fd, 0, unsafe.Add(all, at), scrapLength, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
			_ = unix.MunmapPtr(all, nullLength)
			return nil, err
		}
	}
	return all, nil
}

func registerNull(a *C.struct_weft_register) syscall.Errno {
	d := domains.get(uint32(a.pd))
	if d == nil {
		return syscall.EINVAL
	}
	m, err := nullMemory()
	if err != nil {
		return errnoOf(err)
	}
	from, err := d.pd.RegisterMR(verbs.MRConfig{Buf: m[0], Access: verbs.LocalRead})
	if err != nil {
		return errnoOf(err)
	}
	to, err := d.pd.RegisterMR(verbs.MRConfig{Buf: m[1], Access: verbs.LocalRead | verbs.LocalWrite})
	if err != nil {
		_ = from.Deallocate() // nobody knows of it
		return errnoOf(err)
	}
	nulls.keys.Store(from.STag(), to.STag())
	nulls.any.Store(true)
	a.handle, a.key = C.uint32_t(regions.add(&region{mr: from, pd: d, scrap: to})), C.uint32_t(from.STag())
	return 0
}

// freeNull is for a null region that is gone.
func freeNull(r *region) {
	if r.scrap == nil {
		return
	}
	nulls.keys.Delete(r.mr.STag())
	_ = r.scrap.Deallocate() // it has no windows
}

// throughNull has the elements that name a null region name its memory. sink is whether
// something is put there.
func throughNull(sgl []verbs.SGE, sink bool) []verbs.SGE {
	if !nulls.any.Load() {
		return sgl
	}
	for i := range sgl {
		e := &sgl[i]
		scrap, ok := nulls.keys.Load(e.STag)
		if !ok {
			continue
		}
		if e.TO = 0; sink {
			e.STag = scrap.(memory.STag)
		}
	}
	return sgl
}
