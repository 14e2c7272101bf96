package main

import (
	"syscall"
	"testing"
	"unsafe"
)

// A program that leaves out an attribute which comes with a state is told so, and the queue
// pair stays as it was.
func TestStatesComeWithTheirAttributes(t *testing.T) {
	anEngine(t, true)
	q := newBed(t).newQP()
	peer := attributes{dest: 0x123456, local: loopback, peer: loopback}
	for _, c := range []struct {
		state, mask uint64
		fill        func(*attributes)
	}{
		{stateInit, maskInit, nil},
		{stateRTR, maskRTR, func(a *attributes) { *a = peer }},
		{stateRTS, maskRTS, func(a *attributes) { *a = peer }},
	} {
		for bit := uint64(maskState << 1); bit <= c.mask; bit <<= 1 {
			if c.mask&bit == 0 {
				continue
			}
			a := argument(modifyQP)
			want := q.attributes
			assign(&want.qp_state, c.state)
			assign(&a.handle, uint64(q.handle))
			assign(&a.mask, c.mask&^bit)
			a.attributes = unsafe.Pointer(&want)
			if got := modifyQP(a); got != syscall.EINVAL {
				t.Errorf("state %d without attribute %#x: %v, expected EINVAL", c.state, bit, got)
			}
		}
		q.changeTo(t, c.fill, c.state, c.mask)
	}
}
