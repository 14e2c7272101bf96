// This file is the way in: octets are read in bulk and FPDUs opened in the buffer where
// they lie; the payload of a long one may be read straight to its place.

package mpa

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/mpa/internal/fpdu"
)

const (
	// headSize is what of a ULPDU has to be there to ask the Sink to place
	// it: the longer of DDP's headers (RFC 5041 §4.3).
	headSize = 18

	// placeLimit, in octets: with less of a ULPDU missing, reading in bulk and
	// copying is cheaper than a read of its own.
	placeLimit = 24 << 10

	// aheadSize, in octets, is how far a read that places payload goes beyond
	// it: what is small and follows comes with it. Where something long followed
	// the last time aheadLeast is enough, for the CRC field and its headers: what
	// else of it came would have to be copied.
	aheadSize  = 4 << 10
	aheadLeast = 64
)

// A reader is the receiving half. It belongs to one goroutine at a time: that of Receive,
// or over a direct transport the one whose turn it is.
type reader struct {
	transport transport
	direct    direct // transport, if it is one
	fenced    *atomic.Bool
	stats     *counters
	markers   bool
	crc       bool

	readAhead
	pos     uint64 // stream position of buf[start], where an FPDU begins
	frames  uint64 // handed up, and not yet counted in stats
	busy    bool   // something was handed up since the last Idle
	refused bool   // the Sink does not want to place the ULPDU at buf[start]
	series  bool   // the last ULPDU was placed: another may follow

	windows [][]byte // of placeHead, kept for its memory

	sink     Sink         // of the Receive under way
	blocks   BlockingSink // sink, if it is one and visitors leave to Receive what would block it
	joins    JoiningSink  // sink, if it is one
	runs     RunSink      // sink, if it is one
	leaves   bool         // visitors leave to Receive what would block, or can be placed
	visiting bool         // a visitor receives, and must not block
	blocked  bool         // the ULPDU at buf[start] would have blocked a visitor
	failed   error        // what ended the reception in a visit
}

// newReader begins with the octets that start-up read too early.
func newReader(t transport, d direct, p Params, fenced *atomic.Bool, stats *counters) reader {
	return reader{
		transport: t,
		direct:    d,
		fenced:    fenced,
		stats:     stats,
		markers:   p.RecvMarkers,
		crc:       p.CRC,
		readAhead: newReadAhead(p.Early, cmp.Or(p.ReadBuffer, defaultReadBuffer)),
	}
}

func (r *reader) receive(s Sink) error {
	r.sink = s
	r.joins, _ = s.(JoiningSink)
	r.runs, _ = s.(RunSink)
	if r.leaves {
		r.blocks, _ = s.(BlockingSink)
	}
	defer func() { r.sink, r.joins, r.runs = nil, nil, nil }()
	for r.failed == nil {
		r.blocked = false
		if err := r.deliver(s); err != nil {
			return err
		}
		placed, err := r.place(s)
		if err != nil {
			return err
		}
		if placed {
			continue
		}
		r.idle(s)
		if err := r.fill(false); err != nil && r.failed == nil {
			return r.ended(err)
		}
	}
	return r.failed
}

// deliver hands up the ULPDU of every FPDU that is wholly in the buffer.
func (r *reader) deliver(s Sink) error {
	err, fault := r.handUp(s)
	r.stats.framesIn.Add(r.frames)
	r.frames = 0
	if fault != nil {
		return s.Unwritable(fault)
	}
	return err
}

// handUp is deliver without what follows. The fault is that of the memory that the Sink
// was writing to: one guard serves for all that has arrived.
func (r *reader) handUp(s Sink) (err, fault error) {
	defer pages.CatchIn(&fault, s.Writing, pages.Trap())
	runs := r.runs != nil && r.buffer != nil && !(r.visiting && r.blocks != nil)
	for {
		u, err := r.nextULPDU()
		if u == nil {
			return err, nil
		}
		r.frames++
		if runs {
			err = r.handUpRun(u)
		} else {
			err = s.ULPDU(u)
		}
		if err != nil {
			return err, nil
		}
	}
}

