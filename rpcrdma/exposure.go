// This file says which memory is behind the segments of a call: the program's,
// where it lies, or memory in which small pieces are gathered.

package rpcrdma

import "slices"

// An exposure is memory behind one segment of the header.
type exposure struct {
	list exposedList
	at   int // index in the Read list, the Write list, or of the Reply chunk's only segment

	// memory is the program's. Without it the segment is a part of the memory for
	// what is gathered, or of the Reply chunk's.
	memory []byte
	part   Run
	from   []Run // of the stream: what part gathers
}

// An exposedList is a chunk list of a header.
type exposedList uint8

const (
	exposedRead exposedList = iota
	exposedWrite
	exposedReply
)

// expose appends a Read chunk of runs of the stream.
func (p *callPlan) expose(stream [][]byte, position uint32, runs []Run) {
	first, gather := len(p.exposed), p.gather
	for _, run := range runs {
		eachPiece(stream, run, func(piece []byte, at int) {
			if len(piece) >= inPlace {
				p.exposed = append(p.exposed, exposure{memory: piece})
				return
			}
			if n := len(p.exposed); n == first || p.exposed[n-1].memory != nil {
				p.exposed = append(p.exposed, exposure{part: Run{p.gather, 0}})
			}
			e := &p.exposed[len(p.exposed)-1]
			e.from = append(e.from, Run{at, len(piece)})
			e.part.Length += len(piece)
			p.gather += len(piece)
		})
	}
	if len(p.exposed)-first > sendSegments || p.gatherAll {
		p.exposed, p.gather = append(p.exposed[:first], exposure{part: Run{Offset: gather}, from: slices.Clone(runs)}), gather
		for _, run := range runs {
			p.exposed[first].part.Length += run.Length
		}
		p.gather += p.exposed[first].part.Length
	}
	for i := first; i < len(p.exposed); i++ {
		e := &p.exposed[i]
		e.list, e.at = exposedRead, len(p.header.Reads)
		n := e.part.Length
		if e.memory != nil {
			n = len(e.memory)
		}
		p.header.Reads = append(p.header.Reads, ReadSegment{position, Segment{Length: uint32(n)}})
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

// segment is the segment of the header that e is behind: who registers the memory
// puts handle and offset there.
func (p *callPlan) segment(e *exposure) *Segment {
	switch e.list {
	case exposedWrite:
		return &p.header.Writes[e.at][0]
	case exposedReply:
		return &p.header.Reply[e.at]
	}
	return &p.header.Reads[e.at].Segment
}

// gatherTo copies what is gathered to memory, which has p.gather octets.
func (p *callPlan) gatherTo(memory []byte, stream [][]byte) {
	for _, e := range p.exposed {
		if e.list != exposedRead || e.memory != nil {
			continue
		}
		to := memory[e.part.Offset:][:0]
		for _, run := range e.from {
			to = appendRun(to, stream, run)
		}
	}
}

// appendMessage appends what the Send of the call holds: the header, and what is
// inline of the stream.
func (p *callPlan) appendMessage(dst []byte, stream [][]byte) []byte {
	dst = p.header.Append(dst)
	for _, run := range p.inline {
		if before := p.pad.Offset - run.Offset; p.pad.Length > 0 && before >= 0 && before <= run.Length {
			dst = appendRun(dst, stream, Run{run.Offset, before})
			dst = append(dst, make([]byte, p.pad.Length)...)
			run = Run{p.pad.Offset, run.Length - before}
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
