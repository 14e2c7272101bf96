// Ping-pong over Weft.
//
// With Sends, each end waits for a receive to complete and answers. With RDMA
// Writes there is nothing to complete at the end that is written to: ends that
// poll watch the memory itself, as RDMA programs do; ends that park get an
// empty Send behind the Write.

package main

import (
	"context"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/weft-rdma/weft/verbs"
)

// numberSize is the length of the number in a written message's last octets.
const numberSize = 8

// pingReceives is how many receives are posted at either end.
const pingReceives = 16

// stop is the number of the message that ends a ping-pong of watched Writes.
// The others end with a Send of replySize octets.
const stop = ^uint64(0)

// A player is one end of a ping-pong.
type player struct {
	*link
	recv    verbs.RecvWR
	wrs     []verbs.SendWR // one message
	sent    uint64         // messages that left
	heard   uint64         // messages that arrived
	number  *uint64        // in the message that leaves; of Writes
	watched *uint64        // in the message that arrives; of Writes that are watched
}

// signalEvery is how many messages one signaled request stands for.
const signalEvery = 16

func (l *link) player() (*player, error) {
	w := l.job.Workload
	p := &player{link: l, recv: verbs.RecvWR{SGL: []verbs.SGE{l.mr.SGE(landing, w.Size)}}}
	sgl := []verbs.SGE{l.mr.SGE(0, w.Size)}
	if w.Op == Send {
		p.wrs = []verbs.SendWR{{Op: verbs.OpSend, SGL: sgl}}
	} else {
		to := verbs.Remote{STag: l.remote.STag, TO: l.remote.TO + landing}
		p.wrs = []verbs.SendWR{{Op: verbs.OpWrite, SGL: sgl, Remote: to}}
		p.number = numberIn(l.memory[:w.Size])
		if w.Polling {
			p.watched = numberIn(l.memory[landing : landing+w.Size])
		} else {
			p.wrs = append(p.wrs, verbs.SendWR{Op: verbs.OpSend})
		}
	}
	for range pingReceives {
		if err := l.qp.PostRecv(p.recv); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// ping prepares the end that begins.
func (l *link) ping() (func(context.Context) (Sample, error), error) {
	p, err := l.player()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (Sample, error) {
		run := newStopwatch(l.job)
		trips := newTrips()
		for t0 := time.Now(); !run.overAt(t0); {
			if err := p.play(p.sent + 1); err != nil {
				return Sample{}, err
			}
			if _, err := p.await(ctx); err != nil {
				return Sample{}, err
			}
			run.add(1)
			t1 := time.Now()
			trips.add(run, t1.Sub(t0))
			t0 = t1
		}
		s := run.stop()
		s.Trips = trips.percentiles()
		return s, p.stop()
	}, nil
}

// pong prepares the end that answers, until the initiator stops.
func (l *link) pong() (func(context.Context) error, error) {
	p, err := l.player()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		for {
			over, err := p.await(ctx)
			if over || err != nil {
				return err
			}
			if err := p.play(p.sent + 1); err != nil {
				return err
			}
		}
	}, nil
}

// play sends a message with a number.
func (p *player) play(number uint64) error {
	p.sent++
	if p.number != nil {
		setNumber(p.number, number)
	}
	last := &p.wrs[len(p.wrs)-1]
	last.Flags = 0
	if p.sent%signalEvery == 0 {
		last.Flags = verbs.Signaled
	}
	if len(p.wrs) == 1 {
		return p.qp.PostSend(*last)
	}
	_, err := p.qp.PostSends(p.wrs)
	return err
}

// stop signals to the other end that this was the last message.
func (p *player) stop() error {
	if p.watched != nil {
		return p.play(stop)
	}
	return p.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{p.mr.SGE(0, replySize)}})
}

// await waits for the other end's message. over says that it was the stop.
func (p *player) await(ctx context.Context) (over bool, err error) {
	p.heard++
	if p.watched != nil {
		return p.watch(ctx)
	}
	for {
		wc, err := p.completion(ctx)
		if err != nil {
			return false, err
		}
		switch {
		case wc.Op != verbs.OpRecv:
		case wc.Bytes == replySize:
			return true, nil
		default:
			return false, p.qp.PostRecv(p.recv)
		}
	}
}

// watch polls memory until the other end's RDMA Write has changed it, and the
// completion queue, which makes what arrives go its way at once. When that
// takes long it looks whether there is still somebody who could, and sleeps a
// little: with one processor the Go scheduler asks the netpoller for those who
// wait there, the queue pair's reader among them, only when there is nothing
// else to run.
func (p *player) watch(ctx context.Context) (over bool, err error) {
	for i := 1; ; i++ {
		switch number(p.watched) {
		case p.heard:
			return false, nil
		case stop:
			return true, nil
		}
		if i%watchLimit == 0 {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			if state := p.qp.State(); state != verbs.RTS {
				return false, fmt.Errorf("the queue pair is %v while an RDMA Write is awaited", state)
			}
			time.Sleep(watchPause)
			continue
		}
		p.cq.Poll(p.wcs[:])
		if i%watchYield == 0 {
			runtime.Gosched()
		}
	}
}

// watch lets others run after each watchYield looks and sleeps for watchPause after
// each watchLimit; a message on loopback takes some tens.
const (
	watchYield = 4
	watchLimit = 256
	watchPause = 20 * time.Microsecond
)

// numberIn is where a message has its number: in its last octets, so that it
// changes when the rest is in place.
func numberIn(message []byte) *uint64 {
	return (*uint64)(unsafe.Pointer(&message[len(message)-numberSize]))
}

// number and setNumber are plain accesses on purpose, one load or store each:
// the other party is the network, which no lock orders.
//
//go:norace
//go:noinline
func number(p *uint64) uint64 { return *p }

//go:norace
//go:noinline
func setNumber(p *uint64, v uint64) { *p = v }
