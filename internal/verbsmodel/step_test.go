package verbsmodel_test

import (
	"errors"
	"fmt"

	"github.com/weft-rdma/weft/verbs"
)

// The steps of a run.

// act makes one step: it does something, and has the model do it.
func (w *world) act() {
	q := w.qps[w.rng.IntN(len(w.qps))]
	do := func(what string, f func()) {
		w.did = what
		w.counts[what]++
		f()
	}
	// Most of the time queue pairs are to be connected.
	switch n := w.rng.IntN(100); {
	case q.state != verbs.RTS && n < 30:
		do("connect", func() { w.connectSome() })
	case q.state == verbs.Error && n < 70:
		do("change state", func() { w.modify(q, verbs.Idle) })
	case n < 40:
		do("post", func() { w.post(q) })
	case n < 48:
		do("post at both", func() { w.postBoth() })
	case n < 66:
		do("post receives", func() { w.postReceives(q) })
	case n < 76:
		do("poll some", func() { w.poll(1 + w.rng.IntN(8)) })
	case n < 82:
		do("poll all", func() { w.poll(0) })
	case n < 85:
		do("change state", func() {
			w.modify(q, pick(w, verbs.Idle, verbs.RTS, verbs.Closing, verbs.Terminate, verbs.Error))
		})
	case n < 88:
		do("resize", func() { w.resize(q) })
	case n < 89:
		do("destroy", func() { w.destroy(q) })
	default:
		do("memory", func() { w.manage(w.hosts[w.rng.IntN(2)]) })
	}
}

// wantError fails the test unless err is want, nil included.
func (w *world) wantError(err, want error) {
	w.t.Helper()
	if !errors.Is(err, want) {
		w.fail("the error is %v, expected %v", err, want)
	}
}

// length of a request's scatter/gather list, in octets.
func length(sgl []verbs.SGE) (n int) {
	for _, e := range sgl {
		n += int(e.Length)
	}
	return n
}

// asks reports that an operation completes when the peer has answered.
func asks(op verbs.Op) bool {
	return op == verbs.OpRead || op == verbs.OpReadInvalidate || op == verbs.OpFetchAdd || op == verbs.OpCmpSwap
}

// invalidates reports that an operation takes an STag back.
func invalidates(op verbs.Op) bool {
	return op == verbs.OpSendInvalidate || op == verbs.OpSendSEInvalidate || op == verbs.OpReadInvalidate || op == verbs.OpInvalidate
}

// accept is a request posted to the model.
func (q *queuePair) accept(wr *verbs.SendWR) {
	s := &slot{send: *wr, id: wr.ID, sgl: wr.SGL}
	q.sends = append(q.sends, s)
	defer func() {
		outcome := "held"
		if s.done {
			outcome = s.want[0].String()
		}
		if outcome == "success" && q.state != verbs.RTS {
			outcome = "refused by the peer"
		}
		q.w.counts[wr.Op.String()+": "+outcome]++
	}()
	switch {
	case q.state == verbs.Error:
		s.finish(verbs.Flushed)
	case q.state == verbs.RTS && !q.fenced:
		q.execute(s)
	}
}

// post posts a list of requests; the last may be one that fails.
func (w *world) post(q *queuePair) {
	if q.state != verbs.RTS && w.chance(80) {
		return
	}
	attempts, sure := 1+w.rng.IntN(6), false
	if p := q.peer; p != nil && p.fenced && p.held() > 0 {
		if !p.clear(q) {
			return
		}
		attempts, sure = 1, true // it sets off what the peer has waiting
	}
	room := q.cfg.SendDepth - len(q.sends)
	var list []verbs.SendWR
	var want error
	for reads, began := false, q.state; attempts > 0 && q.state == began; attempts-- {
		wr := w.request(q, anywhere, w.chance(40))
		if local, ok := w.localRequest(q, reads, sure); ok {
			wr = local
		} else if !q.fits(&wr, 0) && (reads || sure || length(wr.SGL) > wildLength || w.chance(97)) {
			continue // it would be refused: in the middle, while something is under way, or once too often
		}
		if reads && !asks(wr.Op) {
			// What follows a Read may overtake its answer (Verbs §8.2.2.2).
			wr.Flags |= verbs.ReadFence
		}
		list = append(list, wr)
		w.logf("%v (%v, fenced %v) to %v: %+v", q, q.state, q.fenced, q.peer, wr)
		if room--; room < 0 {
			want = verbs.ErrFull
			break
		}
		reads = reads || asks(wr.Op)
		q.accept(&wr)
	}
	n, err := q.qp.PostSends(list)
	w.wantError(err, want)
	if expected := min(len(list), len(list)+room); n != expected {
		w.fail("%v: %d posted, expected %d", q, n, expected)
	}
	q.sends = trim(q.sends)
}

