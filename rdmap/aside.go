// This file is messages that find no receive, and are set aside: what answers this side's
// own Reads and atomics is processed meanwhile (Config.SetAside).
//
//  1. ULPDU finds a message for which the ULP has no receive. It keeps a copy of the
//     segment, and of all segments that follow, and starts watch.
//  2. Segments of Read Responses and Atomic Responses overtake: they go to DDP at once. They
//     are matched to requests of this side, and to no receive.
//  3. watch waits until the ULP has a receive, and replays what is kept, in order and with all
//     checks, until a message finds none again.
//  4. When nothing is kept, watch ends, and segments go to DDP as before.
//
// What the peer asks for and writes waits in its place: in memory and at the ULP everything
// has the order in which it was sent, but for the answers, to which nothing of the peer's
// is ordered. If as much is kept as may be, the receiving goroutine waits.
//
// Locking: while active is set mu stands for the receiving goroutine's token: who has it may
// use the inbound half. Only the receiving goroutine sets active, so that it needs no lock
// while active is not set. The outgoing half never takes mu.

package rdmap

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/internal/panics"
)

// A LateReceiver is a ULP whose receives may come later than the messages.
type LateReceiver interface {
	// LacksReceive reports that there is no receive for the message that has begun. It
	// does not wait. Called by the receiving goroutine, or in its place.
	LacksReceive() bool

	// AwaitReceive waits until there may be one for the message that has waited since
	// then. late reports that it may not wait any longer: Receive is called next. If both
	// are false the stream has ended, or stop was closed.
	AwaitReceive(since time.Time, stop <-chan struct{}) (ok, late bool)

	// Unreceived ends the stream because of what was kept; err says what was wrong.
	Unreceived(err error)
}

// An aside is the Sink of a stream that sets messages aside.
type aside struct {
	*ddp.Receiver
	in    *inbound
	ulp   LateReceiver
	limit int // octets to be kept, and a segment more

	active atomic.Bool // something is kept

	mu      sync.Mutex
	changed sync.Cond // of mu: something was replayed, or watch has ended
	kept    [][]byte  // segments, in the order of arrival
	octets  int       // of these
	ordered bool      // an answer is among them, which others must not overtake
	due     bool      // watch left the rest to the end of the answer that is arriving
	since   time.Time // when the first was found to lack a receive

	watched bool          // watch runs
	stop    chan struct{} // closed to end it
	ended   bool          // it has ended before all was replayed
	err     error         // what replaying has ended with
}

var (
	_ ddp.BlockingSink = (*aside)(nil)
	_ ddp.RunSink      = (*aside)(nil)
)

// setAside puts an aside in front of the receiver, if the stream is to have one.
func (in *inbound) setAside() {
	if ulp, ok := in.s.ulp.(LateReceiver); ok && in.s.cfg.SetAside > 0 {
		a := &aside{Receiver: in.receiver, in: in, ulp: ulp, limit: in.s.cfg.SetAside, stop: make(chan struct{})}
		a.changed.L = &a.mu
		in.aside = a
	}
}

