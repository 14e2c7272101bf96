package main

import (
	"sync"
	"sync/atomic"
)

// A table gives handles out for objects. Handles begin at 1 and are used again; a get
// takes no lock.
type table[T any] struct {
	items atomic.Pointer[[]atomic.Pointer[T]]

	mu   sync.Mutex
	free []uint32
}

// get returns the object of a handle, or nil.
func (t *table[T]) get(handle uint32) *T {
	items := t.items.Load()
	if items == nil || int(handle) >= len(*items) {
		return nil
	}
	return (*items)[handle].Load()
}

// grow makes room for twice as many; needs mu.
func (t *table[T]) grow() {
	was := t.items.Load()
	begin := 1 // 0 is none
	var items []atomic.Pointer[T]
	if was == nil {
		items = make([]atomic.Pointer[T], 16)
	} else {
		begin = len(*was)
		items = make([]atomic.Pointer[T], 2*begin)
		for i := range *was {
			items[i].Store((*was)[i].Load())
		}
	}
	for i := len(items) - 1; i >= begin; i-- {
		t.free = append(t.free, uint32(i))
	}
	t.items.Store(&items)
}

// add gives an object a handle.
func (t *table[T]) add(object *T) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) == 0 {
		t.grow()
	}
	handle := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	(*t.items.Load())[handle].Store(object)
	return handle
}

// remove takes the object of a handle out, and returns it or nil.
func (t *table[T]) remove(handle uint32) *T {
	t.mu.Lock()
	defer t.mu.Unlock()
	items := t.items.Load()
	if items == nil || handle == 0 || int(handle) >= len(*items) {
		return nil
	}
	object := (*items)[handle].Swap(nil)
	if object != nil {
		t.free = append(t.free, handle)
	}
	return object
}

// all returns the objects of the table.
func (t *table[T]) all() []*T {
	t.mu.Lock()
	defer t.mu.Unlock()
	var objects []*T
	if items := t.items.Load(); items != nil {
		for i := range *items {
			if object := (*items)[i].Load(); object != nil {
				objects = append(objects, object)
			}
		}
	}
	return objects
}
