package verbs_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-rdma/weft/verbs"
)

// A message of a's waits for a receive of b's, and answers to b that are behind it arrive. What
// else is behind it waits.
func TestAnswersOvertakeAMessageThatIsSetAside(t *testing.T) {
	settingAside(t, func(t *testing.T, s *table, post func(uint64)) {
		copy(s.a.buf[100:], "a Write behind it")
		before := string(s.b.buf[100:117])
		s.a.post(s.a.send(1, 0, 8), s.a.write(2, s.b, 100, 17), s.a.read(3, s.b, 200, 8))
		wantDone(t, s.a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success})
		s.b.post(s.b.read(1, s.a, 300, 4000), s.b.atomic(2, verbs.OpFetchAdd, s.a, 8, 16, verbs.Atomic{Data: 1}), s.b.read(3, s.a, 300, 8))
		wantDone(t, s.b.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success})
		quiesce()
		if got := string(s.b.buf[100:117]); got != before {
			t.Errorf("the Write has overtaken the message: %q", got)
		}
		wantNone(t, s.a.sendCQ) // the Read has not
		post(10)
		wantDone(t, s.b.recvCQ, done{10, verbs.Success})
		wantDone(t, s.a.sendCQ, done{3, verbs.Success})
		if got := string(s.b.buf[100:117]); got != "a Write behind it" {
			t.Errorf("the Write has brought %q", got)
		}
	})
}

// Two sides send messages of one segment and of many at each other, write and read, and post
// receives late. Every message, and the Write in front of it, arrives in its order and whole,
// and every Read is answered.
func TestMessagesThatAreSetAsideKeepTheirOrder(t *testing.T) {
	const messages, slot = 60, 200_000
	overWires(t, func(t *testing.T, w wire) {
		cfg := verbs.QPConfig{SendDepth: 4 * messages, RecvDepth: messages, IRD: 4, ORD: 4, PauseOnEmptyRQ: true, SetAside: 300_000}
		a, b := linked(t, w, cfg, cfg)
		seed := rand.Uint64()
		t.Logf("seed %#x", seed)
		size := func(i int) int { return int(rand.New(rand.NewPCG(seed, uint64(i))).IntN(slot)>>(i%3*6)) + 1 }
		for _, s := range []*side{a, b} {
			other := map[*side]*side{a: b, b: a}[s]
			for i := range slot { // both sides send the same
				s.buf[i] = byte(i)
			}
			for i := range messages {
				s.post(verbs.SendWR{ID: uint64(i), Op: verbs.OpWrite, Flags: verbs.Signaled, SGL: []verbs.SGE{s.mr.SGE(i+1, 1)}, Remote: other.mr.Remote(2*slot + i)},
					s.send(uint64(i), i, size(i)),
					verbs.SendWR{ID: uint64(i), Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{s.mr.SGE(3*slot, size(i+1))}, Remote: other.mr.Remote(4 * slot)})
			}
		}
		for i := range messages {
			for _, s := range []*side{a, b} {
				check(t, s.qp.PostRecv(verbs.RecvWR{ID: uint64(i), SGL: []verbs.SGE{s.mr.SGE(slot, slot)}}))
			}
			for _, s := range []*side{a, b} {
				wantDone(t, s.recvCQ, done{uint64(i), verbs.Success})
				if n := size(i); !bytes.Equal(s.buf[slot:slot+n], s.buf[i:i+n]) {
					t.Fatalf("message %d of %d octets has arrived otherwise", i, n)
				}
				if s.buf[2*slot+i] != byte(i+1) {
					t.Fatalf("message %d has overtaken the Write in front of it", i)
				}
			}
		}
		for _, s := range []*side{a, b} {
			for i := range messages {
				wantDone(t, s.sendCQ, done{uint64(i), verbs.Success}, done{uint64(i), verbs.Success}, done{uint64(i), verbs.Success})
			}
		}
	})
}

// What is kept is limited: then the peer cannot go on, and nothing is lost.
func TestWhatIsSetAsideIsLimited(t *testing.T) {
	settingAside(t, func(t *testing.T, s *table, post func(uint64)) {
		for i := range uint64(15) {
			s.a.post(s.a.send(i, 0, 200_000))
		}
		quiesce()
		s.b.post(s.b.read(2, s.a, 0, 8))
		quiesce()
		wantNone(t, s.b.sendCQ)
		const kept = 1<<16 + 1<<16 + 1<<20 // a segment more, and what is on its way
		if n := s.a.qp.Stats().Sends.Octets; n > kept {
			t.Errorf("%d octets of messages have left, expected at most %d", n, kept)
		}
	})
}

// The end of the peer's half waits for the message before it.
func TestAStreamEndsBehindWhatIsSetAside(t *testing.T) {
	settingAside(t, func(t *testing.T, s *table, post func(uint64)) {
		s.a.post(s.a.send(1, 0, 8))
		wantDone(t, s.a.sendCQ, done{1, verbs.Success})
		closed := make(chan error, 1)
		go func() { closed <- s.a.qp.Close(t.Context()) }()
		quiesce()
		if at := s.b.qp.State(); at != verbs.RTS {
			t.Fatalf("the state is %v", at)
		}
		post(10)
		wantDone(t, s.b.recvCQ, done{10, verbs.Success})
		reach(t, s.b.qp, verbs.Idle)
		check(t, <-closed)
	})
}

// A Read that cannot be answered any more ends without its message.
func TestAStreamWithOpenReadsEndsAtOnce(t *testing.T) {
	settingAside(t, func(t *testing.T, s *table, post func(uint64)) {
		s.a.post(s.a.send(1, 0, 8))
		quiesce()
		s.y.Hold()
		s.b.post(s.b.read(1, s.a, 0, 8))
		s.a.qp.Abort()
		wantDone(t, s.b.sendCQ, done{1, verbs.Flushed})
		reach(t, s.b.qp, verbs.Error)
	})
}

// What is wrong with a message that was set aside is found when it is used.
func TestAMessageThatIsSetAsideIsCheckedLater(t *testing.T) {
	settingAside(t, func(t *testing.T, s *table, post func(uint64)) {
		s.a.post(s.a.send(1, 0, 9), s.a.send(2, 0, 8))
		quiesce()
		post(10) // of 8 octets
		wantDone(t, s.b.recvCQ, done{10, verbs.BaseBounds})
		reach(t, s.a.qp, verbs.Error)
		reach(t, s.b.qp, verbs.Error)
	})
}

// A message that waits ends with its queue pair.
func TestAQueuePairThatSetsAsideCanBeDestroyed(t *testing.T) {
	settingAside(t, func(t *testing.T, s *table, post func(uint64)) {
		s.a.post(s.a.send(1, 0, 8), s.a.send(2, 0, 8))
		time.Sleep(time.Hour)
		check(t, s.b.qp.Destroy())
		reach(t, s.a.qp, verbs.Error)
	})
}
