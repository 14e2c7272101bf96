// This file writes record marking (RFC 5531 §11).

package oncrpc

import (
	"encoding/binary"
	"io"
	"net"

	"github.com/weft-rdma/weft/internal/pages"
)

// copyLimit is up to which length, in octets, a piece is copied behind its mark. A
// copy costs less than another vector, or than another write to a stream that takes
// no vectors.
const copyLimit = 512

// A RecordWriter writes records to a byte stream, each with one vectored write if
// the stream is a TCP connection. It is for one goroutine at a time.
type RecordWriter struct {
	w           io.Writer
	maxFragment uint64

	small []byte      // marks and copied pieces of the record being written
	run   int         // where in small the part begins that is not in vec yet
	vec   net.Buffers // the record
	out   net.Buffers // vec; the write consumes it
	err   error       // sticks

	step  func()      // called after each part of a long record; may be nil
	piece net.Buffers // that part
	part  net.Buffers // piece; the write consumes it
}

// stepLen is the length, in octets, of the parts in which a long record is written
// if there is an OnStep function.
const stepLen = 128 << 10

// OnStep makes WriteRecord write long records in parts of 128 KiB, and call step after
// each but the last. It shows whether the peer keeps reading.
func (w *RecordWriter) OnStep(step func()) { w.step = step }

// NewRecordWriter returns a writer of records to w, in fragments of at most
// maxFragment octets. Zero stands for [MaxFragment]: one fragment a record.
func NewRecordWriter(w io.Writer, maxFragment int) *RecordWriter {
	if maxFragment <= 0 || maxFragment > MaxFragment {
		maxFragment = MaxFragment
	}
	return &RecordWriter{w: w, maxFragment: uint64(maxFragment)}
}

// WriteRecord writes the pieces, one after the other, as one record. It does not
// copy large pieces, and changes or keeps none. An error is that of the stream, or says
// that the memory of a piece cannot be read. It is final, because part of the record may
// have been sent.
func (w *RecordWriter) WriteRecord(pieces ...[]byte) error {
	if w.err != nil {
		return w.err
	}
	w.err = w.write(pieces)
	clear(w.vec) // do not keep the callers' memory alive
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

// cut moves stepLen octets from out to part, if there is a step function and out has
// more.
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

// fill makes the vector of a record: marks, copied pieces and large ones.
func (w *RecordWriter) fill(pieces [][]byte) {
	var left uint64 // octets of the record in fragments not yet begun
	for _, p := range pieces {
		left += uint64(len(p))
	}
	w.small, w.run = w.small[:0], 0
	room := w.mark(&left) // octets that fit in the present fragment
	for _, p := range pieces {
		for len(p) > 0 {
			if room == 0 {
				room = w.mark(&left)
			}
			n := int(min(uint64(len(p)), room))
			if n <= copyLimit {
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

// mark begins the next fragment and returns its length.
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

// flush appends the pending part of small to the vector. If small is reallocated later,
// the vector refers to the old memory, which is not written again.
func (w *RecordWriter) flush() {
	if w.run < len(w.small) {
		w.vec = append(w.vec, w.small[w.run:len(w.small):len(w.small)])
		w.run = len(w.small)
	}
}