// postBoth posts to two queue pairs at the same time, in different parts of
// memory, what will succeed.
func (w *world) postBoth() {
	a, b := w.qps[w.rng.IntN(len(w.qps))], w.qps[w.rng.IntN(len(w.qps))]
	if a == b || a.peer == nil || b.peer == nil || a.fenced || b.fenced || a.peer.fenced || b.peer.fenced {
		return
	}
	if a.peer.cfg.SRQ != nil && a.peer.cfg.SRQ == b.peer.cfg.SRQ {
		return // which queue pair gets which receive is open
	}
	var lists [2][]verbs.SendWR
	for i, q := range [...]*queuePair{a, b} {
		room, receives, reads := q.cfg.SendDepth-len(q.sends), 0, false
		for range min(room, 1+w.rng.IntN(6)) {
			wr := w.request(q, lanes[i], false)
			if !q.fits(&wr, receives) || invalidates(wr.Op) {
				continue
			}
			if reads && !asks(wr.Op) {
				wr.Flags |= verbs.ReadFence
			}
			reads = reads || asks(wr.Op)
			if wr.Op != verbs.OpWrite && !asks(wr.Op) {
				receives++
			}
			lists[i] = append(lists[i], wr)
			w.logf("%v to %v: %+v", q, q.peer, wr)
		}
	}
	for i, q := range [...]*queuePair{a, b} {
		for j := range lists[i] {
			q.accept(&lists[i][j])
		}
	}
	failed := make(chan error, 2)
	for i, q := range [...]*queuePair{a, b} {
		go func() {
			_, err := q.qp.PostSends(lists[i])
			failed <- err
		}()
	}
	w.must(errors.Join(<-failed, <-failed))
	a.sends, b.sends = trim(a.sends), trim(b.sends)
}

// postReceives posts a list of receives to a queue pair's queue, or to the
// S-RQ.
func (w *world) postReceives(q *queuePair) {
	pd, l, held, depth := q.pd, w.inbox(q), len(q.recvs), q.cfg.RecvDepth
	post := q.qp.PostRecvs
	var shared *sharedQueue
	if q.cfg.SRQ != nil {
		shared = q.host.srq
		pd, l, held, depth = shared.pd, w.inbox(nil), len(shared.slots), shared.depth
		w.wantError(q.qp.PostRecv(verbs.RecvWR{}), verbs.ErrRQOfSRQ)
		post = shared.srq.PostRecvs
	}
	var list []verbs.RecvWR
	for range 1 + w.rng.IntN(6) {
		w.ids++
		sgl, _ := w.list(q.host, access{q, pd, verbs.LocalWrite}, 1000, 3, l)
		if w.chance(2) && len(sgl) > 0 {
			e := &sgl[w.rng.IntN(len(sgl))]
			e.STag, e.TO = w.spoil(q.host, e.STag, e.TO)
		}
		list = append(list, verbs.RecvWR{ID: w.ids, SGL: sgl})
	}
	var want error
	room := min(depth-held, len(list))
	if room < len(list) {
		want = verbs.ErrFull
	}
	for i := range room {
		s := &slot{id: list[i].ID, sgl: list[i].SGL, recv: true}
		if shared != nil {
			shared.slots = append(shared.slots, s)
			continue
		}
		q.recvs = append(q.recvs, s)
		if q.state == verbs.Error {
			s.finishRecv(verbs.OpRecv, verbs.Flushed)
		}
	}
	w.logf("%v: %+v", q, list[:room])
	n, err := post(list)
	w.wantError(err, want)
	if n != room {
		w.fail("%v: %d receives posted, expected %d", q, n, room)
	}
}

