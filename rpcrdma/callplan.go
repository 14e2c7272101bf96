// This file plans a call: what goes inline, what the responder reads from and
// writes to which memory, and what the header of the call says (RFC 8166 §3.4,
// §3.5, §4.3; RFC 5666 §3).

package rpcrdma

import (
	"cmp"
	"slices"
)

const (
	// sendSegments is the most segments of a chunk that this side sends: what
	// NFS servers have to take (RFC 8267 §6.4.2), and Linux's client sends.
	sendSegments = 16

	// inPlace is the least octets of the program's memory that are exposed where
	// they lie. Less is gathered: a segment costs more than a copy.
	inPlace = 4096

	// minReply is the longest reply header without success and with a verifier
	// of no octets: PROG_MISMATCH.
	minReply = 32
)

// callTerms are what a connection allows to calls.
type callTerms struct {
	call, reply int // inline thresholds, octets
	rules       *Rules
	short       bool   // no chunks at all (RFC 8167 §5.3)
	noReads     bool   // the peer cannot read (RFC 5666 §6.1: maxrdmaread of 0)
	align       uint32 // pad long items by RDMA_MSGP; 0 and 1: not
}

// A callPlan says how a call travels. The zero value is ready; one that is used
// again allocates little once it has grown.
type callPlan struct {
	// header of the call. Its lists belong to the plan; their handles and offsets
	// are zero until who registers the memory in exposed sets them. Credits are
	// left to who sends it.
	header Header

	inline []Run // of the stream, what follows the header
	pad    Run   // of an RDMA_MSGP: how many octets of pad stand before which octet of the stream

	exposed   []exposure
	gather    int  // octets of memory for what is gathered
	gatherAll bool // expose no memory in place for reading

	segments []Segment
	reduced  []Run // items that are in Read chunks, by position
	order    []Run
	length   int // octets of the stream
}

// plan plans the call s.
//
// What fits inline goes so. Else the longest eligible arguments leave the
// stream for Read chunks, as many as it takes, and if it takes more the rest of
// the stream is read from position zero (RFC 8166 §3.5). If the longest
// possible reply does not fit inline, results that have a sink get Write chunks,
// and if the rest does not fit still it gets a Reply chunk (§4.3.3).
//
// A call that this side's own limits do not allow is a [FaultLocal].
func (p *callPlan) plan(s *callShape, t *callTerms) error {
	p.header = Header{XID: s.xid, Version: Version, Proc: ProcMsg, Reads: p.header.Reads[:0], Writes: p.header.Writes[:0], Reply: p.header.Reply[:0]}
	p.inline, p.pad, p.exposed, p.gather, p.gatherAll = p.inline[:0], Run{}, p.exposed[:0], 0, false
	p.segments, p.reduced, p.order, p.length = p.segments[:0], p.reduced[:0], p.order[:0], 0
	total := uint64(0)
	for _, piece := range s.stream {
		total += uint64(len(piece))
	}
	if total > maxStream || total%4 != 0 {
		return faultf(FaultLocal, "call of %d octets, want a multiple of 4, and at most %d", total, maxStream)
	}
	p.length = int(total)
	if !t.short {
		if err := p.planReply(s, t); err != nil {
			return err
		}
	}
	if p.header.Len()+p.length <= t.call {
		p.inline = append(p.inline, Run{0, p.length})
		p.padLast(s, t)
		return nil
	}
	if t.noReads || t.short {
		return faultf(FaultLocal, "call of %d octets after a header of %d: the threshold is %d, and there can be no Read chunk", p.length, p.header.Len(), t.call)
	}
	return p.planReads(s, t)
}

// planReply offers memory for the reply.
func (p *callPlan) planReply(s *callShape, t *callTerms) error {
	fixed := max(s.bound.Fixed, minReply)
	whole := uint64(fixed)
	for _, n := range s.bound.Items {
		whole += rounded(n)
	}
	if uint64(nullLen)+whole <= uint64(t.reply) {
		return nil
	}
	rest, written := whole, uint64(0)
	if !s.protected {
		for i := range min(len(s.sinks), len(s.bound.Items), t.rules.chunks()) {
			// RFC 8166 §3.4.6: a chunk has room for the largest result. A sink that
			// has not is not offered: an empty chunk keeps its place.
			if n := len(s.sinks[i]); n > 0 && n >= s.bound.Items[i] {
				p.exposed = append(p.exposed, exposure{list: exposedWrite, at: i, memory: s.sinks[i]})
				rest -= rounded(s.bound.Items[i])
				written += uint64(n)
			}
		}
	}
	if len(p.exposed) > 0 {
		p.planWrites()
	}
	if written > uint64(t.rules.octets()) || rest > uint64(t.rules.octets()) {
		return faultf(FaultLocal, "a reply of up to %d octets and %d in Write chunks, want at most %d each", rest, written, t.rules.octets())
	}
	if uint64(p.header.Len())+rest > uint64(t.reply) { // RFC 8166 §4.3.3
		n := int(rounded(int(rest)))
		p.exposed = append(p.exposed, exposure{list: exposedReply, part: Run{0, n}})
		p.header.HasReply, p.header.Reply = true, append(p.header.Reply, Segment{Length: uint32(n)})
	}
	return nil
}

