// This file plans a call: what goes inline, what the responder reads from and
// writes to which memory, and what the header of the call says (RFC 8166 §3.4,
// §3.5, §4.3; RFC 5666 §3).

package payload

import (
	"cmp"
	"slices"

	"github.com/weft-rdma/weft/rpcrdma/wire"
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

// CallTerms are what a connection allows to calls.
type CallTerms struct {
	Call, Reply int // inline thresholds, octets
	Rules       *wire.Rules
	Short       bool   // no chunks at all (RFC 8167 §5.3)
	NoReads     bool   // the peer cannot read (RFC 5666 §6.1: maxrdmaread of 0)
	Align       uint32 // pad long items by RDMA_MSGP; 0 and 1: not
}

// A CallPlan says how a call travels. The zero value is ready; one that is used
// again allocates little once it has grown.
type CallPlan struct {
	// header of the call. Its lists belong to the plan; their handles and offsets
	// are zero until the caller, which registers the memory in exposed, sets them. The
	// sender sets the credits.
	Header wire.Header

	Inline []Run // of the stream, what follows the header
	Pad    Run   // of an RDMA_MSGP: how many octets of pad stand before which octet of the stream

	Exposures []Exposure
	Gather    int  // octets of memory for what is gathered
	gatherAll bool // expose no memory in place for reading

	segments []wire.Segment
	reduced  []Run // items that are in Read chunks, by position
	order    []Run
	length   int // octets of the stream
}

// Plan plans the call s.
//
// What fits inline goes so. Else the longest eligible arguments leave the
// stream for Read chunks, as many as it takes, and if it takes more the rest of
// the stream is read from position zero (RFC 8166 §3.5). If the longest
// possible reply does not fit inline, results that have a sink get Write chunks,
// and if the rest does not fit still it gets a Reply chunk (§4.3.3).
//
// A call that this side's own limits do not allow is a [wire.FaultLocal].
func (p *CallPlan) Plan(s *CallShape, t *CallTerms) error {
	p.Header = wire.Header{XID: s.XID, Version: wire.Version, Proc: wire.ProcMsg, Reads: p.Header.Reads[:0], Writes: p.Header.Writes[:0], Reply: p.Header.Reply[:0]}
	p.Inline, p.Pad, p.Exposures, p.Gather, p.gatherAll = p.Inline[:0], Run{}, p.Exposures[:0], 0, false
	p.segments, p.reduced, p.order, p.length = p.segments[:0], p.reduced[:0], p.order[:0], 0
	total := uint64(0)
	for _, piece := range s.Stream {
		total += uint64(len(piece))
	}
	if total > maxStream || total%4 != 0 {
		return wire.Errorf(wire.FaultLocal, "call of %d octets, expected a multiple of 4, and at most %d", total, maxStream)
	}
	p.length = int(total)
	if !t.Short {
		if err := p.planReply(s, t); err != nil {
			return err
		}
	}
	if p.Header.Len()+p.length <= t.Call {
		p.Inline = append(p.Inline, Run{0, p.length})
		p.padLast(s, t)
		return nil
	}
	if t.NoReads || t.Short {
		return wire.Errorf(wire.FaultLocal, "call of %d octets after a header of %d: the threshold is %d, and there can be no Read chunk", p.length, p.Header.Len(), t.Call)
	}
	return p.planReads(s, t)
}

// planReply offers memory for the reply.
func (p *CallPlan) planReply(s *CallShape, t *CallTerms) error {
	fixed := max(s.Bound.Fixed, minReply)
	whole := uint64(fixed)
	for _, n := range s.Bound.Items {
		whole += rounded(n)
	}
	if uint64(wire.NullLen)+whole <= uint64(t.Reply) {
		return nil
	}
	rest, written := whole, uint64(0)
	if !s.Protected {
		for i := range min(len(s.Sinks), len(s.Bound.Items), t.Rules.MaxChunks()) {
			// RFC 8166 §3.4.6: a chunk has room for the largest result. A sink that
			// has not is not offered: an empty chunk keeps its place.
			if n := len(s.Sinks[i]); n > 0 && n >= s.Bound.Items[i] {
				p.Exposures = append(p.Exposures, Exposure{List: ExposedWrite, At: i, Memory: s.Sinks[i]})
				rest -= rounded(s.Bound.Items[i])
				written += uint64(n)
			}
		}
	}
	if len(p.Exposures) > 0 {
		p.planWrites()
	}
	if written > uint64(t.Rules.MaxOctets()) || rest > uint64(t.Rules.MaxOctets()) {
		return wire.Errorf(wire.FaultLocal, "a reply of up to %d octets and %d in Write chunks, expected at most %d each", rest, written, t.Rules.MaxOctets())
	}
	if uint64(p.Header.Len())+rest > uint64(t.Reply) { // RFC 8166 §4.3.3
		n := int(rounded(int(rest)))
		p.Exposures = append(p.Exposures, Exposure{List: ExposedReply, Part: Run{0, n}})
		p.Header.HasReply, p.Header.Reply = true, append(p.Header.Reply, wire.Segment{Length: uint32(n)})
	}
	return nil
}

// planWrites makes the Write list, up to the last chunk that is exposed.
func (p *CallPlan) planWrites() {
	last := p.Exposures[len(p.Exposures)-1].At
	p.segments = slices.Grow(p.segments, len(p.Exposures))
	p.Header.Writes = append(p.Header.Writes, make([]wire.WriteChunk, last+1)...)
	for _, e := range p.Exposures {
		n := len(p.segments)
		p.segments = append(p.segments, wire.Segment{Length: uint32(len(e.Memory))})
		p.Header.Writes[e.At] = p.segments[n : n+1 : n+1]
	}
}

// padLast makes an RDMA_MSGP of a call that goes inline, if it may and its last
// item is worth it (RFC 5666 §3.9). That one alone is padded, and must be longer
// than all else that could be by either reading of the threshold.
func (p *CallPlan) padLast(s *CallShape, t *CallTerms) {
	if t.Align <= 1 || t.Align > wire.MaxAlign || len(s.Items) == 0 || s.Protected {
		return
	}
	if len(p.Exposures) > 0 {
		return
	}
	last := s.Items[len(s.Items)-1]
	if last.Offset+int(rounded(last.Length)) != p.length {
		return
	}
	other := s.Longest
	for _, item := range s.Items[:len(s.Items)-1] {
		other = max(other, item.Length)
	}
	threshold, ok := wire.MSGPThreshold(uint32(max(other, padItem-1)), uint32(last.Length))
	if !ok {
		return
	}
	padding := wire.Padding{Align: t.Align, Threshold: threshold, Header: wire.NullMsgPLen}
	pad := padding.Pad(last.Offset, uint32(last.Length))
	if wire.NullMsgPLen+p.length+pad > t.Call {
		return
	}
	p.Header.Proc, p.Header.Align, p.Header.Threshold = wire.ProcMsgP, t.Align, threshold
	p.Pad = Run{last.Offset, pad}
}

// padItem is the least threshold of padding: what clients of RFC 5666 had.
const padItem = 512

// planReads takes what does not fit inline out of the stream.
func (p *CallPlan) planReads(s *CallShape, t *CallTerms) error {
	if !s.Protected {
		for _, item := range s.Items {
			if item.Eligible && rounded(item.Length) > wire.ReadSegmentLen+4 {
				p.order = append(p.order, item.Run)
			}
		}
	}
	// The longest first, so that few have to go.
	slices.SortStableFunc(p.order, func(a, b Run) int { return cmp.Compare(b.Length, a.Length) })
	fits := func() bool {
		p.makeReads(s)
		return p.Header.Len()+p.left() <= t.Call
	}
	for _, item := range p.order[:min(len(p.order), t.Rules.MaxChunks())] {
		p.reduced = append(p.reduced, item)
		slices.SortFunc(p.reduced, func(a, b Run) int { return cmp.Compare(a.Offset, b.Offset) })
		if fits() {
			return p.checkReads(s, t)
		}
	}
	// RFC 8166 §3.5.3: what is left exceeds the threshold still.
	p.Header.Proc = wire.ProcNoMsg
	p.reduced = slices.DeleteFunc(p.reduced, func(r Run) bool { return r.Length < inPlace })
	if most := t.Rules.MaxChunks() - 1; len(p.reduced) > most {
		p.reduced = p.reduced[:most]
	}
	p.makeReads(s)
	return p.checkReads(s, t)
}

// left is how many octets the stream has without what was reduced.
func (p *CallPlan) left() int {
	n := p.length
	for _, r := range p.reduced {
		n -= int(rounded(r.Length))
	}
	return n
}

// rounded is n octets with their roundup.
func rounded(n int) uint64 { return uint64(n) + uint64(wire.Pad(uint64(n))) }

// checkReads holds the plan against this side's limits, and against the
// threshold: chunks of many segments are gathered if the header is too long.
func (p *CallPlan) checkReads(s *CallShape, t *CallTerms) error {
	if p.Header.Proc == wire.ProcNoMsg && p.Header.Len() > t.Call {
		p.gatherAll = true
		p.makeReads(s)
	}
	if n := p.Header.Len(); p.Header.Proc == wire.ProcNoMsg && n > t.Call {
		return wire.Errorf(wire.FaultLocal, "header of %d octets, the threshold is %d", n, t.Call)
	}
	var total uint64
	for _, r := range p.Header.Reads {
		total += uint64(r.Length)
	}
	if total > uint64(t.Rules.MaxOctets()) {
		return wire.Errorf(wire.FaultLocal, "call with %d octets in Read chunks, expected at most %d", total, t.Rules.MaxOctets())
	}
	return nil
}

// makeReads makes the Read list, and what goes inline, of p.header.Proc and
// p.reduced.
func (p *CallPlan) makeReads(s *CallShape) {
	p.Exposures = slices.DeleteFunc(p.Exposures, func(e Exposure) bool { return e.List == ExposedRead })
	p.Header.Reads, p.Inline, p.Gather = p.Header.Reads[:0], p.Inline[:0], 0
	at := 0
	for _, r := range p.reduced {
		if r.Offset > at {
			p.Inline = append(p.Inline, Run{at, r.Offset - at})
		}
		at = r.Offset + int(rounded(r.Length))
	}
	if at < p.length {
		p.Inline = append(p.Inline, Run{at, p.length - at})
	}
	if p.Header.Proc == wire.ProcNoMsg {
		p.expose(s.Stream, 0, p.Inline)
		p.Inline = p.Inline[:0]
	}
	// The only chunk goes without roundup; else roundup that is not in a chunk
	// would be missing at Linux's server.
	only := len(p.reduced) == 1 && p.Header.Proc != wire.ProcNoMsg
	for _, r := range p.reduced {
		n := int(wire.ReadChunkLength(uint32(r.Length), only))
		p.expose(s.Stream, uint32(r.Offset), []Run{{r.Offset, n}})
	}
}