// handUpRun hands up u together with the ULPDUs that follow it in the buffer.
func (r *reader) handUpRun(u []byte) error {
	us := append(r.buffer.run[:0], u)
	var damaged error
	for octets := len(u); len(us) < mostInRun && octets < octetsInRun; octets += len(u) {
		if u, damaged = r.nextULPDU(); u == nil {
			break
		}
		us = append(us, u)
	}
	r.frames += uint64(len(us) - 1)
	if err := r.runs.ULPDUs(us); err != nil {
		return err
	}
	return damaged
}

// nextULPDU validates the FPDU that begins in the buffer and returns its ULPDU; nil if it is not
// all there, or an error.
func (r *reader) nextULPDU() ([]byte, error) {
	n, size, ok := fpdu.At(r.unread(), r.pos, r.markers)
	if !ok {
		return nil, nil
	}
	if n > MaxMULPDU {
		return nil, lengthError(r.pos, n)
	}
	if r.end-r.start < size {
		return nil, nil
	}
	asks := r.visiting && r.blocks != nil
	if asks && r.markers {
		r.blocked = true // Open takes the markers out, so that only who takes the ULPDU may call it
		return nil, nil
	}
	u, err := fpdu.Open(r.buf[r.start:r.start+size], r.pos, n, r.markers, r.crc)
	if err != nil {
		return nil, damage(err)
	}
	if asks && r.blocks.WouldBlock(u) {
		r.blocked = true
		return nil, nil
	}
	r.start += size
	r.passed(size)
	r.series = false
	return u, nil
}

func lengthError(pos uint64, n int) error {
	return &Error{Code: CodeMarker, Detail: fmt.Sprintf(
		"FPDU at stream position %d: ULPDU length %d, expected at most %d", pos, n, MaxMULPDU)}
}

// damage is the Error for a frame that Open refused.
func damage(err error) error {
	d := err.(*fpdu.Damage)
	if d.CRC {
		return &Error{Code: CodeCRC, Detail: d.Detail}
	}
	return &Error{Code: CodeMarker, Detail: d.Detail}
}

// passed notes that an FPDU of size octets has been validated.
func (r *reader) passed(size int) {
	r.pos += uint64(size)
	r.refused = false
	r.busy = true
	if r.fenced.Load() {
		r.fenced.Store(false) // RFC 5044 §7.1.2 rule 4
	}
}

// place reads the rest of a long ULPDU that begins in the buffer straight to
// its place, if that is allowed and the Sink wants it. A Responder takes the
// first ULPDU whole: it lifts the fence, and with it the answer may leave that
// says what was wrong with it.
func (r *reader) place(s Sink) (bool, error) {
	if !r.placeable() {
		return false, nil
	}
	have := r.unread()
	n, size, _ := fpdu.At(have, r.pos, false)
	r.idle(s)
	head := have[fpdu.LengthSize:]
	off, ok, err := s.Begin(head, n)
	if err != nil {
		return false, err
	}
	if !ok {
		r.refused = true
		return false, nil
	}
	off, err = r.placeHead(s, head, off, n)
	if err != nil {
		return false, err
	}
	p := r.startPlacement(off, n)
	if r.joins != nil {
		p.join(r.joins, r.direct, n)
	}
	if err := r.placeRest(s, p, n); err != nil {
		return false, err
	}
	r.series = true
	r.placed(size)
	if err := s.End(); err != nil {
		return false, err
	}
	return true, r.endJoined(s, p.joined)
}

// placed notes that an FPDU of size octets has been read to its place.
func (r *reader) placed(size int) {
	r.passed(size)
	r.stats.framesIn.Add(1)
}

var errRefusedJoined = errors.New("mpa: the sink does not take a ULPDU that it let join")

// endJoined has the Sink check, and take, the ULPDUs that were joined, which are in place.
func (r *reader) endJoined(s Sink, all []joined) error {
	for i := range all {
		j := &all[i]
		r.placed(fpdu.Size(r.pos, j.n, false))
		if _, ok, err := s.Begin(j.head[fpdu.LengthSize:], j.n); err != nil {
			return err
		} else if !ok {
			return errRefusedJoined
		}
		if err := s.End(); err != nil {
			return err
		}
	}
	return nil
}

