// The directory finds a region or window by its STag index. Lookups take no lock, because
// each inbound message begins with one; changes are made under Table.mu.

package memory

import (
	"math/bits"
	"sync/atomic"
)

// A directory is an open-addressing hash table with linear probing. When it fills up it
// is replaced as a whole. A reader of the old table finds everything that was there when
// it began; objects that were removed since are revoked.
type directory struct {
	slots atomic.Pointer[slots]
	live  int // Table.mu
	used  int // slots with objects or tombstones; Table.mu
}

type slots struct {
	shift uint // 32 - log2(len(at))
	at    []atomic.Pointer[object]
}

// tombstone marks a slot whose object was removed; its index 0 matches no lookup.
var tombstone object

const minSlots = 16

func makeSlots(n int) *slots {
	n = max(n, minSlots)
	log := bits.Len(uint(n - 1))
	return &slots{shift: uint(32 - log), at: make([]atomic.Pointer[object], 1<<log)}
}

// first returns the slot where probing for index begins (Fibonacci hashing).
func (s *slots) first(index uint32) int { return int(index * 0x9e3779b9 >> s.shift) }

func (s *slots) next(i int) int { return (i + 1) & (len(s.at) - 1) }

// free returns the first slot on the way of an index that has no object; there is one. used
// reports that it has a tombstone.
func (s *slots) free(index uint32) (i int, used bool) {
	for i = s.first(index); ; i = s.next(i) {
		switch s.at[i].Load() {
		case nil:
			return i, false
		case &tombstone:
			return i, true
		}
	}
}

// lookup returns the object with an index, or nil. Any goroutine may call it.
func (d *directory) lookup(index uint32) *object {
	s := d.slots.Load()
	if s == nil || index == 0 {
		return nil
	}
	for i := s.first(index); ; i = s.next(i) {
		o := s.at[i].Load()
		if o == nil || o.index == index {
			return o
		}
	}
}

// insert adds an object whose index is not in the directory.
func (d *directory) insert(o *object) {
	s := d.slots.Load()
	// Half of the slots stay empty, so that probing is short.
	if s == nil || (d.used+1)*2 > len(s.at) {
		s = d.rebuild()
	}
	i, used := s.free(o.index)
	if s.at[i].Store(o); !used {
		d.used++
	}
	d.live++
}

// remove removes an object that is in the directory.
func (d *directory) remove(o *object) {
	s := d.slots.Load()
	i := s.first(o.index)
	for s.at[i].Load() != o {
		i = s.next(i)
	}
	s.at[i].Store(&tombstone)
	d.live--
	// No way leads through a slot in front of an empty one: it needs no tombstone.
	for s.at[s.next(i)].Load() == nil && s.at[i].Load() == &tombstone {
		s.at[i].Store(nil)
		d.used--
		i = (i - 1) & (len(s.at) - 1)
	}
}

// rebuild replaces the slots by four times as many as there are objects,
// without tombstones.
func (d *directory) rebuild() *slots {
	s := makeSlots((d.live + 1) * 4)
	for o := range d.all() {
		i, _ := s.free(o.index)
		s.at[i].Store(o)
	}
	d.used = d.live
	d.slots.Store(s)
	return s
}

// all ranges over the objects.
func (d *directory) all() func(yield func(*object) bool) {
	s := d.slots.Load()
	return func(yield func(*object) bool) {
		if s == nil {
			return
		}
		for i := range s.at {
			if o := s.at[i].Load(); o != nil && o != &tombstone && !yield(o) {
				return
			}
		}
	}
}
