// This file limits the octets a second of an export.

package fileserver

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// maxDelay is how long a call waits at most. Clients give calls a minute.
	maxDelay = 5 * time.Second
	// maxWaiting is how many calls of a connection wait at most. They take the places of
	// other calls there, which may be for other exports: Linux has one connection for all
	// exports of a server.
	maxWaiting = 8
	// burstTime is for how long what was not used may be used later.
	burstTime = time.Second / 4
)

// errBusy: a call would have to wait for too long, or with too many others.
var errBusy = errors.New("the bandwidth of the export is used up")

// A pacer lets calls pass at a rate. Calls wait in the order in which they come, in the memory
// that they have at the server anyway. So that those of one export do not take the memory and
// the connections of others, few wait, and further ones fail with errBusy.
//
// Locking: mu guards what is below it, and is not held while a call waits.
type pacer struct {
	rate int64 // octets a second

	mu      sync.Mutex
	room    int64     // octets of calls that wait
	free    time.Time // when all calls that were let in have passed
	held    int64     // octets of calls that wait
	waiting map[any]int
}

func newPacer(rate, room int64) *pacer {
	return &pacer{rate: rate, room: room, waiting: make(map[any]int)}
}

// resize sets the memory of calls that wait.
func (p *pacer) resize(room int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.room = room
}

// takes returns how long n octets take.
func (p *pacer) takes(n int) time.Duration {
	return time.Duration(float64(n) / float64(p.rate) * float64(time.Second))
}

// admit waits until a call of a session may pass, of n octets together with its reply. It
// fails with errBusy, or with the error of the context; then the call does not count.
func (p *pacer) admit(ctx context.Context, session any, n int) error {
	delay, err := p.reserve(session, n)
	if delay <= 0 {
		return err
	}
	defer p.leave(session, n)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		p.charge(-n)
		return ctx.Err()
	}
}

// reserve returns how long a call has to wait. It counts the call, and if it has to wait, its
// memory.
func (p *pacer) reserve(session any, n int) (delay time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if least := now.Add(-burstTime); p.free.Before(least) {
		p.free = least
	}
	if delay = p.free.Sub(now); delay > 0 {
		if delay > maxDelay || p.waiting[session] >= maxWaiting || p.held > 0 && p.held+int64(n) > p.room {
			return 0, errBusy
		}
		p.waiting[session]++
		p.held += int64(n)
	}
	p.free = p.free.Add(p.takes(n))
	return delay, nil
}

// leave ends the wait of a call.
func (p *pacer) leave(session any, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held -= int64(n)
	if p.waiting[session]--; p.waiting[session] == 0 {
		delete(p.waiting, session)
	}
}

// charge counts n octets that a call had more than it was admitted with. Negative n are given
// back.
func (p *pacer) charge(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = p.free.Add(p.takes(n))
}
