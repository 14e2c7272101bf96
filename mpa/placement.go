// This file is ULPDUs that are read straight to their places together: the payload of each,
// and in the gaps between, which go nowhere, the end of one FPDU and the headers of the next.

package mpa

import (
	"fmt"
	"sync"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/mpa/internal/fpdu"
)

// mostJoined is how many ULPDUs are joined to the one begun: the segments of 1 MiB.
const mostJoined = 16

// gapRoom is room for the longest gap, in octets: pad and CRC, the length field and headers.
const gapRoom = 3 + fpdu.CRCSize + fpdu.LengthSize + headSize

// A placement is what of the ULPDU begun, and of those joined to it, is to be read.
type placement struct {
	off, end int // of the payload still to come, as the Sink counts
	gaps     []gap
	passed   int // gaps before it have been read
	joined   []joined

	scrap   [gapRoom]byte // where all gaps go
	windows [][]byte      // of the Sink; kept for its memory, as pieces is
	pieces  [][]byte
}

// A gap is n octets of the stream in front of octet at of the payload.
type gap struct{ at, n int }

// A joined is a ULPDU that has been joined.
type joined struct {
	head [fpdu.LengthSize + headSize]byte // its first octets, and the length field before them
	n    int                              // its length
}

var placements = sync.Pool{New: func() any {
	return &placement{
		gaps:    make([]gap, 0, mostJoined),
		joined:  make([]joined, 0, mostJoined),
		windows: make([][]byte, 0, 2*mostJoined),
		pieces:  make([][]byte, 0, 4*mostJoined),
	}
}}

// startPlacement returns that of octets [off, n) of the ULPDU begun.
func (a *readAhead) startPlacement(off, n int) *placement {
	if a.placement == nil {
		a.placement = placements.Get().(*placement)
	}
	p := a.placement
	p.off, p.end, p.passed = off, n, 0
	p.gaps, p.joined = p.gaps[:0], p.joined[:0]
	return p
}

// join asks sink about the ULPDUs that follow the one begun, of n octets, as far as their
// headers can be peeked at.
func (p *placement) join(sink JoiningSink, from direct, n int) {
	at := p.end - p.off // octets of the stream before the end of the last ULPDU
	for len(p.joined) < mostJoined && sink.MayJoin() {
		tail := fpdu.Padding(n) + fpdu.CRCSize
		p.joined = append(p.joined, joined{})
		j := &p.joined[len(p.joined)-1]
		if !from.peek(at+tail, j.head[:]) || !p.add(sink, j, tail) {
			p.joined = p.joined[:len(p.joined)-1]
			return
		}
		n = j.n
		at += tail + fpdu.LengthSize + n
	}
}

// add joins j, if it may be joined. tail is the length of pad and CRC in front of it.
func (p *placement) add(sink JoiningSink, j *joined, tail int) bool {
	j.n, _, _ = fpdu.At(j.head[:], 0, false)
	if j.n > MaxMULPDU {
		return false
	}
	skip, ok := sink.Join(j.head[fpdu.LengthSize:], j.n)
	if ok {
		p.gaps = append(p.gaps, gap{p.end, tail + fpdu.LengthSize + skip})
		p.end += j.n - skip
	}
	return ok
}

// place returns where the rest is to be read to: the windows of the Sink, which are held until
// release, with the gaps between, and then more. With an error nothing is held.
func (p *placement) place(s Sink, more []byte) ([][]byte, error) {
	windows, err := s.Window(p.windows[:0], p.off)
	if err != nil {
		return nil, err
	}
	p.windows = windows
	if have := length(windows); have != p.end-p.off {
		p.release(s)
		return nil, fmt.Errorf("mpa: the sink has memory for %d octets, expected %d", have, p.end-p.off)
	}
	p.pieces = p.pieces[:0]
	off := p.off
	for _, g := range p.gaps[p.passed:] {
		for off < g.at {
			k := min(len(windows[0]), g.at-off)
			p.pieces = append(p.pieces, windows[0][:k])
			if windows[0] = windows[0][k:]; len(windows[0]) == 0 {
				windows = windows[1:]
			}
			off += k
		}
		p.pieces = append(p.pieces, p.scrap[:g.n])
	}
	p.pieces = append(append(p.pieces, windows...), more)
	return p.pieces, nil
}

// unwritable tells the Sink that the system could not write to a place, and returns the Sink's error.
func (p *placement) unwritable(s Sink) error {
	off := p.off
	for _, piece := range p.pieces[:len(p.pieces)-1] { // without what follows what is placed
		if len(piece) == 0 || &piece[0] == &p.scrap[0] {
			continue // a gap
		}
		n, fault := pages.Writable(piece)
		if off += n; fault == nil {
			continue
		}
		// The Sink names the segment that the last Window begins in.
		if _, err := s.Window(nil, off); err != nil {
			return err
		}
		return s.Unwritable(fault)
	}
	return s.Unwritable(&pages.Fault{})
}

// release ends the hold of the windows, and keeps nothing of them.
func (p *placement) release(s Sink) {
	s.Release()
	clear(p.windows)
	clear(p.pieces)
}

func length(pieces [][]byte) (n int) {
	for _, p := range pieces {
		n += len(p)
	}
	return n
}

// read notes that the next n octets have been read, and returns how many of them were
// behind all that is placed.
func (p *placement) read(n int) (behind int) {
	for ; p.passed < len(p.gaps); p.passed++ {
		g := &p.gaps[p.passed]
		k := min(n, g.at-p.off)
		p.off, n = p.off+k, n-k
		k = min(n, g.n)
		g.n, n = g.n-k, n-k
		if n == 0 {
			return 0
		}
	}
	k := min(n, p.end-p.off)
	p.off += k
	return n - k
}

// last is the length of the last ULPDU, if that of the first is n.
func (p *placement) last(n int) int {
	if k := len(p.joined); k > 0 {
		return p.joined[k-1].n
	}
	return n
}

// free gives p back. It refers to nothing of the Sink's.
func (p *placement) free() { placements.Put(p) }
