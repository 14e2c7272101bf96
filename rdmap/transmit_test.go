package rdmap

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/internal/nettest"
)

// Kick sends a batch or two in its own goroutine, as far as the transport accepts them
// without waiting. Writer sends the rest.
func TestKickSendsSomeBatchesAndLeavesTheRest(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.room = 2 })
	r.send(sendOf(0), sendOf(0), sendOf(0), sendOf(0), sendOf(0), sendOf(0), sendOf(0)) // they go in no runs
	if n := len(r.line.written); n != 2*(budget+1) {
		t.Errorf("%d segments were sent by Kick, want %d batches of 2", n, budget+1)
	}
	if r.idle() {
		t.Fatal("nobody owns what is left")
	}
	r.writer()
	want(t, "sent", r.sent(),
		"Send 0#1+0 0.", "Send 0#2+0 0.", "Send 0#3+0 0.", "Send 0#4+0 0.", "Send 0#5+0 0.", "Send 0#6+0 0.", "Send 0#7+0 0.")
	want(t, "told", r.ulp.told(), "sent 2", "sent 4", "sent 6", "sent 7")
	if !r.idle() {
		t.Error("the outgoing half is not free")
	}
	for i, wait := range r.line.flushes {
		if wait {
			t.Errorf("flush %d may wait, for a transport that has room", i)
		}
	}
}

func TestBatchEndsWhenTheHoldIsFull(t *testing.T) {
	r := newRig(t)
	r.hold.limit = 2
	batches := 0
	r.line.flush = func() {
		batches++
		if n := len(r.hold.uses); n > 2 {
			t.Errorf("memory of %d operations is held", n)
		}
	}
	r.send(sendOf(60), sendOf(200), sendOf(60))
	if n := len(r.sent()); n != 4 || batches != 2 {
		t.Errorf("%d segments in %d batches, want 4 in 2", n, batches)
	}
}

// An operation is complete when all of it is with the transport, and not
// before.
//
// Claims: R-5.5-17
func TestOperationsCompleteAsTheyLeave(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes = 0 })
	r.send(sendOf(1), writeOf(200), readOf(1), sendOf(1))
	want(t, "told with nothing sent", r.ulp.told())
	steps := [][]string{
		{"sent 1"}, // the Send
		nil,        // the first of the Write
		{"sent 2"}, // its last
		nil,        // the Read Request
		{"sent 4"},
	}
	r.line.flush = func() { r.line.takes = 1 }
	for i, step := range steps {
		nettest.Await(t, r.out.handoff)
		r.out.run(false)
		if n := len(r.line.written); n != i+1 {
			t.Fatalf("%d segments were sent, want %d", n, i+1)
		}
		want(t, "told", r.ulp.told(), step...)
	}
}

// What has left is complete while the rest of its batch still waits.
func TestOperationsCompleteWhileOthersWait(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes, l.brief = 0, true })
	r.send(sendOf(1), sendOf(1), sendOf(1))
	var told [][]string
	r.line.wait = func() {
		told = append(told, r.ulp.told())
		r.line.takes = 1
	}
	for !r.idle() {
		r.writer()
	}
	want(t, "sent", r.sent(), "Send 0#1+0 1.", "Send 0#2+0 1.", "Send 0#3+0 1.")
	if len(told) != 3 || len(told[1]) != 1 || len(told[2]) != 1 {
		t.Errorf("told %q as each began to wait", told)
	}
}

// While the transport is full nobody but Writer sends, and kicks are kept.
func TestKicksDuringAWaitAreKept(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes = 1 })
	r.send(sendOf(1), sendOf(1))
	want(t, "sent", r.sent(), "Send 0#1+0 1.")
	r.send(sendOf(1))
	r.Kick()
	want(t, "sent by others", r.sent())
	r.line.wait = func() { r.line.takes = -1 }
	r.writer()
	want(t, "sent by Writer", r.sent(), "Send 0#2+0 1.", "Send 0#3+0 1.")
	want(t, "told", r.ulp.told(), "sent 1", "sent 3")
	r.send(sendOf(1))
	want(t, "sent after it", r.sent(), "Send 0#4+0 1.")
}

