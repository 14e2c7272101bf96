// This file is the LLP: segments as records with a length, without CRC and markers.

package records

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/internal/pages"
)

const (
	segmentSize = 4 << 10  // MULPDU
	batchSize   = 64       // records in a batch
	pipeSize    = 64 << 10 // octets on their way in one direction
	lengthLen   = 4        // of the length that a record begins with
	copyLimit   = 64       // payload of fewer octets is copied when it is appended
)

// An LLP is one end of a stream of records. Its methods may be called as those of
// any [ddp.LLP].
type LLP struct {
	nobodyLeads
	in, out *pipe

	// The sending half.
	guard   ddp.Guard
	batch   []record
	spare   []record // whose slices are used again
	leaving []byte   // what is left of the first record of the batch, once it has begun
	written uint64   // records

	// The receiving half.
	buf []byte // received and not handed over
	err error  // what ended it
}

var _ ddp.LLP = (*LLP)(nil)

// A record is a segment on its way out: the length, the DDP header, and payload that
// was copied; then payload that is where it was.
type record struct {
	head    []byte
	payload [][]byte
}

// Pipe makes the two ends of a stream.
func Pipe() (a, b *LLP) {
	there, back := newPipe(pipeSize), newPipe(pipeSize)
	return &LLP{in: back, out: there}, &LLP{in: there, out: back}
}

// Version is that of the IETF's DDP.
func (l *LLP) Version() uint8 { return 1 }

// MULPDU is the largest segment in octets.
func (l *LLP) MULPDU() int { return segmentSize }

// Fenced is false: either side may begin.
func (l *LLP) Fenced() bool { return false }

// Room reports whether the batch takes another record.
func (l *LLP) Room() bool { return len(l.batch) < batchSize }

// Append adds a record to the batch. A fault in payload leaves the batch as it was.
func (l *LLP) Append(header []byte, payload [][]byte) {
	var r record
	if n := len(l.spare); n > 0 {
		r, l.spare = l.spare[n-1], l.spare[:n-1]
	}
	size := 0
	for _, p := range payload {
		size += len(p)
	}
	r.head = binary.BigEndian.AppendUint32(r.head[:0], uint32(len(header)+size))
	r.head = append(r.head, header...)
	if size < copyLimit {
		r.head = joined(r.head, payload)
		payload = nil
	}
	r.payload = append(r.payload[:0], payload...)
	l.batch = append(l.batch, r)
}

// copied appends payload to b; fault is that it cannot be read.
func copied(b []byte, payload [][]byte) (_ []byte, fault error) {
	defer pages.Catch(&fault, payload, pages.Trap())
	return joined(b, payload), nil
}

// joined appends payload to b. A peer may write what another reads, as RDMA lets it: that
// is no race of this program's.
//
//go:norace
func joined(b []byte, payload [][]byte) []byte {
	for _, p := range payload {
		b = append(b, p...)
	}
	return b
}

// AppendVolatile is Append: without a digest a change of the payload does no harm.
func (l *LLP) AppendVolatile(header []byte, payload [][]byte) (copied bool) {
	l.Append(header, payload)
	return false
}

// Appended counts the records appended since the stream began.
func (l *LLP) Appended() uint64 { return l.written + uint64(len(l.batch)) }

// Written counts those that have wholly left.
func (l *LLP) Written() uint64 { return l.written }

// CanTry is true: the pipe is written to without waiting.
func (l *LLP) CanTry() bool { return true }

// Guard sets what is held around each attempt to write.
func (l *LLP) Guard(g ddp.Guard) { l.guard = g }

// Flush writes the batch, see [ddp.LLP].
func (l *LLP) Flush(wait bool) (drained bool, err error) {
	for before := l.written; ; l.out.waitRoom() {
		if err := l.attempt(); err != nil {
			return false, err
		}
		if len(l.batch) == 0 {
			return true, nil
		}
		if !wait || l.written > before {
			return false, nil
		}
	}
}

