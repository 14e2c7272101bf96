// This file holds the reading half of record marking (RFC 5531 §11).

package oncrpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Before each fragment of a record stand four octets: a bit that is set in the
// last fragment, and the fragment's length in 31 bits (RFC 5531 §11).
const (
	markLen      = 4
	lastFragment = 1 << 31

	// MaxFragment is the longest that a fragment can be, in octets.
	MaxFragment = 1<<31 - 1
)

// Limits of a record where [RecordLimits] says nothing: room for a payload of one
// mebibyte, which NFS peers agree on, with anything around it, and for peers
// that send in fragments of two kibibytes.
const (
	DefaultRecord    = 2 << 20
	DefaultFragments = 1024
)

// ErrRecord reports a stream that breaks record marking or the limits of it.
// There is no way back into step: the connection is to be closed.
var ErrRecord = errors.New("oncrpc: not an acceptable record")

// RecordLimits bound what a peer may call a record. Zero is the default.
type RecordLimits struct {
	Record    int // octets in all, record marks not counted
	Fragments int // fragments, empty ones too
}

// A RecordReader takes records from a byte stream. [RecordReader.AppendRecord]
// reads whole ones; with Next and Read a record can be read in pieces, each into
// its place.
//
// What a peer announces is believed only as far as it has arrived. Time is for
// the caller to bound, by a deadline of the connection. The reader asks for the
// four octets of a mark by themselves, so it likes to be over a [bufio.Reader],
// which lets large reads through without a copy. It is for one goroutine.
type RecordReader struct {
	r      io.Reader
	limits RecordLimits

	mark      [markLen]byte
	open      bool   // a record has been begun and its end not been told
	last      bool   // the present fragment is the last one
	left      uint32 // octets of the present fragment not yet read
	size      uint64 // octets of the record in the fragments announced so far
	fragments int    // of the record, so far
	err       error  // sticks
}

// NewRecordReader returns a reader of the records in r.
func NewRecordReader(r io.Reader, limits RecordLimits) *RecordReader {
	if limits.Record <= 0 {
		limits.Record = DefaultRecord
	}
	if limits.Fragments <= 0 {
		limits.Fragments = DefaultFragments
	}
	return &RecordReader{r: r, limits: limits}
}

// AppendRecord reads the next record and appends it to dst, using what capacity
// it has. Beyond that it holds about twice what has arrived, or four kibibytes,
// whatever has been announced. The errors are those of [RecordReader.Next] and [RecordReader.Read];
// dst is then returned with its old length.
func (r *RecordReader) AppendRecord(dst []byte) ([]byte, error) {
	if err := r.Next(); err != nil {
		return dst, err
	}
	b := dst
	for {
		more, err := r.more()
		if err != nil {
			return dst, err
		}
		if !more {
			r.open = false
			return b, nil
		}
		if len(b) == cap(b) {
			b = slices.Grow(b, int(min(uint64(r.left), uint64(max(4096, len(b)-len(dst))))))
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil {
			return dst, err
		}
	}
}

// Next goes to the next record, past what has not been read of the present one,
// and waits for the first octets of it. It returns [io.EOF] if the stream ends
// between two records, [io.ErrUnexpectedEOF] if it ends elsewhere, what [ErrRecord]
// is in, or the stream's error. Any error is final.
func (r *RecordReader) Next() error {
	if r.open {
		if _, err := io.Copy(io.Discard, r); err != nil {
			return err
		}
	}
	if r.err != nil {
		return r.err
	}
	r.open, r.last, r.left, r.size, r.fragments = true, false, 0, 0, 0
	return r.fragment()
}

// Read reads from the present record, and [io.EOF] at its end and before the
// first [RecordReader.Next]. The other errors are those of Next.
func (r *RecordReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	more, err := r.more()
	if err != nil {
		return 0, err
	}
	if !more {
		r.open = false
		return 0, io.EOF
	}
	n, err := r.r.Read(p[:min(uint64(len(p)), uint64(r.left))])
	r.left -= uint32(n)
	switch {
	case err == io.EOF && n > 0:
		err = nil // comes again, if it matters
	case err == io.EOF:
		err = r.fail(io.ErrUnexpectedEOF)
	case err != nil:
		err = r.fail(err)
	}
	return n, err
}

// Left is what the peer has announced of the present record and not been read:
// the octets of the present fragment, and whether that is the last one.
func (r *RecordReader) Left() (octets int, last bool) {
	if !r.open {
		return 0, true
	}
	return int(r.left), r.last
}

// more reports whether the present record has more octets, and goes to the
// fragment where they are.
func (r *RecordReader) more() (bool, error) {
	for r.left == 0 {
		if r.err != nil {
			return false, r.err
		}
		if !r.open || r.last {
			return false, nil
		}
		if err := r.fragment(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// fragment reads the mark of the next fragment.
func (r *RecordReader) fragment() error {
	if r.fragments == r.limits.Fragments {
		return r.fail(fmt.Errorf("%w: more than %d fragments", ErrRecord, r.limits.Fragments))
	}
	if _, err := io.ReadFull(r.r, r.mark[:]); err != nil {
		if err == io.EOF && r.fragments > 0 {
			err = io.ErrUnexpectedEOF
		}
		return r.fail(err)
	}
	r.fragments++
	mark := binary.BigEndian.Uint32(r.mark[:])
	r.last = mark&lastFragment != 0
	r.left = mark &^ lastFragment
	r.size += uint64(r.left)
	if r.size > uint64(r.limits.Record) {
		return r.fail(fmt.Errorf("%w: %d octets by fragment %d, whose mark is %q, at most %d are allowed; does the peer speak RPC?",
			ErrRecord, r.size, r.fragments, r.mark[:], r.limits.Record))
	}
	return nil
}

func (r *RecordReader) fail(err error) error {
	r.err, r.left, r.open = err, 0, false
	return err
}