// A kick that comes when the owner has looked for the last time, and before it
// has left, is not lost.
func TestKickWhileTheOwnerLeavesIsNotLost(t *testing.T) {
	r := newRig(t)
	r.ulp.next = func() { // there was nothing, and before that is known there is something
		r.ulp.next = nil
		r.post(sendOf(1))
		r.Kick() // returns at once: it is the owner who has to see it
		want(t, "sent by the other", r.sent())
	}
	r.Kick()
	want(t, "sent", r.sent(), "Send 0#1+0 1.")
	if !r.idle() {
		t.Error("the outgoing half is not free")
	}
}

// An operation that has to wait until others are sent needs no kick of its own.
func TestAnOperationMayWaitUntilOthersAreSent(t *testing.T) {
	r := newRig(t)
	r.ulp.sent = func() {
		r.ulp.sent = nil
		r.post(sendOf(2))
	}
	r.send(sendOf(1))
	want(t, "sent", r.sent(), "Send 0#1+0 1.", "Send 0#2+0 2.")
	if !r.idle() {
		t.Error("the outgoing half is not free")
	}
}

// Over a transport that cannot write without waiting, Kick sends nothing.
func TestKickNeverWrites(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.waits = true })
	r.send(sendOf(1))
	r.Kick()
	want(t, "sent by Kick", r.sent())
	r.writer()
	want(t, "sent by Writer", r.sent(), "Send 0#1+0 1.")
}

func TestBrokenTransportEndsTheStreamOnce(t *testing.T) {
	broken := errors.New("broken")
	r := newRig(t, func(_ *Config, l *line) { l.broken = broken })
	r.send(sendOf(1))
	r.send(sendOf(1))
	r.Terminate(nil)
	r.Kick()
	if len(r.ended) != 1 || r.ended[0] != broken {
		t.Errorf("ended with %v, want once with %v", r.ended, broken)
	}
	if len(r.line.flushes) != 1 || len(r.line.shut) > 0 {
		t.Errorf("%d attempts to write, %v; want one", len(r.line.flushes), r.line.shut)
	}
	want(t, "told", r.ulp.told())
}

// A queue is a send queue to which many may post.
type queue struct {
	*recorder
	mu     sync.Mutex
	posted uint64
	begun  uint64
}

func (q *queue) post() {
	q.mu.Lock()
	q.posted++
	q.mu.Unlock()
}

func (q *queue) Next(op *Operation) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.begun == q.posted {
		return false
	}
	q.begun++
	*op = Operation{Opcode: OpWrite, Ticket: q.begun}
	return true
}

// Everything posted before a kick is sent, by one goroutine at a time, however many kick:
// nothing is left when all have returned.
func TestNoKickIsLostAmongMany(t *testing.T) {
	const kickers, kicks = 8, 2000
	for _, mode := range []string{"kickers write", "Writer writes", "both write", "some leave it to Writer"} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(t)
				q := &queue{recorder: &recorder{hold: &hold{}, quiet: true}}
				sent := 0
				l.take = func(*segment) { sent++ } // without a lock: the race detector sees two owners
				l.waits = mode == "Writer writes"
				if mode == "both write" {
					l.room, l.takes, l.wait = 3, 100, func() { l.takes = 100 }
				}
				s := NewStream(l, q, Config{Initiator: true, Hold: q.hold})
				var writer, all sync.WaitGroup
				writer.Go(s.Writer)
				for i := range kickers {
					kick := (*Stream).Kick
					if i%2 == 0 && mode == "some leave it to Writer" {
						kick = (*Stream).KickLater
					}
					all.Go(func() {
						for range kicks {
							q.post()
							kick(s)
						}
					})
				}
				all.Wait()
				synctest.Wait() // Writer is at rest, too
				if sent != kickers*kicks {
					t.Errorf("%d messages were sent, want %d", sent, kickers*kicks)
				}
				s.Stop()
				writer.Wait()
			})
		})
	}
}
