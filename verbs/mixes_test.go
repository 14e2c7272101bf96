package verbs_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
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

// plan makes up n requests, of which number bad fails. The last is a Send: when it has arrived all
// else has.
func (p *party) plan(n, bad int) {
	p.bad = bad
	op, length := verbs.OpWrite, 0
	signals, since := 1<<p.rng.IntN(6), 0
	var before []byte // the peer's memory in front of the one that fails
	for i := range n {
		if p.rng.IntN(8) == 0 { // most are like those before them
			op = p.anOp()
		}
		if p.rng.IntN(4) == 0 {
			length = p.aLength()
		}
		if i == n-1 {
			op = verbs.OpSend
		}
		wr := verbs.SendWR{ID: uint64(i), Op: op}
		if since++; since >= p.depth/2 || p.rng.IntN(signals) == 0 || i == n-1 {
			wr.Flags, since = verbs.Signaled, 0
		}
		if p.rng.IntN(24) == 0 {
			wr.Flags |= verbs.ReadFence
		}
		if i == bad {
			before, p.peer.whole = bytes.Clone(p.peer.want), len(p.peer.arrivals)
		}
		p.requests = append(p.requests, p.request(wr, length))
		if i == bad {
			p.spoil(&p.requests[i])
		}
	}
	if before != nil {
		p.peer.want = before
	} else {
		p.peer.whole = len(p.peer.arrivals)
	}
}

func (p *party) anOp() verbs.Op {
	ops := []verbs.Op{verbs.OpWrite, verbs.OpSend, verbs.OpSendSE, verbs.OpRead, verbs.OpFetchAdd}
	if p.rng.IntN(4) == 0 {
		ops = []verbs.Op{verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpReadInvalidate, verbs.OpInvalidate, verbs.OpImmediate, verbs.OpImmediateSE}
	}
	return ops[p.rng.IntN(len(ops))]
}

func (p *party) aLength() int {
	switch p.rng.IntN(12) {
	case 0:
		return 0
	case 1:
		return p.rng.IntN(2000)
	case 2:
		return p.rng.IntN(400) + 300 // about what goes in runs
	}
	return 1 + p.rng.IntN(100)
}

// request completes wr, and notes what comes of it.
func (p *party) request(wr verbs.SendWR, length int) request {
	r := request{SendWR: wr}
	switch wr.Op {
	case verbs.OpWrite:
		p.write(&r, length)
	case verbs.OpRead, verbs.OpReadInvalidate:
		p.read(&r, length)
	case verbs.OpFetchAdd:
		p.add(&r)
	case verbs.OpInvalidate:
		r.gone = p.region(0, 8, allRights)
		r.Invalidate = r.gone.STag()
	default:
		p.message(&r, length)
	}
	return r
}

// list returns a list of octets that nobody writes, and the octets.
func (p *party) list(n int) (sgl []verbs.SGE, octets []byte) {
	pieces := 1
	if p.rng.IntN(10) == 0 {
		pieces = 2 + p.rng.IntN(2)
	}
	mr := p.mrs[p.rng.IntN(20)/19] // mostly the first
	for i := range pieces {
		k := n
		if i < pieces-1 {
			k = p.rng.IntN(n + 1)
		}
		n -= k
		off := p.rng.IntN(targetsOff - k)
		sgl = append(sgl, mr.SGE(off, k))
		octets = append(octets, p.want[off:off+k]...)
		mr = p.mrs[p.rng.IntN(2)]
	}
	return sgl, octets
}

// write writes to memory of its own, or once more to a part of some.
func (p *party) write(r *request, n int) {
	at := span{p.peer.target, n}
	if over := p.rng.IntN(6 * (len(p.written) + 1)); over < len(p.written) {
		at = p.written[over]
		k := p.rng.IntN(at.n + 1)
		at.off, at.n = at.off+k, at.n-k
	} else {
		p.peer.target += n + p.rng.IntN(3)
		p.written = append(p.written, at)
	}
	sgl, octets := p.list(at.n)
	copy(p.peer.want[at.off:], octets)
	r.SGL, r.Remote = sgl, p.peer.mr.Remote(at.off)
}