// connectSome connects two queue pairs that are Idle, if there are any.
func (w *world) connectSome() {
	for _, i := range w.rng.Perm(len(w.qps)) {
		for _, j := range w.rng.Perm(len(w.qps)) {
			a, b := w.qps[i], w.qps[j]
			if a.host != b.host && a.state == verbs.Idle && b.state == verbs.Idle && (a.held() == 0 || b.held() == 0 && a.clear(b)) {
				w.connect(a, b)
				return
			}
		}
	}
}

// modify asks for a state: the transition table says what comes of it.
func (w *world) modify(q *queuePair, next verbs.State) {
	p := q.peer
	busy := q.waiting() != nil || p != nil && p.waiting() != nil
	if p != nil && busy && next != verbs.Error {
		return // requests behind a fence are not checked here
	}
	w.did = fmt.Sprintf("%s from %v to %v", w.did, q.state, next)
	var want error
	switch {
	case q.state == verbs.Idle && next == verbs.Idle, q.state == verbs.RTS && next == verbs.RTS:
	case q.state == verbs.Idle && next == verbs.RTS:
		want = verbs.ErrLLP
	case q.state == verbs.Idle && next == verbs.Error:
		q.state = verbs.Error
		q.flush(false)
	case q.state == verbs.Error && next == verbs.Idle:
		q.state = verbs.Idle
	case q.state == verbs.RTS && next == verbs.Closing:
		for _, e := range [...]*queuePair{q, p} {
			e.events = append(e.events, verbs.EventLLPCloseComplete)
			e.enter(verbs.Idle)
		}
	case q.state == verbs.RTS && next == verbs.Terminate && q.fenced:
		// No Terminate can be sent (RFC 5044 §7.1.2, Verbs §6.6.2.2).
		q.events = append(q.events, verbs.EventBadClose)
		p.events = append(p.events, verbs.EventLLPReset)
		q.enter(verbs.Error)
		p.enter(verbs.Error)
	case q.state == verbs.RTS && next == verbs.Terminate:
		q.fail(0)
	case q.state == verbs.RTS && next == verbs.Error:
		p.events = append(p.events, verbs.EventLLPReset)
		q.enter(verbs.Error)
		p.enter(verbs.Error)
	default:
		want = verbs.ErrState
	}
	w.logf("%v", q)
	_, err := q.qp.Modify(next, verbs.QPModify{})
	w.wantError(err, want)
}

// resize changes the sizes of queues under whatever they hold.
func (w *world) resize(q *queuePair) {
	cq := w.cqs[q.host.number].cq
	entries := cqEntries - w.rng.IntN(1000) // more than there are completions
	got, err := cq.Resize(entries)
	w.wantError(err, nil)
	if got < entries {
		w.fail("%d entries, expected %d", got, entries)
	}
	if h := q.host; q.cfg.SRQ != nil {
		n := 1 + w.rng.IntN(24)
		var want error
		if n < len(h.srq.slots) {
			want = verbs.ErrShrink
		}
		_, err := h.srq.srq.Modify(verbs.SRQModify{WRs: &n})
		w.wantError(err, want)
		if want == nil {
			h.srq.depth = n
		}
		return
	}
	send, recv := 1+w.rng.IntN(24), 1+w.rng.IntN(24)
	var want error
	switch {
	case q.state == verbs.Error:
		want = verbs.ErrState
	case send < len(q.sends), recv < len(q.recvs):
		want = verbs.ErrShrink
	}
	_, err = q.qp.Modify(q.state, verbs.QPModify{SendDepth: &send, RecvDepth: &recv})
	w.wantError(err, want)
	if want == nil {
		q.cfg.SendDepth, q.cfg.RecvDepth = send, recv
	}
}

// destroy destroys a queue pair and puts another in its place.
func (w *world) destroy(q *queuePair) {
	w.poll(0)
	if q.bound() > 0 {
		w.wantError(q.qp.Destroy(), verbs.ErrQPWindows)
		return
	}
	if p := q.peer; p != nil {
		p.events = append(p.events, verbs.EventLLPReset)
		p.enter(verbs.Error)
	}
	w.wantError(q.qp.Destroy(), nil)
	w.wantError(q.qp.PostSend(verbs.SendWR{Op: verbs.OpSend}), verbs.ErrQP)
	w.drain(q.host)
	w.create(q.host, q)
}
