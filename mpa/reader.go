package mpa

// The way in: octets are read in bulk and FPDUs taken out of the buffer where
// they lie; the payload of a long one may be read straight to its place.

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

const (
	// The read-ahead buffer, in octets: what it starts with, and the most it
	// grows to by default. It grows when reads fill it, so a peer that does
	// not send does not make us keep memory.
	firstReadBuffer   = 16 << 10
	defaultReadBuffer = 512 << 10

	// headSize is what of a ULPDU has to be there to ask the Sink to place
	// it: the longer of DDP's headers (RFC 5041 §4.3).
	headSize = 18

	// placeLimit, in octets: with less of a ULPDU missing, reading in bulk and
	// copying is cheaper than a read of its own.
	placeLimit = 24 << 10

	// aheadSize, in octets, is how far a read that places payload goes beyond
	// it: what is small and follows comes with it, and the headers of what is
	// long, which is then placed too.
	aheadSize = 4 << 10
)

// A reader owns the read-ahead buffer. It belongs to the goroutine in Receive.
type reader struct {
	transport transport
	fenced    *atomic.Bool
	stats     *counters
	markers   bool
	crc       bool

	limit      int    // of the buffer, in octets
	buf        []byte // buf[start:end] is read and not yet handed up
	start, end int
	grow       bool   // the last read filled the buffer
	pos        uint64 // stream position of buf[start], where an FPDU begins
	busy       bool   // something was handed up since the last Idle
	refused    bool   // the Sink does not want to place the ULPDU at buf[start]

	windows [][]byte // of placeHead, kept for its memory
}

// newReader begins with the octets that start-up read too early.
func newReader(t transport, p Params, fenced *atomic.Bool, stats *counters) reader {
	return reader{
		transport: t,
		fenced:    fenced,
		stats:     stats,
		markers:   p.RecvMarkers,
		crc:       p.CRC,
		limit:     max(cmp.Or(p.ReadBuffer, defaultReadBuffer), maxFPDU),
		buf:       p.Early,
		end:       len(p.Early),
	}
}

func (r *reader) receive(s Sink) error {
	if len(r.buf) < firstReadBuffer {
		r.enlarge()
	}
	for {
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
		if err := r.fill(); err != nil {
			return r.ended(err)
		}
	}
}

// deliver hands up every FPDU that is wholly in the buffer.
func (r *reader) deliver(s Sink) error {
	frames := uint64(0)
	defer func() { r.stats.framesIn.Add(frames) }()
	for {
		n, size, ok := fpduAt(r.buf[r.start:r.end], r.pos, r.markers)
		if !ok {
			return nil
		}
		if n > MaxMULPDU {
			return lengthError(r.pos, n)
		}
		if r.end-r.start < size {
			return nil
		}
		u, err := open(r.buf[r.start:r.start+size], r.pos, n, r.markers, r.crc)
		if err != nil {
			return err
		}
		r.start += size
		r.passed(size)
		frames++
		if err := s.ULPDU(u); err != nil {
			return err
		}
	}
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
	have := r.buf[r.start:r.end]
	if r.crc || r.markers || r.refused || r.fenced.Load() || len(have) < lengthSize+headSize || !r.transport.places() {
		return false, nil
	}
	n, size, _ := fpduAt(have, r.pos, false)
	if size-len(have) < placeLimit {
		return false, nil
	}
	r.idle(s)
	head := have[lengthSize:]
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
	// What follows the ULPDU, its pad and CRC first, goes to the buffer.
	tail := padding(n) + crcSize
	r.start, r.end = 0, 0
	for off < n {
		got, err := r.transport.readWindows(s, off, n-off, r.buf[:aheadSize])
		if refused, ok := err.(windowError); ok {
			return false, refused.err
		}
		if err != nil {
			return false, r.cut(err, n)
		}
		r.stats.octetsIn.Add(uint64(got))
		r.end = max(0, got-(n-off))
		off = min(n, off+got)
	}
	for r.end < tail {
		if err := r.fill(); err != nil {
			return false, r.cut(err, n)
		}
	}
	r.start = tail
	r.passed(size)
	r.stats.framesIn.Add(1)
	return true, s.End()
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
	for _, w := range windows {
		off += copy(w, head[off:])
	}
	s.Release()
	clear(windows)
	r.windows = windows
	if off != len(head) {
		return 0, fmt.Errorf("mpa: the sink has memory up to octet %d of a ULPDU of %d", off, n)
	}
	return off, nil
}

// idle tells the Sink that all has been handed up, if there was anything.
func (r *reader) idle(s Sink) {
	if r.busy {
		r.busy = false
		s.Idle()
	}
}

// fill reads more into the buffer, behind what is there.
func (r *reader) fill() error {
	if r.start > 0 {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	if r.end == len(r.buf) || r.grow {
		r.enlarge()
	}
	n, err := r.transport.read(r.buf[r.end:])
	r.end += n
	r.grow = r.end == len(r.buf)
	r.stats.octetsIn.Add(uint64(n))
	return err
}

func (r *reader) enlarge() {
	size := min(max(2*len(r.buf), firstReadBuffer), r.limit)
	if size <= len(r.buf) {
		return
	}
	buf := make([]byte, size)
	copy(buf, r.buf[:r.end])
	r.buf = buf
}

// ended says what the end of the octets, or the failure to read them, means.
func (r *reader) ended(err error) error {
	if errors.Is(err, io.EOF) && r.start == r.end {
		return io.EOF
	}
	if n, _, ok := fpduAt(r.buf[r.start:r.end], r.pos, r.markers); ok {
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
	if len(r.buf) < firstReadBuffer {
		r.enlarge()
	}
	for {
		n, err := r.transport.read(r.buf)
		r.stats.octetsIn.Add(uint64(n))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &Error{Code: CodeClosed, Detail: "while draining", Err: err}
		}
	}
}