// read reads what nobody writes, or what has been written and is left alone from now on.
func (p *party) read(r *request, n int) {
	from := span{p.rng.IntN(targetsOff - n), n}
	if k := p.rng.IntN(2 * (len(p.written) + 1)); k < len(p.written) {
		from = p.written[k]
		p.written = slices.Delete(p.written, k, k+1)
	}
	into := p.mrs[p.rng.IntN(20)/19]
	if r.Op == verbs.OpReadInvalidate {
		into = p.region(0, len(p.buf), allRights)
		r.gone = into
	}
	r.SGL, r.Remote = []verbs.SGE{into.SGE(p.sink, from.n)}, p.peer.mr.Remote(from.off)
	copy(p.want[p.sink:], p.peer.want[from.off:from.off+from.n])
	p.sink += from.n + p.rng.IntN(3)
}

func (p *party) add(r *request) {
	p.sink = (p.sink + 7) &^ 7
	k := p.rng.IntN(len(p.words))
	r.Atomic.Data = p.rng.Uint64()
	r.SGL, r.Remote = []verbs.SGE{p.mr.SGE(p.sink, 8)}, p.peer.mr.Remote(wordsOff+8*k)
	values := p.peer.words[k]
	last := values[len(values)-1]
	binary.NativeEndian.PutUint64(p.want[p.sink:], last)
	last += r.Atomic.Data
	binary.NativeEndian.PutUint64(p.peer.want[wordsOff+8*k:], last)
	p.peer.words[k] = append(values, last)
	p.sink += 8
}

// message sends, and has the peer post a receive that is long enough.
func (p *party) message(r *request, n int) {
	q := p.peer
	a := arrival{want: verbs.WC{ID: uint64(len(q.arrivals)), QP: q.qp, Op: verbs.OpRecv}}
	switch r.Op {
	case verbs.OpImmediate, verbs.OpImmediateSE:
		binary.BigEndian.PutUint64(r.Immediate[:], p.rng.Uint64())
		a.want.Op, a.want.Immediate, a.want.Bytes, n = verbs.OpRecvImmediate, r.Immediate, 8, 0
	case verbs.OpSendInvalidate, verbs.OpSendSEInvalidate:
		a.gone = q.region(0, 8, allRights)
		r.Invalidate = a.gone.STag()
		a.want.HasInvalidated, a.want.Invalidated = true, r.Invalidate
		fallthrough
	default:
		var octets []byte
		r.SGL, octets = p.list(n)
		copy(q.want[q.area:], octets)
		a.want.Bytes = uint32(n)
	}
	a.want.Solicited = r.Op == verbs.OpSendSE || r.Op == verbs.OpSendSEInvalidate || r.Op == verbs.OpImmediateSE
	a.ID = a.want.ID
	for n > 0 || q.rng.IntN(3) == 0 { // in pieces, and with more room than it takes
		k := n
		if len(a.SGL) < 3 && q.rng.IntN(8) == 0 {
			k = q.rng.IntN(n + 1)
		}
		room := k
		if k == n {
			room += q.rng.IntN(3)
		}
		a.SGL = append(a.SGL, q.mrs[q.rng.IntN(20)/19].SGE(q.area, room))
		q.area += room
		if n -= k; n == 0 {
			break
		}
	}
	q.arrivals = append(q.arrivals, a)
}