// ULPDU takes a segment (see [ddp.Sink]).
func (a *aside) ULPDU(u []byte) error {
	if !a.active.Load() && !a.lacksReceive(u) {
		return a.Receiver.ULPDU(u)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active.Load() && a.overtakes(u) {
		return a.answer(u)
	}
	for a.full(len(u)) && a.watched {
		a.changed.Wait()
	}
	switch {
	case a.err != nil:
		return a.err
	case a.ended:
		return errEnded
	case len(a.kept) == 0 && !a.lacksReceive(u):
		return a.Receiver.ULPDU(u)
	}
	a.keep(u)
	return nil
}

// ULPDUs takes several segments, one by one (see [ddp.RunSink]).
func (a *aside) ULPDUs(us [][]byte) error {
	for _, u := range us {
		if err := a.ULPDU(u); err != nil {
			return err
		}
	}
	return nil
}

// Begin refuses to have a segment placed while it arrives that may have to be kept (see
// [ddp.Sink]).
func (a *aside) Begin(head []byte, length int) (skip int, ok bool, err error) {
	if a.active.Load() || a.lacksReceive(head) {
		return 0, false, nil
	}
	return a.Receiver.Begin(head, length)
}

// WouldBlock reports that ULPDU would wait (see [ddp.BlockingSink]).
func (a *aside) WouldBlock(u []byte) bool {
	if !a.active.Load() {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.full(len(u)) && !a.overtakes(u)
}

// Idle is called before the LLP waits (see [ddp.Sink]).
func (a *aside) Idle() {
	if a.active.Load() {
		a.mu.Lock()
		defer a.mu.Unlock()
	}
	a.Receiver.Idle()
}

// lacksReceive reports that a segment begins a message for which there is no receive. What
// is wrong with the segment is for DDP to say.
func (a *aside) lacksReceive(u []byte) bool {
	var h ddp.Untagged
	if !h.Parse(u) || h.QN != QueueSend || h.MO != 0 {
		return false
	}
	version, op, _ := ParseControlUntagged(h.RsvdULP)
	if a.in.admit(version, op, false, h.QN) != nil || !a.in.opened && a.in.mayOpen(op, len(u) == ddp.UntaggedLen && h.Last) {
		return false
	}
	return a.ulp.LacksReceive()
}

// full reports that a segment of n octets has to wait; needs mu.
func (a *aside) full(n int) bool { return len(a.kept) > 0 && a.octets+n > a.limit }

// keep keeps a segment, and sees to it that it is replayed; needs mu.
func (a *aside) keep(u []byte) {
	a.in.first()
	a.in.prove() // the ULP may post receives only when the stream is ready
	if len(a.kept) == 0 {
		a.since = time.Now()
		a.active.Store(true)
	}
	a.ordered = a.ordered || answers(u)
	a.kept = append(a.kept, append([]byte(nil), u...))
	a.octets += len(u)
	a.start()
}

// start starts watch, unless it runs; needs mu.
func (a *aside) start() {
	if !a.watched && !a.due {
		a.watched = true
		go a.watch()
	}
}

// overtakes reports that a segment goes before those that are kept; needs mu. In the middle
// of a Write it does not: one tagged message ends before the next begins.
func (a *aside) overtakes(u []byte) bool {
	if a.ordered || !answers(u) {
		return false
	}
	op, open := a.tagged()
	return !open || op == OpReadResponse
}

// tagged is the tagged message that has begun and not ended.
func (a *aside) tagged() (op Opcode, open bool) {
	h, open := a.UnfinishedTagged()
	_, op = ParseControl(h.RsvdULP)
	return op, open
}

// answers reports that a segment is of a Read Response or an Atomic Response.
func answers(u []byte) bool {
	var t ddp.Tagged
	if t.Parse(u) {
		_, op := ParseControl(t.RsvdULP)
		return op == OpReadResponse
	}
	var h ddp.Untagged
	return h.Parse(u) && h.QN == QueueAtomicResponse
}

// answer hands up a segment of an answer, and what waited for the end of that; needs mu.
func (a *aside) answer(u []byte) error {
	if err := a.hand(u); err != nil {
		return err
	}
	if _, open := a.tagged(); open || !a.due {
		return nil
	}
	a.due = false
	if err := a.replay(); err != nil {
		return err
	}
	a.goOn()
	return nil
}

// replay hands up what is kept until a message lacks a receive; needs mu.
func (a *aside) replay() error {
	for len(a.kept) > 0 {
		if op, open := a.tagged(); open && op == OpReadResponse && !a.ordered {
			a.due = true
			return nil
		}
		if a.lacksReceive(a.kept[0]) {
			return nil
		}
		if err := a.next(); err != nil {
			return err
		}
	}
	return nil
}

// next hands up the first segment that is kept; needs mu.
func (a *aside) next() error {
	u := a.kept[0]
	a.kept[0] = nil
	a.kept = a.kept[1:]
	a.octets -= len(u)
	a.since = time.Now()
	return a.hand(u)
}

// goOn follows a replay: the receiving goroutine has the inbound half to itself again if
// nothing is kept; needs mu.
func (a *aside) goOn() {
	if len(a.kept) > 0 {
		a.start()
		return
	}
	a.kept, a.ordered = nil, false
	a.active.Store(false)
}

// hand hands a segment to DDP; needs mu, which a fault of the ULP's memory must not leave
// locked.
func (a *aside) hand(u []byte) error {
	err, fault := a.guarded(u)
	if fault != nil {
		return a.Unwritable(fault)
	}
	return err
}

func (a *aside) guarded(u []byte) (err, fault error) {
	defer pages.CatchIn(&fault, a.Writing, pages.Trap())
	return a.Receiver.ULPDU(u), nil
}

// watch replays what is kept whenever the ULP has a receive, until nothing is kept.
func (a *aside) watch() {
	defer panics.Recover()
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.watched {
		a.woken(a.await())
		a.changed.Broadcast()
	}
}

// await waits for a receive; needs mu, which it unlocks meanwhile.
func (a *aside) await() (ok, late bool) {
	since := a.since
	a.mu.Unlock()
	defer a.mu.Lock()
	return a.ulp.AwaitReceive(since, a.stop)
}

// woken goes on after a wait; needs mu.
func (a *aside) woken(ok, late bool) {
	var err error
	switch {
	case late:
		err = a.next() // DDP finds that there is no buffer
	case !ok:
		a.watched, a.ended = false, true
		return
	}
	if err == nil {
		err = a.replay()
	}
	a.watched = err == nil && len(a.kept) > 0 && !a.due
	a.Receiver.Idle()
	if err != nil {
		a.err = a.in.offence(err)
		a.ulp.Unreceived(a.err)
		return
	}
	a.goOn()
}

// end is called when the LLP has no more, because of err. The end of the peer's half waits
// for what came before it, unless this side waits for answers, which cannot come any more.
// It returns why the reception has ended.
func (a *aside) end(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != io.EOF || !a.in.s.responses.allReported() {
		close(a.stop)
	}
	for a.watched {
		a.changed.Wait()
	}
	a.active.Store(false)
	if a.err != nil {
		return a.err
	}
	return err
}
