// This file puts the Payload stream of a message together: from which pieces,
// in which order (RFC 8166 §3.4.5, RFC 5666 §3.5, §3.7).

package payload

import (
	"math"

	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// A Run is a range of octets.
type Run struct {
	Offset, Length int
}

// A PieceKind says where a piece of a Payload stream comes from.
type PieceKind uint8

const (
	PieceInline PieceKind = iota // what followed the header in the Send
	PieceRead                    // an RDMA Read from the peer
	PieceZeros                   // roundup that nobody sends
)

func (k PieceKind) String() string {
	switch k {
	case PieceInline:
		return "inline"
	case PieceRead:
		return "read"
	}
	return "zeros"
}

// A Piece is a part of a Payload stream.
type Piece struct {
	Kind    PieceKind
	Length  int          // octets, at least 1
	Offset  int          // of PieceInline: where it begins in what followed the header
	Segment wire.Segment // of PieceRead: what to fetch, of the piece's length
}

// A ReducedItem is what a Read chunk other than that at position zero holds:
// one item that the sender took out of the stream.
type ReducedItem struct {
	Position uint32 // of its first octet in the unreduced stream
	Length   int    // octets in the chunk, with roundup or without: see [wire.Holds]
}

// An Assembly says how the unreduced Payload stream of a message is put
// together. The zero value is ready; one that is used again allocates nothing
// once it has grown.
type Assembly struct {
	Pieces []Piece       // in the order of the stream
	Items  []ReducedItem // in the order of the stream; to be held against the upper-layer binding
	Length int           // octets in all pieces

	source []Piece // what is not reduced
	next   int     // the first of source that is not used up
	left   int     // octets in source from there
	sorted []wire.ReadSegment
}

// Plan finds the pieces of the message with header h, whose lists may be in any
// order. Inline is how many octets followed the header, and pads, in ascending
// order, which of them are pads of an RDMA_MSGP; those of an RDMA_NOMSG are not
// used.
//
// A chunk whose position is not reached by what precedes it, or has been passed
// by it, is a [wire.FaultStream]; a list beyond the limits is a [wire.FaultChunk]. The
// plan is then empty.
func (a *Assembly) Plan(h *wire.Header, inline int, pads []Run, r *wire.Rules) error {
	a.Pieces, a.Items, a.Length, a.source, a.next, a.left = a.Pieces[:0], a.Items[:0], 0, a.source[:0], 0, 0
	err := a.plan(h, inline, pads, r)
	if err != nil {
		a.Pieces, a.Items, a.Length = a.Pieces[:0], a.Items[:0], 0
	}
	return err
}

func (a *Assembly) plan(h *wire.Header, inline int, pads []Run, r *wire.Rules) error {
	a.sorted = append(a.sorted[:0], h.Reads...)
	wire.SortReads(a.sorted)
	if err := r.CheckReads(a.sorted); err != nil {
		return err
	}
	if uint64(max(inline, 0))+uint64(r.MaxOctets())+4*uint64(r.MaxChunks()) > math.MaxInt {
		return wire.Errorf(wire.FaultLocal, "%d octets inline and %d in chunks are too many to count", inline, r.MaxOctets())
	}
	chunks := a.sorted
	if h.Proc == wire.ProcNoMsg {
		chunks = a.sourceChunk(chunks)
	} else if err := a.sourceInline(inline, pads); err != nil {
		return err
	}
	if a.left < 4 {
		return wire.Errorf(wire.FaultChunk, "%v of XID %#x holds %d octets of an RPC message, expected at least its XID", h.Proc, h.XID, a.left)
	}
	for len(chunks) > 0 {
		chunk, rest, octets := wire.NextChunk(chunks)
		if err := a.reduced(chunk, int(octets)); err != nil {
			return err
		}
		chunks = rest
	}
	a.copy(a.left)
	return nil
}

// CheckItems holds what the message has reduced against items, which a binding
// has found in the whole message: each Read chunk has to hold one eligible item,
// with as many octets as its count word says, which stayed in the stream (RFC
// 8166 §6.1). The error is a [wire.FaultStream].
func (a *Assembly) CheckItems(items []Item) error {
	for _, reduced := range a.Items {
		for len(items) > 0 && items[0].Offset < int(reduced.Position) {
			items = items[1:]
		}
		if len(items) == 0 || items[0].Offset != int(reduced.Position) || !items[0].Eligible || !wire.Holds(uint64(reduced.Length), uint32(items[0].Length)) {
			return wire.Errorf(wire.FaultStream, "Read chunk of %d octets at position %d, where no such item may be reduced", reduced.Length, reduced.Position)
		}
		items = items[1:]
	}
	return nil
}

// sourceChunk makes the chunk at position zero the source and returns the
// others.
func (a *Assembly) sourceChunk(sorted []wire.ReadSegment) []wire.ReadSegment {
	for len(sorted) > 0 && sorted[0].Position == 0 {
		a.source = appendRead(a.source, sorted[0].Segment)
		a.left += int(sorted[0].Length)
		sorted = sorted[1:]
	}
	return sorted
}

// sourceInline makes what came inline the source, but for the pads.
func (a *Assembly) sourceInline(inline int, pads []Run) error {
	at := 0
	for _, pad := range pads {
		if pad.Offset < at || pad.Length < 0 || pad.Length > inline-pad.Offset {
			return wire.Errorf(wire.FaultStream, "pad of %d octets at %d, expected it between %d and %d", pad.Length, pad.Offset, at, inline)
		}
		a.inline(at, pad.Offset-at)
		at = pad.Offset + pad.Length
	}
	a.inline(at, inline-at)
	return nil
}

func (a *Assembly) inline(at, n int) {
	if n > 0 {
		a.source = append(a.source, Piece{Kind: PieceInline, Offset: at, Length: n})
		a.left += n
	}
}

// reduced goes on to the position of a chunk and puts its octets there.
func (a *Assembly) reduced(chunk []wire.ReadSegment, octets int) error {
	position := chunk[0].Position
	if uint64(position) < uint64(a.Length) {
		return wire.Errorf(wire.FaultStream, "Read chunk at position %d, expected it at %d or after: what precedes it ends there", position, a.Length)
	}
	gap := uint64(position) - uint64(a.Length)
	if gap > uint64(a.left) {
		return wire.Errorf(wire.FaultStream, "Read chunk at position %d, expected it at %d or before: no more precedes it", position, a.Length+a.left)
	}
	a.copy(int(gap))
	a.Items = append(a.Items, ReducedItem{position, octets})
	for _, s := range chunk {
		a.Pieces = appendRead(a.Pieces, s.Segment)
	}
	a.Length += octets
	// RFC 5666 §3.7: roundup that is not in the chunk is implied, and taken
	// from nowhere.
	if n := wire.Pad(uint64(a.Length)); n > 0 {
		a.Pieces = append(a.Pieces, Piece{Kind: PieceZeros, Length: n})
		a.Length += n
	}
	return nil
}

// copy moves n octets, which are there, from the source to the plan.
func (a *Assembly) copy(n int) {
	a.Length += n
	a.left -= n
	for n > 0 {
		next := &a.source[a.next]
		piece := *next
		piece.Length = min(n, next.Length)
		switch next.Kind {
		case PieceRead:
			piece.Segment = next.Segment.Cut(0, piece.Length)
			next.Segment = next.Segment.Cut(piece.Length, next.Length-piece.Length)
		case PieceInline:
			next.Offset += piece.Length
		}
		next.Length -= piece.Length
		n -= piece.Length
		a.Pieces = append(a.Pieces, piece)
		if next.Length == 0 {
			a.next++
		}
	}
}

// appendRead appends the fetching of s, if there is anything to fetch.
func appendRead(pieces []Piece, s wire.Segment) []Piece {
	if s.Length == 0 { // RFC 8166 §3.4.3: an empty segment
		return pieces
	}
	return append(pieces, Piece{Kind: PieceRead, Length: int(s.Length), Segment: s})
}