// spoil has a request fail.
func (p *party) spoil(r *request) {
	nowhere := verbs.SGE{STag: 0xdddddd11, Length: 1}
	p.far = p.rng.IntN(3) > 0
	switch r.Op {
	case verbs.OpInvalidate:
		p.far, r.gone, r.Invalidate = false, nil, nowhere.STag
		return
	case verbs.OpRead, verbs.OpReadInvalidate, verbs.OpFetchAdd: // it is the answer that has no place
		if !p.far {
			p.far = true
			r.Op, r.gone, r.SGL = verbs.OpWrite, nil, []verbs.SGE{p.mr.SGE(0, 1)}
		}
	case verbs.OpImmediate, verbs.OpImmediateSE:
		p.far = false
		r.Op = verbs.OpWrite
	}
	switch {
	case !p.far:
		r.SGL = []verbs.SGE{nowhere}
		if p.rng.IntN(2) == 0 {
			r.SGL = []verbs.SGE{p.mr.SGE(len(p.buf)-1, 1)}
			r.SGL[0].Length = 2
		}
	case r.Op == verbs.OpFetchAdd && p.rng.IntN(2) == 0:
		r.Remote.TO++
	case r.Op == verbs.OpRead || r.Op == verbs.OpReadInvalidate || r.Op == verbs.OpFetchAdd || r.Op == verbs.OpWrite:
		if r.Op != verbs.OpFetchAdd && (len(r.SGL) > 1 || r.SGL[0].Length == 0) {
			r.SGL = []verbs.SGE{p.mr.SGE(0, 1)}
		}
		if p.rng.IntN(2) == 0 {
			r.Remote.STag = nowhere.STag
		} else {
			r.Remote.TO = uint64(len(p.buf)) - uint64(r.SGL[0].Length)/2
		}
	case r.Op == verbs.OpSendInvalidate || r.Op == verbs.OpSendSEInvalidate:
		r.SGL, r.Invalidate = nil, nowhere.STag
	default: // the receive is too short
		r.SGL = []verbs.SGE{p.mr.SGE(0, 8)}
		p.peer.arrivals[p.peer.whole].SGL = []verbs.SGE{p.peer.mr.SGE(arrivalsOff-4, 3), p.peer.mr.SGE(arrivalsOff, 4)}
	}
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

// checkAnswer checks what an operation has brought, as soon as it has completed.
func (p *party) checkAnswer(wc *verbs.WC) {
	r := &p.requests[wc.ID]
	if wc.Status != verbs.Success {
		return
	}
	switch r.Op {
	case verbs.OpRead, verbs.OpReadInvalidate, verbs.OpFetchAdd:
		e := &r.SGL[0]
		if got, want := p.buf[e.TO:][:e.Length], p.want[e.TO:][:e.Length]; !bytes.Equal(got, want) {
			p.t.Errorf("%s: %v %d has brought % x, expected % x", p.m.name, r.Op, wc.ID, got, want)
		}
	}
	if r.gone != nil && r.gone.Valid() {
		p.t.Errorf("%s: %v %d did not invalidate", p.m.name, r.Op, wc.ID)
	}
}

// checkArrival checks receive number i as soon as it has completed.
func (p *party) checkArrival(wc *verbs.WC, i int) {
	if i >= p.whole {
		return
	}
	a := &p.arrivals[i]
	got, want := fmt.Sprint(wc.ID, wc.Op, wc.Status, wc.Solicited, wc.Bytes, wc.Immediate, wc.HasInvalidated, wc.Invalidated),
		fmt.Sprint(a.want.ID, a.want.Op, a.want.Status, a.want.Solicited, a.want.Bytes, a.want.Immediate, a.want.HasInvalidated, a.want.Invalidated)
	if got != want || wc.QP != p.qp {
		p.t.Errorf("%s: arrival %d is %v, expected %v", p.m.name, i, got, want)
	}
	for _, e := range a.SGL {
		if !bytes.Equal(p.buf[e.TO:][:e.Length], p.want[e.TO:][:e.Length]) {
			p.t.Errorf("%s: arrival %d has other octets", p.m.name, i)
		}
	}
	if a.gone != nil && a.gone.Valid() {
		p.t.Errorf("%s: arrival %d did not invalidate", p.m.name, i)
	}
}

// settle waits for the end of a stream that a request has failed on, and takes what is left.
func (p *party) settle() {
	if p.bad < 0 && p.peer.bad < 0 {
		return
	}
	reach(p.t, p.qp, verbs.Error)
	for p.qp.State() == verbs.Error && p.qp.Reset() != nil {
		runtime.Gosched() // until it is flushed
	}
	for _, q := range []struct {
		cq   *verbs.CQ
		into *[]verbs.WC
	}{{p.sendCQ, &p.sent}, {p.recvCQ, &p.received}} {
		var wc [1]verbs.WC
		for q.cq.Poll(wc[:]) > 0 {
			*q.into = append(*q.into, wc[0])
		}
	}
}

// checkSent checks which requests have completed, and how.
func (p *party) checkSent() {
	p.settle()
	next, failed := 0, false
	for _, wc := range p.sent {
		id := int(wc.ID)
		r := &p.requests[id]
		for ; next < id; next++ {
			if p.requests[next].Flags&verbs.Signaled != 0 {
				p.t.Errorf("%s: no completion of %d", p.m.name, next)
			}
		}
		expected := verbs.Success
		switch {
		case id < next:
			p.t.Errorf("%s: request %d completes late, or again", p.m.name, id)
		case wc.Op != r.Op:
			p.t.Errorf("%s: request %d is %v, expected %v", p.m.name, id, wc.Op, r.Op)
		case p.bad < 0:
		case id == p.bad:
			if expected = wc.Status; wc.Status == verbs.Success && !p.mayComplete(id) || wc.Status == verbs.Flushed && !p.mayComplete(id) {
				p.t.Errorf("%s: request %d, %v, completes with %v, though it fails", p.m.name, id, r.Op, wc.Status)
			}
		case !failed && (id < p.bad || p.mayComplete(id)): // the peer refuses before it answers
			if expected = wc.Status; wc.Status != verbs.Success && wc.Status != verbs.Flushed {
				p.t.Errorf("%s: request %d, %v, has failed with %v", p.m.name, id, r.Op, wc.Status)
			}
		default:
			expected = verbs.Flushed
		}
		if wc.Status != expected {
			p.t.Errorf("%s: request %d, %v: %v, expected %v", p.m.name, id, r.Op, wc.Status, expected)
		}
		if wc.Status == verbs.Success && r.Flags&verbs.Signaled == 0 {
			p.t.Errorf("%s: a completion of %d, which is unsignaled", p.m.name, id)
		}
		failed = failed || wc.Status != verbs.Success
		next = id + 1
	}
	for ; next < p.posted; next++ {
		if p.requests[next].Flags&verbs.Signaled != 0 {
			p.t.Errorf("%s: no completion of %d, of %d", p.m.name, next, p.posted)
		}
	}
}

// mayComplete reports that a request may be done when the end of the stream comes: the peer has it, and
// nobody waits for its answer.
func (p *party) mayComplete(id int) bool { return p.far && !p.needsAnswer(id) }

func (p *party) needsAnswer(id int) bool {
	switch p.requests[id].Op {
	case verbs.OpRead, verbs.OpReadInvalidate, verbs.OpFetchAdd:
		return true
	}
	return false
}

// checkReceived checks that all that was to arrive has, and nothing else.
func (p *party) checkReceived() {
	p.settle()
	for i, wc := range p.received {
		if wc.ID != uint64(i) || i < p.whole && wc.Status != verbs.Success || i >= p.whole && wc.Status == verbs.Success {
			p.t.Errorf("%s: receive %d: %d, %v", p.m.name, i, wc.ID, wc.Status)
		}
	}
	if len(p.received) < p.whole || p.srq == nil && len(p.received) != p.ready {
		p.t.Errorf("%s: %d receives completed of %d that were posted, %d messages arrive", p.m.name, len(p.received), p.ready, p.whole)
	}
}

// checkMemory compares all memory with what it is to be.
func (p *party) checkMemory() {
	if p.peer.bad >= 0 { // atomics that have not been answered may have been executed
		for k, values := range p.words {
			at := wordsOff + 8*k
			last := slices.Index(values, binary.NativeEndian.Uint64(p.want[at:]))
			if got := binary.NativeEndian.Uint64(p.buf[at:]); slices.Index(values[:last+1], got) < 0 {
				p.t.Errorf("%s: word %d is %#x, expected one of %#x", p.m.name, k, got, values[:last+1])
			}
			copy(p.want[at:at+8], p.buf[at:])
		}
	}
	for i := range p.buf {
		if p.buf[i] != p.want[i] {
			p.t.Fatalf("%s: octet %#x is %#x, expected %#x", p.m.name, i, p.buf[i], p.want[i])
		}
	}
}
