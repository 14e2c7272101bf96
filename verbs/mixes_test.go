package verbs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// Two sides post lists of requests of all kinds and lengths at each other, at once, whichever way
// they are put into messages, segments and runs. Every octet of either's memory, every completion
// and every invalidation is as the order of posting has it.
func FuzzMixesOfRequestsComeToWhatTheirOrderSays(f *testing.F) {
	for seed := range uint64(48) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		m := newMixture(t, seed)
		for _, p := range m.parties {
			p.plan(300, -1)
		}
		m.play()
		for _, p := range m.parties {
			p.checkSent()
			p.checkReceived()
			p.checkMemory()
		}
	})
}

// The same, of one side, with one request that fails: what was posted before it has happened at the
// peer, that one and what was posted behind it has not, and every request completes once and in order.
func FuzzTheRequestAtFaultOfAMixIsWhereItEnds(f *testing.F) {
	for seed := range uint64(96) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		m := newMixture(t, seed)
		p := m.parties[0]
		p.plan(200, m.rng.IntN(200))
		m.name += fmt.Sprintf(", at fault %+v", p.requests[p.bad].SendWR)
		m.play()
		m.parties[0].checkSent()
		m.parties[1].checkReceived()
		m.parties[1].checkMemory()
	})
}

// Memory of each side, by use.
const (
	constantOff = 0       // sources, which nobody writes
	targetsOff  = 1 << 18 // the peer's Writes
	sinksOff    = 1 << 19 // answers
	arrivalsOff = 3 << 18 // receives
	wordsOff    = 1<<20 - 64
)

// A mixture is two sides that are to work at each other.
type mixture struct {
	t       *testing.T
	rng     *rand.Rand
	name    string
	parties [2]*party
}

// A party is one of them.
type party struct {
	*side
	m     *mixture
	rng   *rand.Rand
	peer  *party
	depth int
	srq   *verbs.SRQ
	waits bool // for completions, and else polls
	late  bool // receives are posted late
	mrs   [2]*verbs.MR

	requests []request
	bad      int  // of the requests, the one that fails
	far      bool // the peer finds that it does
	arrivals []arrival
	whole    int // so many of these arrive; the next may fail

	want         []byte      // what the side's memory is to be
	words        [8][]uint64 // values that each has had
	target, sink int         // memory in use, of each kind
	area         int
	written      []span // of the peer's memory, by requests of this side

	posted, ready  int // of the requests, and of the arrivals
	sent, received []verbs.WC
}

type span struct{ off, n int }

// A request is one that is to be posted, and what is to come of it.
type request struct {
	verbs.SendWR
	gone *verbs.MR // invalidated by it
}

// An arrival is a receive that is to be posted, and what is to come of it.
type arrival struct {
	verbs.RecvWR
	want verbs.WC
	gone *verbs.MR
}

func newMixture(t *testing.T, seed uint64) *mixture {
	m := &mixture{t: t, rng: rand.New(rand.NewPCG(seed, 17))}
	rng := m.rng
	w := wires[rng.IntN(len(wires))]
	params := cm.Params{MPA: mpa.Config{NoCRC: rng.IntN(3) == 0, Markers: rng.IntN(6) == 0}}
	cfg := verbs.QPConfig{
		SendDepth: 2 << rng.IntN(8), RecvDepth: 512, ReadSinkLocalWrite: rng.IntN(2) == 0,
		IRD: 1 << rng.IntN(7), ORD: 1 << rng.IntN(7),
	}
	if rng.IntN(2) == 0 {
		cfg.PauseOnEmptyRQ, cfg.SetAside = true, rng.IntN(3)*3000
	}
	shares := rng.IntN(4) == 0
	m.name = fmt.Sprintf("seed %d: %s, %+v, depth %d, IRD %d, ORD %d, pause %v, aside %d, shared %v", seed, w.name, params.MPA, cfg.SendDepth, cfg.IRD, cfg.ORD, cfg.PauseOnEmptyRQ, cfg.SetAside, shares)
	for i := range m.parties {
		s := newSide(t, cfg)
		p := &party{side: s, m: m, rng: rand.New(rand.NewPCG(rng.Uint64(), 1)), waits: rng.IntN(2) == 0, late: cfg.PauseOnEmptyRQ, depth: cfg.SendDepth, bad: -1}
		if shares {
			own := cfg
			p.srq = must(s.pd.CreateSRQ(verbs.SRQConfig{WRs: 512}))(t)
			own.SRQ, p.late, p.waits = p.srq, false, false
			s.qp = s.newQP(own)
		}
		p.mrs = [2]*verbs.MR{s.mr, s.region(0, len(s.buf), allRights)}
		for at := range targetsOff {
			s.buf[at] = byte(p.rng.Uint32())
		}
		p.want = bytes.Clone(s.buf)
		for k := range p.words {
			p.words[k] = []uint64{0}
		}
		p.target, p.sink, p.area = targetsOff, sinksOff, arrivalsOff
		m.parties[i] = p
	}
	a, b := m.parties[0], m.parties[1]
	a.peer, b.peer = b, a
	w.connect(t, a.qp, b.qp, params)
	return m
}

