// This file cuts the message at hand into segments, with the memory of each.

package rdmap

import "github.com/weft-rdma/weft/ddp"

// runOctets is how much payload of a message is looked up and cut into segments at a time. A
// Terminate waits for it.
const runOctets = 64 << 10

// segment appends the next segments of the message. It reports false when the
// batch must be written first or the message could not go on.
func (o *outbound) segment() bool { return o.segments(runOctets) }

// segments appends those that have together no more than most octets of payload, and at
// least one.
//
// The memory of an answer is volatile: it belongs to a ULP that does not know of the Read and
// may change it at any moment, and other peers may write it. It is released once it is copied.
func (o *outbound) segments(most int) bool {
	s, m := o.s, &o.msg
	off, n, count := o.ddp.Next(most)
	o.frame = o.ddp.Appended()
	end := o.frame + uint64(count)
	s.cfg.Hold.SetFrames(o.frame, end-1)
	o.pieces = o.pieces[:0]
	volatile := false
	switch {
	case n == 0:
	case m.body != nil:
		o.pieces = append(o.pieces, m.body[off:int(off)+n])
	case m.kind == kindAnswer:
		volatile = true
		var f ddp.Fault
		r := &m.req.read
		if o.pieces, f = s.ulp.Source(o.pieces, r.SourceSTag, r.SourceTO+uint64(off), n); f == ddp.NoFault {
			break
		}
		if count > 1 {
			return o.single()
		}
		return o.refused(o.frame, f)
	default:
		var err error
		o.pieces, err = s.ulp.Gather(o.pieces, m.ticket, uint64(off), n)
		if err == nil && (count == 1 || len(o.pieces) == 1) {
			break
		}
		if count > 1 {
			return o.single()
		}
		return o.failed(o.frame, err)
	}
	var last, copied bool
	if volatile {
		last, copied = o.ddp.AppendVolatile(o.pieces)
	} else {
		last = o.ddp.Append(o.pieces)
	}
	o.pieces = o.pieces[:0]
	o.unsent += n
	if copied {
		s.cfg.Hold.Truncate(o.frame)
	} else if appended := o.ddp.Appended(); appended < end { // the batch is full
		s.cfg.Hold.Truncate(appended)
	}
	o.note(last)
	if last {
		o.finish()
	}
	return true
}

// single appends one segment: memory of several was refused, and those before the one at
// fault are to be sent; or it is of several regions, each of which is to be held for its own
// segments only.
func (o *outbound) single() bool {
	o.s.cfg.Hold.Truncate(o.frame)
	return o.segments(0)
}

// note notes the segments that have been appended by the run at hand.
func (o *outbound) note(last bool) {
	m := &o.msg
	if n := o.ddp.Appended() - o.frame; n > 0 {
		o.inflight.push(o.frame, int(n), o.ddp.Size(), m, last)
	}
	if m.kind == kindAnswer {
		m.req.sent = o.ddp.Offset() // here, as what was written just before is slow to copy
	}
}

// finish notes that the message has been cut to its end.
func (o *outbound) finish() {
	s, m := o.s, &o.msg
	if m.kind == kindAnswer {
		s.requests.pop()
		services[m.req.opcode].count(&o.finished, &m.req)
	}
	o.finished.messages++
}
