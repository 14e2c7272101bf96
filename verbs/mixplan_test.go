// The requests of a mixture, and what is to come of each.

package verbs_test

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/weft-rdma/weft/verbs"
)

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
