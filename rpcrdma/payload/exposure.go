// This file says which memory is behind the segments of a call: the program's,
// where it lies, or memory in which small pieces are gathered.

package payload

import (
	"slices"

	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// An Exposure is memory behind one segment of the header.
type Exposure struct {
	List ExposedList
	At   int // index in the Read list, the Write list, or of the Reply chunk's only segment

	// memory is the program's. Without it the segment is a part of the memory for
	// what is gathered, or of the Reply chunk's.
	Memory []byte
	Part   Run
	From   []Run // of the stream: what part gathers
}

// An ExposedList is a chunk list of a header.
type ExposedList uint8

const (
	ExposedRead ExposedList = iota
	ExposedWrite
	ExposedReply
)

// expose appends a Read chunk of runs of the stream.
func (p *CallPlan) expose(stream [][]byte, position uint32, runs []Run) {
	first, gather := len(p.Exposures), p.Gather
	for _, run := range runs {
		eachPiece(stream, run, func(piece []byte, at int) {
			if len(piece) >= inPlace {
				p.Exposures = append(p.Exposures, Exposure{Memory: piece})
				return
			}
			if n := len(p.Exposures); n == first || p.Exposures[n-1].Memory != nil {
				p.Exposures = append(p.Exposures, Exposure{Part: Run{p.Gather, 0}})
			}
			e := &p.Exposures[len(p.Exposures)-1]
			e.From = append(e.From, Run{at, len(piece)})
			e.Part.Length += len(piece)
			p.Gather += len(piece)
		})
	}
	if len(p.Exposures)-first > sendSegments || p.gatherAll {
		p.Exposures, p.Gather = append(p.Exposures[:first], Exposure{Part: Run{Offset: gather}, From: slices.Clone(runs)}), gather
		for _, run := range runs {
			p.Exposures[first].Part.Length += run.Length
		}
		p.Gather += p.Exposures[first].Part.Length
	}
	for i := first; i < len(p.Exposures); i++ {
		e := &p.Exposures[i]
		e.List, e.At = ExposedRead, len(p.Header.Reads)
		n := e.Part.Length
		if e.Memory != nil {
			n = len(e.Memory)
		}
		p.Header.Reads = append(p.Header.Reads, wire.ReadSegment{Position: position, Segment: wire.Segment{Length: uint32(n)}})
	}
}

// eachPiece visits the parts of run in the pieces of a stream, which has it.
func eachPiece(stream [][]byte, run Run, visit func(piece []byte, at int)) {
	at := 0
	for _, piece := range stream {
		from, to := max(run.Offset-at, 0), min(run.Offset+run.Length-at, len(piece))
		if from < to {
			visit(piece[from:to:to], at+from)
		}
		at += len(piece)
	}
}

// Segment is the segment of the header that stands for e. The caller, which registers the
// memory, sets its handle and offset.
func (p *CallPlan) Segment(e *Exposure) *wire.Segment {
	switch e.List {
	case ExposedWrite:
		return &p.Header.Writes[e.At][0]
	case ExposedReply:
		return &p.Header.Reply[e.At]
	}
	return &p.Header.Reads[e.At].Segment
}

// GatherTo copies what is gathered to memory, which has p.Gather octets.
func (p *CallPlan) GatherTo(memory []byte, stream [][]byte) {
	for _, e := range p.Exposures {
		if e.List != ExposedRead || e.Memory != nil {
			continue
		}
		to := memory[e.Part.Offset:][:0]
		for _, run := range e.From {
			to = appendRun(to, stream, run)
		}
	}
}

// AppendMessage appends what the Send of the call holds: the header, and what is
// inline of the stream.
func (p *CallPlan) AppendMessage(dst []byte, stream [][]byte) []byte {
	dst = p.Header.Append(dst)
	for _, run := range p.Inline {
		if before := p.Pad.Offset - run.Offset; p.Pad.Length > 0 && before >= 0 && before <= run.Length {
			dst = appendRun(dst, stream, Run{run.Offset, before})
			dst = append(dst, make([]byte, p.Pad.Length)...)
			run = Run{p.Pad.Offset, run.Length - before}
		}
		dst = appendRun(dst, stream, run)
	}
	return dst
}

// appendRun appends a run of a stream, which has it.
func appendRun(dst []byte, stream [][]byte, run Run) []byte {
	eachPiece(stream, run, func(piece []byte, _ int) { dst = append(dst, piece...) })
	return dst
}
