package main

import (
	gocontext "context"
	"slices"
	"sync"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/internal/panics"
	"github.com/weft-rdma/weft/origin"
)

// This file is requests that came before their queue pair knew enough to judge them. They
// wait for the program to say more, but not for long, and anybody may send them: their
// places are limited, and divided fairly. One that loses its place is rejected. Peers ask
// again.
//
// Locking: mu guards the requests. The lock of the places is never taken with it.

// An earlyRequest is a request that waits.
type earlyRequest struct {
	in     *earlyRequests
	number uint32 // of the queue pair that it is for
	since  time.Time
	place  *fairness.Place
	timer  *time.Timer
	judge  func() // judges it again
	reject func()
}

// earlyRequests are those that wait.
type earlyRequests struct {
	places *fairness.Places
	limit  time.Duration // of waiting

	mu       sync.Mutex
	byNumber map[uint32][]*earlyRequest
}

func newEarlyRequests(places int, limit time.Duration) *earlyRequests {
	return &earlyRequests{places: fairness.NewPlaces(places), limit: limit, byNumber: map[uint32][]*earlyRequest{}}
}

// add has a request wait. It is rejected if there is no place.
func (e *earlyRequests) add(number uint32, share origin.Share, judge, reject func()) {
	r := &earlyRequest{in: e, number: number, since: time.Now(), judge: judge, reject: reject}
	e.mu.Lock()
	e.byNumber[number] = append(e.byNumber[number], r)
	e.mu.Unlock()
	place, err := e.places.Acquire(gocontext.Background(), share, r)
	if err != nil {
		r.Evict(err)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.byNumber[number], r) {
		place.Free() // it was judged, or dropped, at once
		return
	}
	r.place = place
	r.timer = time.AfterFunc(e.limit, func() {
		defer panics.Recover()
		r.Evict(nil)
	})
}

// Standing is for [fairness.Holder].
func (r *earlyRequest) Standing() fairness.Standing { return fairness.Standing{Since: r.since} }

// Evict rejects the request, if it still waits.
func (r *earlyRequest) Evict(error) (gone bool) {
	if r.in.remove(r) {
		r.leave()
		r.reject()
	}
	return true
}

// leave gives the place back.
func (r *earlyRequest) leave() {
	if r.place != nil {
		r.timer.Stop()
		r.place.Free()
	}
}

// remove takes a request out, and reports whether it was there.
func (e *earlyRequests) remove(r *earlyRequest) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	waiting := e.byNumber[r.number]
	i := slices.Index(waiting, r)
	if i < 0 {
		return false
	}
	if waiting = slices.Delete(waiting, i, i+1); len(waiting) > 0 {
		e.byNumber[r.number] = waiting
	} else {
		delete(e.byNumber, r.number)
	}
	return true
}

// take takes out all requests for a number.
func (e *earlyRequests) take(number uint32) []*earlyRequest {
	e.mu.Lock()
	waiting := e.byNumber[number]
	delete(e.byNumber, number)
	e.mu.Unlock()
	for _, r := range waiting {
		r.leave()
	}
	return waiting
}

// retry judges all requests for a number again. It does so in the background: an answer
// is written to a socket, which the program's thread stays away from.
func (e *earlyRequests) retry(number uint32) {
	if waiting := e.take(number); len(waiting) > 0 {
		spawn(func() {
			for _, r := range waiting {
				r.judge()
			}
		})
	}
}

// drop rejects all requests for a number, in the background, too.
func (e *earlyRequests) drop(number uint32) {
	if waiting := e.take(number); len(waiting) > 0 {
		spawn(func() {
			for _, r := range waiting {
				r.reject()
			}
		})
	}
}
