// This file holds the writing half of record marking (RFC 5531 §11).

package oncrpc

import (
	"encoding/binary"
	"io"
	"net"

	"github.com/weft-rdma/weft/internal/pages"
)

// gathered is up to which length, in octets, a piece is copied behind its mark,
// so that it costs no vector of its own, nor a write where the stream takes no
// vectors.
const gathered = 512

// A RecordWriter puts records into a byte stream, each by one vectored write
// where the stream is a TCP connection. It is for one goroutine at a time.
type RecordWriter struct {
	w           io.Writer
	maxFragment uint64

	small []byte      // marks and gathered pieces of the record being written
	run   int         // where in small begins what is not yet in vec
	vec   net.Buffers // the record's octets
	out   net.Buffers // vec, as the write consumes it
	err   error       // sticks

	step  func()      // told when part of a long record is written; nil for nobody
	piece net.Buffers // that part
	part  net.Buffers // piece, as the write consumes it
}

// stepLen is how much of a long record is written at a time if somebody wants to
// be told, in octets.
const stepLen = 128 << 10

// OnStep has step called whenever another 128 KiB of a record have been written,
// by WriteRecord, which writes so much at a time then. It shows whether the peer of
// a long record takes it.
func (w *RecordWriter) OnStep(step func()) { w.step = step }

// NewRecordWriter returns a writer of records to w, in fragments of at most
// maxFragment octets. Zero is [MaxFragment]: one fragment a record.
func NewRecordWriter(w io.Writer, maxFragment int) *RecordWriter {
	if maxFragment <= 0 || maxFragment > MaxFragment {
		maxFragment = MaxFragment
	}
	return &RecordWriter{w: w, maxFragment: uint64(maxFragment)}
}

// WriteRecord writes the pieces, one after the other, as one record. Large
// pieces are not copied; none is changed or kept. The error is the stream's, or that a
// piece cannot be read, and final: nobody knows how much of the record has gone out.
func (w *RecordWriter) WriteRecord(pieces ...[]byte) error {
	if w.err != nil {
		return w.err
	}
	w.err = w.write(pieces)
	clear(w.vec) // keeps nobody's memory
	clear(w.piece)
	w.vec, w.out = w.vec[:0], nil
	return w.err
}

func (w *RecordWriter) write(pieces [][]byte) (err error) {
	defer pages.Catch(&err, pieces, pages.Trap())
	w.fill(pieces)
	w.out = w.vec
	for w.cut() {
		if _, err := w.part.WriteTo(w.w); err != nil {
			return err
		}
		w.step()
	}
	_, err = w.out.WriteTo(w.w)
	return err
}

// cut moves stepLen octets from out to part, if out has more and somebody wants to
// be told.
func (w *RecordWriter) cut() bool {
	n, i := 0, 0
	for ; i < len(w.out) && n <= stepLen; i++ {
		n += len(w.out[i])
	}
	if w.step == nil || n <= stepLen {
		return false
	}
	i--
	last := w.out[i]
	keep := len(last) - (n - stepLen)
	w.piece = append(append(w.piece[:0], w.out[:i]...), last[:keep])
	w.part, w.out = w.piece, w.out[i:]
	w.out[0] = last[keep:]
	return true
}

// fill makes the vector of a record: marks, gathered pieces and large ones.
func (w *RecordWriter) fill(pieces [][]byte) {
	var left uint64 // octets of the record in fragments not yet begun
	for _, p := range pieces {
		left += uint64(len(p))
	}
	w.small, w.run = w.small[:0], 0
	room := w.mark(&left) // octets that the present fragment still takes
	for _, p := range pieces {
		for len(p) > 0 {
			if room == 0 {
				room = w.mark(&left)
			}
			n := int(min(uint64(len(p)), room))
			if n <= gathered {
				w.small = append(w.small, p[:n]...)
			} else {
				w.flush()
				w.vec = append(w.vec, p[:n])
			}
			room -= uint64(n)
			p = p[n:]
		}
	}
	w.flush()
}

// mark begins the next fragment and returns how long it is.
func (w *RecordWriter) mark(left *uint64) uint64 {
	n := min(*left, w.maxFragment)
	*left -= n
	mark := uint32(n)
	if *left == 0 {
		mark |= lastFragment
	}
	w.small = binary.BigEndian.AppendUint32(w.small, mark)
	return n
}

// flush puts what has been gathered into the vector. Should small move when it
// grows, the vector still refers to the old memory, which nobody writes again.
func (w *RecordWriter) flush() {
	if w.run < len(w.small) {
		w.vec = append(w.vec, w.small[w.run:len(w.small):len(w.small)])
		w.run = len(w.small)
	}
}