// placeRest reads the ULPDU begun, of n octets, and those joined to their place. What follows
// them, the last one's pad and CRC first, goes to the buffer.
func (r *reader) placeRest(s Sink, p *placement, n int) error {
	tail, ahead := fpdu.Padding(p.last(n))+fpdu.CRCSize, aheadSize
	if r.series {
		ahead = aheadLeast
	}
	r.start, r.end = 0, 0
	for p.off < p.end {
		got, err := r.direct.readWindows(s, p, r.room()[:ahead])
		if refused, ok := err.(windowError); ok {
			return refused.err
		}
		if err != nil {
			return r.cut(err, n)
		}
		r.stats.octetsIn.Add(uint64(got))
		r.end = p.read(got)
	}
	for r.end < tail {
		if err := r.fill(true); err != nil {
			return r.cut(err, n)
		}
	}
	r.start = tail
	return nil
}

// placeable reports that so much of the ULPDU that begins in the buffer is to come that the
// Sink is asked to place it.
func (r *reader) placeable() bool {
	have := r.unread()
	if r.crc || r.markers || r.refused || r.fenced.Load() || len(have) < fpdu.LengthSize+headSize || r.direct == nil {
		return false
	}
	_, size, _ := fpdu.At(have, r.pos, false)
	return size-len(have) >= placeLimit
}

// placeHead puts what of the payload has arrived with the headers into its
// place and returns the offset of the rest.
func (r *reader) placeHead(s Sink, head []byte, off, n int) (int, error) {
	if off == len(head) {
		return off, nil
	}
	windows, err := s.Window(r.windows[:0], off)
	if err != nil {
		return 0, err
	}
	placed, err := pages.Scatter(windows, head[off:])
	if err != nil {
		err = s.Unwritable(err)
	}
	s.Release()
	clear(windows)
	r.windows = windows
	if off += placed; err != nil {
		return 0, err
	}
	if off != len(head) {
		return 0, fmt.Errorf("mpa: the sink has memory up to octet %d of a ULPDU of %d", off, n)
	}
	return off, nil
}

// idle calls Sink.Idle, if anything was handed up.
func (r *reader) idle(s Sink) {
	if r.busy {
		r.busy = false
		s.Idle()
	}
}

// open reports that a visitor may receive: Receive is under way, and nothing is left to it.
func (r *reader) open() bool {
	return r.sink != nil && !r.left()
}

// left reports that only Receive can go on with what is in the buffer.
func (r *reader) left() bool {
	return r.failed != nil || r.blocked || r.leaves && r.placeable()
}

// visit hands up what has arrived, and returns how many octets that were, and whether
// something is left to Receive. What ends the reception is kept for it.
func (r *reader) visit() (n int, left bool) {
	resting := r.buffer == nil
	n, err := r.direct.look(&r.readAhead)
	switch {
	case err != nil:
		r.failed = r.ended(err)
	case n > 0:
		r.grown(n)
		r.stats.octetsIn.Add(uint64(n))
		r.visiting = true
		r.failed = r.deliver(r.sink)
		r.visiting = false
		r.idle(r.sink)
	case resting: // no buffer is kept for a visit that found nothing
		r.rest()
	}
	return n, r.left()
}

// fill reads more into the buffer, behind what is there. alone is for the middle of a
// ULPDU.
func (r *reader) fill(alone bool) error {
	n, err := r.transport.read(&r.readAhead, alone)
	r.grown(n)
	r.stats.octetsIn.Add(uint64(n))
	return err
}

// ended says what the end of the octets, or the failure to read them, means.
func (r *reader) ended(err error) error {
	if errors.Is(err, io.EOF) && r.start == r.end {
		return io.EOF
	}
	if n, _, ok := fpdu.At(r.unread(), r.pos, r.markers); ok {
		return r.cut(err, n)
	}
	return closedError(err, fmt.Sprintf("before the length field of the FPDU at stream position %d", r.pos))
}

func (r *reader) cut(err error, n int) error {
	return closedError(err, fmt.Sprintf("in the FPDU at stream position %d, ULPDU length %d", r.pos, n))
}

func closedError(err error, where string) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &Error{Code: CodeClosed, Detail: where, Err: err}
}

// drain reads and drops all that comes.
func (r *reader) drain() error {
	for {
		r.start, r.end = 0, 0
		err := r.fill(false)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &Error{Code: CodeClosed, Detail: "while draining", Err: err}
		}
	}
}
