// The directory finds a region by its STag index. Lookups take no lock, since
// each inbound message begins with one; changes are made under Table.mu.

package memory

import (
	"math/bits"
	"sync/atomic"
)

// A directory is an open-addressing hash table with linear probing. It is
// replaced as a whole when it fills up; a reader of the old one misses nothing
// that was in before it began, and what has gone since is revoked.
type directory struct {
	slots atomic.Pointer[slots]
	live  int // Table.mu
	used  int // slots that are live or tombstones; Table.mu
}

type slots struct {
	shift uint // 32 - log2(len(at))
	at    []atomic.Pointer[Region]
}

// tombstone marks a slot whose region has gone; index 0 matches no lookup.
var tombstone Region

const minSlots = 16

func makeSlots(n int) *slots {
	n = max(n, minSlots)
	log := bits.Len(uint(n - 1))
	return &slots{shift: uint(32 - log), at: make([]atomic.Pointer[Region], 1<<log)}
}

// first is the slot where probing for index begins (Fibonacci hashing).
func (s *slots) first(index uint32) int { return int(index * 0x9e3779b9 >> s.shift) }

func (s *slots) next(i int) int { return (i + 1) & (len(s.at) - 1) }

// place stores r in the first empty slot for it; there is one.
func (s *slots) place(r *Region) {
	i := s.first(r.index)
	for s.at[i].Load() != nil {
		i = s.next(i)
	}
	s.at[i].Store(r)
}

// lookup finds the region of index; nil if there is none. Any goroutine may call it.
func (d *directory) lookup(index uint32) *Region {
	s := d.slots.Load()
	if s == nil || index == 0 {
		return nil
	}
	for i := s.first(index); ; i = s.next(i) {
		r := s.at[i].Load()
		if r == nil || r.index == index {
			return r
		}
	}
}

// insert adds a region whose index is not in yet.
func (d *directory) insert(r *Region) {
	s := d.slots.Load()
	// Half the slots stay empty, so that probing ends soon.
	if s == nil || (d.used+1)*2 > len(s.at) {
		s = d.rebuild()
	}
	s.place(r)
	d.used++
	d.live++
}

// remove takes out a region that is in.
func (d *directory) remove(r *Region) {
	s := d.slots.Load()
	i := s.first(r.index)
	for s.at[i].Load() != r {
		i = s.next(i)
	}
	s.at[i].Store(&tombstone)
	d.live--
}

// rebuild replaces the slots by four times as many as there are regions,
// without tombstones.
func (d *directory) rebuild() *slots {
	s := makeSlots((d.live + 1) * 4)
	for r := range d.all() {
		s.place(r)
	}
	d.used = d.live
	d.slots.Store(s)
	return s
}

// all ranges over the regions.
func (d *directory) all() func(yield func(*Region) bool) {
	s := d.slots.Load()
	return func(yield func(*Region) bool) {
		if s == nil {
			return
		}
		for i := range s.at {
			if r := s.at[i].Load(); r != nil && r != &tombstone && !yield(r) {
				return
			}
		}
	}
}