// attempt writes as much of the batch as the pipe takes.
func (l *LLP) attempt() error {
	if len(l.batch) > 0 && l.guard != nil {
		if !l.guard.Acquire() {
			return errRefused
		}
		defer l.guard.Release()
	}
	for len(l.batch) > 0 {
		b, begun := l.leaving, len(l.leaving) > 0
		if !begun {
			var fault error
			r := &l.batch[0]
			if b, fault = copied(append(b, r.head...), r.payload); fault != nil {
				return &unreadable{l.written, fault}
			}
		}
		n, err := l.out.write(b)
		if err != nil {
			return err
		}
		if l.leaving = b[:0]; n > 0 || begun {
			l.leaving = append(l.leaving, b[n:]...)
		}
		if n < len(b) {
			return nil
		}
		l.written++
		l.drop(0, 1)
	}
	return nil
}

// drop removes records [from, to) of the batch.
func (l *LLP) drop(from, to int) {
	for i := from; i < to; i++ {
		clear(l.batch[i].payload)
		l.spare = append(l.spare, l.batch[i])
	}
	l.batch = append(l.batch[:from], l.batch[to:]...)
}

// Truncate drops the records from number n on that have not begun to leave.
func (l *LLP) Truncate(n uint64) uint64 {
	keep := 0
	if n > l.written {
		keep = int(n - l.written)
	}
	if len(l.leaving) > 0 {
		keep = max(keep, 1)
	}
	if keep < len(l.batch) {
		l.drop(keep, len(l.batch))
	}
	return l.Appended()
}

// Receive hands the peer's segments to s until the stream ends.
func (l *LLP) Receive(s ddp.Sink) error {
	for l.err == nil {
		l.err = l.receive(s)
	}
	return l.err
}

// receive hands over the records that are whole, and waits for more.
func (l *LLP) receive(s ddp.Sink) error {
	for len(l.buf) >= lengthLen {
		n := int(binary.BigEndian.Uint32(l.buf))
		if n > segmentSize {
			return errLength
		}
		if len(l.buf) < lengthLen+n {
			break
		}
		if err := handUp(s, l.buf[lengthLen:][:n]); err != nil {
			return err
		}
		l.buf = append(l.buf[:0], l.buf[lengthLen+n:]...)
	}
	if l.in.empty() {
		s.Idle()
	}
	before := len(l.buf)
	var fin bool
	var err error
	l.buf, fin, err = l.in.read(l.buf)
	switch {
	case err != nil || !fin || len(l.buf) > before:
		return err
	case len(l.buf) > 0:
		return errPartial
	}
	return io.EOF
}

// handUp gives s a segment, and reports a fault in the memory that it writes to.
func handUp(s ddp.Sink, segment []byte) error {
	err, fault := func() (err, fault error) {
		defer pages.CatchIn(&fault, s.Writing, pages.Trap())
		return s.ULPDU(segment), nil
	}()
	if fault != nil {
		return s.Unwritable(fault)
	}
	return err
}

// CloseWrite ends the sending half.
func (l *LLP) CloseWrite() error {
	l.out.do(func() { l.out.fin = true })
	return nil
}

// Drain drops what the peer still sends.
func (l *LLP) Drain() error {
	for {
		_, fin, err := l.in.read(nil)
		if fin || err != nil {
			return err
		}
	}
}

// Reset ends both halves at once: what is on its way is lost.
func (l *LLP) Reset() error {
	for _, p := range []*pipe{l.in, l.out} {
		p.do(func() { p.reset = true })
	}
	return nil
}

// Close ends both halves. The peer reads what has been written.
func (l *LLP) Close() error {
	l.in.do(func() { l.in.closed = true })
	return l.CloseWrite()
}

// nobodyLeads is a [ddp.Poller] for an LLP whose Receive does all that there is to do.
type nobodyLeads struct{}

func (nobodyLeads) Poll() bool                { return false }
func (nobodyLeads) Wait(context.Context) bool { return false }
func (nobodyLeads) Interrupt()                {}
func (nobodyLeads) Leave()                    {}
