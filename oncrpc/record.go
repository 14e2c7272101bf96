// This file reads record marking (RFC 5531 §11).

package oncrpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A record mark of four octets stands before each fragment of a record: a bit that is
// set for the last fragment, and the fragment's length in 31 bits (RFC 5531 §11).
const (
	markLen      = 4
	lastFragment = 1 << 31

	// MaxFragment is the length limit of a fragment, in octets.
	MaxFragment = 1<<31 - 1
)

// Defaults of [RecordLimits]. They admit the one mebibyte of payload that NFS peers
// agree on, with its message, in fragments of two kibibytes or more.
const (
	DefaultRecord    = 2 << 20
	DefaultFragments = 1024
)

// ErrRecord reports a stream that violates record marking or its limits. The
// position of later records is unknown, so the connection has to be closed.
var ErrRecord = errors.New("oncrpc: not an acceptable record")

// RecordLimits bound a record. Zero stands for the default.
type RecordLimits struct {
	Record    int // octets, without record marks
	Fragments int // fragments, including empty ones
}

// A RecordReader reads records from a byte stream: whole ones with
// [RecordReader.AppendRecord], or in pieces with Next and Read.
//
// It allocates for what has arrived, not for what a record mark announces. It does
// not limit time; the caller sets deadlines on the connection. It reads the four
// octets of a mark by themselves, so it should read from a [bufio.Reader], which
// passes large reads through without a copy. It is for one goroutine.
type RecordReader struct {
	r      io.Reader
	limits RecordLimits

	mark      [markLen]byte
	open      bool   // a record has begun, and Read has not returned its end
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

// AppendRecord reads the next record and appends it to dst. If the capacity of dst
// is too small, it allocates up to about twice what has arrived, or four kibibytes,
// whatever a mark announces. After an error, which is one of [RecordReader.Next] or
// [RecordReader.Read], it returns dst with its old length.
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

// Next skips what is left of the present record and waits for the next one. It
// returns [io.EOF] if the stream ends between two records, [io.ErrUnexpectedEOF] if
// it ends elsewhere, an error that wraps [ErrRecord], or the stream's error. All
// errors are final.
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

// Read reads from the present record. It returns [io.EOF] at the record's end and
// before the first [RecordReader.Next]; other errors are those of Next.
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
		err = nil // the next read returns it again
	case err == io.EOF:
		err = r.fail(io.ErrUnexpectedEOF)
	case err != nil:
		err = r.fail(err)
	}
	return n, err
}

// Left returns how many octets of the present fragment have not been read, and
// whether that fragment is the record's last.
func (r *RecordReader) Left() (octets int, last bool) {
	if !r.open {
		return 0, true
	}
	return int(r.left), r.last
}

// more reports whether the present record has more octets. It skips empty
// fragments.
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