// play has both sides post and poll until each has what it waits for, or sees the end.
func (m *mixture) play() {
	var wg sync.WaitGroup
	for _, p := range m.parties {
		if !p.late {
			check(m.t, p.receives(len(p.arrivals)))
		}
	}
	for _, p := range m.parties {
		sends, receives := p.rng.Uint64(), p.rng.Uint64()
		wg.Go(func() { p.send(rand.New(rand.NewPCG(sends, 2))) })
		wg.Go(func() { p.receive(rand.New(rand.NewPCG(receives, 3))) })
	}
	nettest.AwaitGroup(m.t, &wg)
}

// receives posts n more receives.
func (p *party) receives(n int) error {
	for _, a := range p.arrivals[p.ready:][:n] {
		post := p.qp.PostRecv
		if p.srq != nil {
			post = p.srq.PostRecv
		}
		if err := post(a.RecvWR); err != nil {
			return err
		}
		p.ready++
	}
	return nil
}

// send posts all requests, in lists, and takes their completions.
func (p *party) send(rng *rand.Rand) {
	var wcs [20]verbs.WC
	for last := uint64(len(p.requests) - 1); len(p.requests) > 0; {
		over, more := p.over(), false
		if rest := p.requests[p.posted:]; len(rest) > 0 && !over {
			var list []verbs.SendWR
			for _, r := range rest[:min(len(rest), 1+rng.IntN(60))] {
				list = append(list, r.SendWR)
			}
			n, err := p.qp.PostSends(list)
			p.posted += n
			more = err == nil && p.posted < len(p.requests)
			if err != nil && !errors.Is(err, verbs.ErrFull) && !errors.Is(err, verbs.ErrState) {
				p.t.Errorf("%s: posting: %v", p.m.name, err)
				return
			}
		}
		n := p.sendCQ.Poll(wcs[:1+rng.IntN(len(wcs))])
		p.sent = append(p.sent, wcs[:n]...)
		if n > 0 {
			for i := range wcs[:n] {
				p.checkAnswer(&wcs[i])
			}
			if wcs[n-1].ID == last {
				return
			}
		} else if over {
			return
		} else if !more { // one that is signaled is outstanding
			p.pause(p.sendCQ)
		}
	}
}

// receive takes the completions of all receives, and posts those that are still to be posted.
func (p *party) receive(rng *rand.Rand) {
	var wcs [20]verbs.WC
	for len(p.received) < len(p.arrivals) {
		over := p.over()
		if rest := len(p.arrivals) - p.ready; rest > 0 && !over && p.ready-len(p.received) < 1+rng.IntN(40) {
			if err := p.receives(min(rest, 1+rng.IntN(40))); err != nil && !errors.Is(err, verbs.ErrState) {
				p.t.Errorf("%s: posting receives: %v", p.m.name, err)
				return
			}
		}
		n := p.recvCQ.Poll(wcs[:1+rng.IntN(len(wcs))])
		for i := range wcs[:n] {
			p.checkArrival(&wcs[i], len(p.received)+i)
		}
		p.received = append(p.received, wcs[:n]...)
		if n == 0 && over {
			return
		} else if n == 0 {
			p.pause(p.recvCQ)
		}
	}
}

func (p *party) over() bool { return p.qp.State() != verbs.RTS }

// pause waits for a completion, or lets others run.
func (p *party) pause(cq *verbs.CQ) {
	if !p.waits {
		runtime.Gosched()
		return
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	if err := cq.Wait(ctx); err != nil {
		p.t.Errorf("%s: waiting: %v", p.m.name, err)
	}
}