// planWrites makes the Write list, up to the last chunk that is exposed.
func (p *callPlan) planWrites() {
	last := p.exposed[len(p.exposed)-1].at
	p.segments = slices.Grow(p.segments, len(p.exposed))
	p.header.Writes = append(p.header.Writes, make([]WriteChunk, last+1)...)
	for _, e := range p.exposed {
		n := len(p.segments)
		p.segments = append(p.segments, Segment{Length: uint32(len(e.memory))})
		p.header.Writes[e.at] = p.segments[n : n+1 : n+1]
	}
}

// replyMemory is how many octets the Reply chunk has.
func (p *callPlan) replyMemory() int { return int(p.header.Reply.Length()) }

// padLast makes an RDMA_MSGP of a call that goes inline, if it may and its last
// item is worth it (RFC 5666 §3.9). That one alone is padded, and must be longer
// than all else that could be by either reading of the threshold.
func (p *callPlan) padLast(s *callShape, t *callTerms) {
	if t.align <= 1 || t.align > MaxAlign || len(s.items) == 0 || s.protected {
		return
	}
	if len(p.exposed) > 0 {
		return
	}
	last := s.items[len(s.items)-1]
	if last.Offset+int(rounded(last.Length)) != p.length {
		return
	}
	other := s.longest
	for _, item := range s.items[:len(s.items)-1] {
		other = max(other, item.Length)
	}
	threshold, ok := MSGPThreshold(uint32(max(other, padItem-1)), uint32(last.Length))
	if !ok {
		return
	}
	padding := Padding{Align: t.align, Threshold: threshold, Header: nullMsgPLen}
	pad := padding.Pad(last.Offset, uint32(last.Length))
	if nullMsgPLen+p.length+pad > t.call {
		return
	}
	p.header.Proc, p.header.Align, p.header.Threshold = ProcMsgP, t.align, threshold
	p.pad = Run{last.Offset, pad}
}

// padItem is the least threshold of padding: what clients of RFC 5666 had.
const padItem = 512

// planReads takes what does not fit inline out of the stream.
func (p *callPlan) planReads(s *callShape, t *callTerms) error {
	if !s.protected {
		for _, item := range s.items {
			if item.Eligible && rounded(item.Length) > readSegmentLen+4 {
				p.order = append(p.order, item.Run)
			}
		}
	}
	// The longest first, so that few have to go.
	slices.SortStableFunc(p.order, func(a, b Run) int { return cmp.Compare(b.Length, a.Length) })
	fits := func() bool {
		p.makeReads(s)
		return p.header.Len()+p.left() <= t.call
	}
	for _, item := range p.order[:min(len(p.order), t.rules.chunks())] {
		p.reduced = append(p.reduced, item)
		slices.SortFunc(p.reduced, func(a, b Run) int { return cmp.Compare(a.Offset, b.Offset) })
		if fits() {
			return p.checkReads(s, t)
		}
	}
	// RFC 8166 §3.5.3: what is left exceeds the threshold still.
	p.header.Proc = ProcNoMsg
	p.reduced = slices.DeleteFunc(p.reduced, func(r Run) bool { return r.Length < inPlace })
	if most := t.rules.chunks() - 1; len(p.reduced) > most {
		p.reduced = p.reduced[:most]
	}
	p.makeReads(s)
	return p.checkReads(s, t)
}

// left is how many octets the stream has without what was reduced.
func (p *callPlan) left() int {
	n := p.length
	for _, r := range p.reduced {
		n -= int(rounded(r.Length))
	}
	return n
}

// rounded is n octets with their roundup.
func rounded(n int) uint64 { return uint64(n) + uint64(Pad(uint64(n))) }

// checkReads holds the plan against this side's limits, and against the
// threshold: chunks of many segments are gathered if the header is too long.
func (p *callPlan) checkReads(s *callShape, t *callTerms) error {
	if p.header.Proc == ProcNoMsg && p.header.Len() > t.call {
		p.gatherAll = true
		p.makeReads(s)
	}
	if n := p.header.Len(); p.header.Proc == ProcNoMsg && n > t.call {
		return faultf(FaultLocal, "header of %d octets, the threshold is %d", n, t.call)
	}
	var total uint64
	for _, r := range p.header.Reads {
		total += uint64(r.Length)
	}
	if total > uint64(t.rules.octets()) {
		return faultf(FaultLocal, "call with %d octets in Read chunks, want at most %d", total, t.rules.octets())
	}
	return nil
}

// makeReads makes the Read list, and what goes inline, of p.header.Proc and
// p.reduced.
func (p *callPlan) makeReads(s *callShape) {
	p.exposed = slices.DeleteFunc(p.exposed, func(e exposure) bool { return e.list == exposedRead })
	p.header.Reads, p.inline, p.gather = p.header.Reads[:0], p.inline[:0], 0
	at := 0
	for _, r := range p.reduced {
		if r.Offset > at {
			p.inline = append(p.inline, Run{at, r.Offset - at})
		}
		at = r.Offset + int(rounded(r.Length))
	}
	if at < p.length {
		p.inline = append(p.inline, Run{at, p.length - at})
	}
	if p.header.Proc == ProcNoMsg {
		p.expose(s.stream, 0, p.inline)
		p.inline = p.inline[:0]
	}
	// The only chunk goes without roundup; else roundup that is not in a chunk
	// would be missing at Linux's server.
	only := len(p.reduced) == 1 && p.header.Proc != ProcNoMsg
	for _, r := range p.reduced {
		n := int(ReadChunkLength(uint32(r.Length), only))
		p.expose(s.stream, uint32(r.Offset), []Run{{r.Offset, n}})
	}
}
