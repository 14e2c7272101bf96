package verbsmodel_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// A world is what a run works on: two hosts, and two to four queue pairs, and
// of each what the model knows of it.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	step   int
	did    string // what the step does
	hosts  [2]*host
	qps    []*queuePair
	cqs    []*completionQueue
	ids    uint64 // of work requests
	counts map[string]int
	story  []string // the last things done
}

// A completionQueue of a host serves all its queue pairs, of both queues.
type completionQueue struct {
	host *host
	cq   *verbs.CQ
}

// chance is true n times of a hundred.
func (w *world) chance(n int) bool { return w.rng.IntN(100) < n }

// pick takes one of several.
func pick[T any](w *world, all ...T) T { return all[w.rng.IntN(len(all))] }

// logf adds a line to the log that a failure prints.
func (w *world) logf(format string, args ...any) {
	if len(w.story) == 40 {
		w.story = w.story[1:]
	}
	w.story = append(w.story, fmt.Sprintf("%d %s: ", w.step, w.did)+fmt.Sprintf(format, args...))
}

// fail ends the test, and says where it was.
func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("step %d, %s: %s", w.step, w.did, fmt.Sprintf(format, args...))
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.fail("%v", err)
	}
}

// cqEntries is more than all queues together can fill.
const cqEntries = 4096

// newWorld opens two RNICs with n queue pairs.
func newWorld(t *testing.T, seed uint64, n int) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), counts: map[string]int{}}
	for i := range w.hosts {
		rnic, err := verbs.Open(verbs.Config{})
		w.must(err)
		t.Cleanup(func() { _ = rnic.Close() })
		h := &host{number: i, rnic: rnic, mem: alignedArena(), shadow: make([]byte, arena), byIndex: map[uint32]object{}}
		for j := range h.mem {
			h.mem[j] = byte(w.rng.Uint32())
		}
		copy(h.shadow, h.mem)
		for j := range h.pds {
			h.pds[j], err = rnic.AllocPD()
			w.must(err)
		}
		cq, err := rnic.CreateCQ(verbs.CQConfig{Entries: cqEntries})
		w.must(err)
		w.cqs = append(w.cqs, &completionQueue{h, cq})
		rnic.SetAsyncHandler(func(e verbs.Event) { w.event(h, e) })
		w.hosts[i] = h
		w.shared(h)
		for range 6 {
			w.register(h)
		}
	}
	for i := range n {
		w.qps = append(w.qps, w.create(w.hosts[i%2], &queuePair{w: w}))
	}
	return w
}

// shared gives a host an S-RQ.
func (w *world) shared(h *host) {
	pd := w.rng.IntN(2)
	srq, err := h.pds[pd].CreateSRQ(verbs.SRQConfig{WRs: 12, SGEs: 3})
	w.must(err)
	h.srq = &sharedQueue{host: h, pd: pd, srq: srq, depth: 12}
}

// create makes q a new queue pair with attributes of all kinds.
func (w *world) create(h *host, q *queuePair) *queuePair {
	cq := w.cqs[h.number].cq
	*q = queuePair{w: w, host: h, pd: w.rng.IntN(2), state: verbs.Idle, cfg: verbs.QPConfig{
		SendCQ: cq, RecvCQ: cq,
		SendDepth: 1 + w.rng.IntN(24), RecvDepth: 1 + w.rng.IntN(24), SendSGEs: 4, RecvSGEs: 3,
		IRD: 1 + w.rng.IntN(8), ORD: 1 + w.rng.IntN(8),
		Extensions: true, BindWindows: true, Privileged: true,
		NoRemoteWrite: w.chance(3),
	}}
	if w.chance(25) {
		q.cfg.SRQ = h.srq.srq
	}
	var err error
	q.qp, err = h.pds[q.pd].CreateQP(q.cfg)
	w.must(err)
	return q
}

func (q *queuePair) String() string {
	if q == nil {
		return "nobody"
	}
	return fmt.Sprintf("QP %d of host %d", q.qp.Num(), q.host.number)
}

// event notes an asynchronous event; it runs in a goroutine of the RNIC's,
// while the test waits for all of them to rest.
func (w *world) event(h *host, e verbs.Event) {
	for _, q := range w.qps {
		if q.host == h && q.qp == e.QP {
			q.came = append(q.came, e.ID)
		}
	}
}

// connect connects two Idle queue pairs of different hosts.
func (w *world) connect(a, b *queuePair) {
	x, y := iwarptest.Pipe()
	if w.chance(30) {
		x.ReadSizes(iwarptest.RandomSizes(w.rng.Uint64(), 2000))
		y.ReadSizes(iwarptest.RandomSizes(w.rng.Uint64(), 100))
	}
	accepted := make(chan error, 1)
	noCRC := w.chance(20)
	go func() {
		req, err := cm.Receive(context.Background(), y, mpa.Config{NoCRC: noCRC})
		if err == nil {
			_, err = req.Accept(context.Background(), b.qp, cm.Params{})
		}
		accepted <- err
	}()
	c, err := cm.Connect(context.Background(), a.qp, x, cm.Params{MPA: mpa.Config{NoCRC: noCRC}})
	w.must(err)
	w.must(<-accepted)
	w.logf("%v with %v", a, b)
	a.state, b.state, a.peer, b.peer = verbs.RTS, verbs.RTS, b, a
	a.fenced, b.fenced = false, true
	attributes, err := b.qp.Query()
	w.must(err)
	a.ord, b.ord = c.ORD(), attributes.ORD
	a.run()
}

// check compares everything that can be seen with the model. Nothing is under
// way: all goroutines rest.
func (w *world) check() {
	synctest.Wait()
	for _, q := range w.qps {
		if at := q.qp.State(); at != q.state {
			w.fail("%v is %v, expected %v (%v)", q, at, q.state, q.qp.Err())
		}
		if fmt.Sprint(q.came) != fmt.Sprint(q.events) {
			w.fail("%v: events %v, expected %v (%v)", q, q.came, q.events, q.qp.Err())
		}
		q.came, q.events = nil, nil
	}
	for _, h := range w.hosts {
		h.adoptPlaced()
		if !bytes.Equal(h.mem, h.shadow) {
			for i := range h.mem {
				if h.mem[i] != h.shadow[i] {
					w.fail("octet %d of host %d is %#x, expected %#x", i, h.number, h.mem[i], h.shadow[i])
				}
			}
		}
	}
}

// drain drops the completions of a queue pair that has gone: all that there
// are, once the rest has been polled.
func (w *world) drain(h *host) {
	synctest.Wait()
	wcs := make([]verbs.WC, 64)
	for w.cqs[h.number].cq.Poll(wcs) > 0 {
	}
}

// poll takes up to n completions of each CQ; all there are if n is 0.
func (w *world) poll(n int) {
	for _, c := range w.cqs {
		wcs := make([]verbs.WC, max(n, 1))
		for {
			got := c.cq.Poll(wcs)
			for i := range got {
				w.polled(&wcs[i])
			}
			if got == 0 || n > 0 {
				break
			}
		}
	}
	if n > 0 {
		return
	}
	for _, q := range w.qps {
		for _, s := range append(q.sends[:len(q.sends):len(q.sends)], q.recvs...) {
			if s.visible && !s.polled {
				w.fail("%v: no completion of request %d, expected %v", q, s.id, s.want)
			}
		}
	}
}
