package main

import (
	"syscall"
	"testing"
	"unsafe"
)

// An attribute that does not belong to a transition is refused, and nothing is changed.
func TestAttributesOfOtherTransitionsAreRefused(t *testing.T) {
	anEngine(t, true)
	q := newBed(t).newQP()
	peer := attributes{dest: 0x123456, local: loopback, peer: loopback}
	fill := func(a *attributes) { *a = peer }
	const (
		curState, accessFlags, pKeyIndex, rnrTimer = 1 << 1, 1 << 3, 1 << 4, 1 << 15
		altPath, migState, rateLimit               = 1 << 14, 1 << 18, 1 << 25
		stateSQD, stateErr                         = 4, 6

		rtsOptional = curState | altPath | accessFlags | rnrTimer | migState
	)
	for _, step := range []struct {
		what            string
		state, required uint64
		optional        uint64
	}{
		{"RESET to INIT", stateInit, maskInit, 0},
		{"in INIT", stateInit, 0, maskInit},
		{"INIT to RTR", stateRTR, maskRTR, altPath | accessFlags | pKeyIndex},
		{"in RTR", stateRTR, 0, 0},
		{"RTR to RTS", stateRTS, maskRTS, rtsOptional},
		{"in RTS", stateRTS, 0, rtsOptional},
		{"to ERR", stateErr, maskState, 0},
	} {
		for bit := uint64(1 << 1); bit <= rateLimit; bit <<= 1 {
			if (step.required|step.optional)&bit != 0 {
				continue
			}
			a := argument(modifyQP)
			want := q.attributes
			assign(&want.qp_state, step.state)
			assign(&a.handle, uint64(q.handle))
			assign(&a.mask, step.required|bit)
			a.attributes = unsafe.Pointer(&want)
			if got := modifyQP(a); got != syscall.EINVAL {
				t.Errorf("%s with attribute %#x: %v, expected EINVAL", step.what, bit, got)
			}
		}
		if step.required != 0 {
			q.changeTo(t, fill, step.state, step.required|step.optional&^(altPath|migState|curState))
		}
	}
}

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
