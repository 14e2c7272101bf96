// This file plans a reply: which octets the responder writes to which segment,
// what goes inline, and what the header of the reply says (RFC 8166 §3.4.6,
// §3.5.3, §4.3).

package payload

import (
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// A Write is an RDMA Write of octets of the unreduced stream of a reply.
type Write struct {
	From    int          // the first octet in the stream
	Segment wire.Segment // where they go; its Length is how many they are
}

// A ReplyPlan says how a reply travels. The zero value is ready; one that is
// used again allocates nothing once it has grown.
type ReplyPlan struct {
	// Header of the reply. The sender sets the credits. Its lists belong to the plan.
	Header wire.Header

	// Writes are to be posted in this order before the Send, so that what they
	// place is there when the reply arrives.
	Writes []Write

	// Inline is what follows the header in the Send: runs of the unreduced
	// stream. An RDMA_NOMSG has none.
	Inline []Run

	segments []wire.Segment
	writes   []wire.WriteChunk
	runs     []Run
}

// Plan plans the reply to call. The unreduced Payload stream of the reply has
// length octets; results are the items in it that the upper-layer binding has
// DDP-eligible, in order, each from its first octet and without its roundup.
// Threshold is the longest Send that the requester takes.
//
// Each result goes to the next Write chunk and, with its roundup, leaves the
// stream; when the chunk offers no octet, or none is left, it stays (RFC 8166
// §4.3.2, RFC 5667 §5). One of no octets uses up its chunk all the same. A
// result that the procedure did not return is not among results and uses none
// (RFC 8166 §4.3.2.2). Write chunks that were not used come back with all
// lengths zero, and so does the Reply chunk when what is left of the stream fits
// inline.
//
// A result that is longer than its chunk, or a stream that fits neither inline
// nor into the Reply chunk, is a [wire.FaultOverrun]: nothing is to be written then
// (RFC 8166 §4.5.3). A responder that may answer by Read list instead (RFC 5666
// §5.1) plans again with a threshold of [math.MaxInt], and finds in Inline what
// it has to expose. Results that are not in order, not at multiples of 4 or not
// within the stream are a [wire.FaultLocal].
func (p *ReplyPlan) Plan(call *wire.Header, length int, results []Run, threshold int) error {
	p.reset(call)
	err := p.plan(call, length, results, threshold)
	if err != nil {
		p.reset(call)
	}
	return err
}

// reset makes the header of a reply that uses no chunk.
func (p *ReplyPlan) reset(call *wire.Header) {
	p.Writes, p.Inline, p.runs = p.Writes[:0], nil, p.runs[:0]
	p.segments, p.writes = p.segments[:0], p.writes[:0]
	for _, c := range call.Writes {
		p.writes = append(p.writes, p.unused(c))
	}
	p.Header = wire.Header{XID: call.XID, Version: wire.Version, Proc: wire.ProcMsg, Writes: p.writes}
	if call.HasReply {
		p.Header.HasReply, p.Header.Reply = true, p.unused(call.Reply)
	}
}

// unused returns a copy of c whose lengths are zero.
func (p *ReplyPlan) unused(c wire.WriteChunk) wire.WriteChunk {
	first := len(p.segments)
	for _, s := range c {
		p.segments = append(p.segments, s.Cut(0, 0))
	}
	return p.segments[first:len(p.segments):len(p.segments)]
}

func (p *ReplyPlan) plan(call *wire.Header, length int, results []Run, threshold int) error {
	at, reduced := 0, length // how far the stream is divided; what is left of it
	end := 0                 // of the result before
	for i, result := range results {
		rounded := uint64(result.Length) + uint64(wire.Pad(uint64(result.Length)))
		if result.Offset < end || result.Offset > length || result.Offset%4 != 0 || result.Length < 0 || rounded > uint64(length-result.Offset) {
			return wire.Errorf(wire.FaultLocal, "result %d has %d octets at %d, expected it within the %d octets of the reply to XID %#x, rounded up, after %d, at a multiple of 4",
				i, result.Length, result.Offset, length, call.XID, end)
		}
		end = result.Offset + int(rounded)
		if i >= len(call.Writes) || call.Writes[i].Length() == 0 {
			continue // RFC 8166 §4.3.2.3, RFC 5667 §5
		}
		if room := call.Writes[i].Length(); uint64(result.Length) > room {
			return wire.Errorf(wire.FaultOverrun, "result %d of XID %#x has %d octets, its Write chunk holds %d", i, call.XID, result.Length, room)
		}
		// RFC 8166 §3.4.6.2: roundup is not written, nor counted.
		p.write(call.Writes[i], p.Header.Writes[i], result)
		p.run(at, result.Offset)
		at = end
		reduced -= int(rounded)
	}
	p.run(at, length)

	if p.Header.Len()+reduced <= threshold {
		p.Inline = p.runs
		return nil
	}
	if room := call.Reply.Length(); !call.HasReply || uint64(reduced) > room {
		return wire.Errorf(wire.FaultOverrun, "reply to XID %#x has %d octets after a header of %d, the threshold is %d, and its Reply chunk holds %d",
			call.XID, reduced, p.Header.Len(), threshold, room)
	}
	p.Header.Proc = wire.ProcNoMsg
	p.write(call.Reply, p.Header.Reply, p.runs...)
	return nil
}

// run adds the octets from at to end to what is left of the stream.
func (p *ReplyPlan) run(at, end int) {
	if end > at {
		p.runs = append(p.runs, Run{at, end - at})
	}
}

// write fills the segments of a chunk, which has room, with the runs, in order and without
// gaps, and sets the lengths in returned.
func (p *ReplyPlan) write(chunk, returned wire.WriteChunk, runs ...Run) {
	i := 0
	for _, run := range runs {
		for run.Length > 0 {
			used := returned[i].Length
			if used == chunk[i].Length {
				i++
				continue
			}
			n := int(min(uint64(run.Length), uint64(chunk[i].Length-used)))
			p.Writes = append(p.Writes, Write{run.Offset, wire.Segment{Handle: chunk[i].Handle, Length: uint32(n), Offset: chunk[i].Offset + uint64(used)}})
			returned[i].Length += uint32(n)
			run.Offset += n
			run.Length -= n
		}
	}
}
