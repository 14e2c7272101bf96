// This file holds the reader of large files: many READs under way, data in
// order.

package client

import (
	"context"
	"errors"
	"io"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/nfs"
)

// A Reader reads a file from an offset to its end, with READs ahead of what it
// has returned. It is for one goroutine.
type Reader struct {
	file   *File
	ctx    context.Context
	cancel context.CancelFunc

	size  int   // octets of a block
	depth int   // blocks at a time
	next  int64 // the offset of the block to be asked for next
	end   int64 // where the file ended when it was looked at

	ahead []*fetch // under way, in order
	first *fetch   // what Read is at
	rest  []byte   // of it
	spare [][]byte // memory of blocks that are done
	err   error    // final
}

// A fetch is a block under way. Its fields are set when done is closed.
type fetch struct {
	p    []byte
	n    int
	eof  bool
	err  error
	done chan struct{}
}

// NewReader returns a Reader of the file from offset off on. It has to be closed,
// and ends with the context.
//
// It asks for the part of the file that there was when it was opened with as many
// requests at a time as the Config has, and beyond that for a block at a time.
func (x *File) NewReader(ctx context.Context, off int64) *Reader {
	r := &Reader{file: x, next: off, end: int64(min(x.size, 1<<62))}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.size = x.fs.readMax()
	if left := r.end - off; left < int64(r.size) { // a small file needs no more memory
		r.size = min(int(max(left, 4096)), r.size)
	}
	r.depth = max(min(x.fs.cfg.Requests, x.fs.cfg.Memory/r.size), 1)
	r.err = x.checkRange(nfs.ProcRead, off, 0)
	return r
}

// Read reads up to len(p) octets; it waits for at least one, or the end, which is
// [io.EOF].
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(r.rest) == 0 {
		if err := r.advance(); err != nil {
			return 0, err
		}
	}
	n, err := pages.Scatter([][]byte{p}, r.rest[:min(len(p), len(r.rest))])
	r.rest = r.rest[n:]
	return n, failed(nfs.ProcRead, r.file.path, err)
}

// WriteTo writes all that is left to w, a block at a time.
func (r *Reader) WriteTo(w io.Writer) (written int64, err error) {
	for {
		if len(r.rest) == 0 {
			if err := r.advance(); err != nil {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				return written, err
			}
		}
		n, err := w.Write(r.rest)
		written += int64(n)
		r.rest = r.rest[n:]
		if err != nil {
			return written, err
		}
	}
}

// advance goes to the next block that has any octets.
func (r *Reader) advance() error {
	for r.err == nil {
		if r.first != nil {
			r.spare = append(r.spare, r.first.p)
		}
		r.ask()
		r.first, r.ahead = r.ahead[0], r.ahead[1:]
		<-r.first.done // it ends with the context
		r.rest = r.first.p[:r.first.n]
		switch {
		case r.first.err != nil:
			r.err = r.first.err
		case r.first.eof:
			r.err = io.EOF
		}
		if len(r.rest) > 0 {
			return nil
		}
	}
	return r.err
}

// ask has as many blocks under way as there may be.
func (r *Reader) ask() {
	for len(r.ahead) == 0 || len(r.ahead) < r.depth && r.next < r.end {
		f := &fetch{done: make(chan struct{})}
		if n := len(r.spare); n > 0 {
			f.p, r.spare = r.spare[n-1], r.spare[:n-1]
		} else {
			f.p = r.file.fs.blocks.get(r.size)
		}
		off := r.next
		go func() {
			defer close(f.done)
			f.n, f.eof, f.err = r.file.read(r.ctx, f.p, off)
		}()
		r.ahead = append(r.ahead, f)
		r.next += int64(r.size)
	}
}

// Close ends what is under way and waits for that. Its error is nil.
func (r *Reader) Close() error {
	r.cancel()
	for _, f := range r.ahead {
		<-f.done
		r.spare = append(r.spare, f.p)
	}
	if r.first != nil {
		r.spare = append(r.spare, r.first.p)
	}
	for _, p := range r.spare {
		r.file.fs.blocks.put(p)
	}
	r.ahead, r.spare, r.rest, r.first = nil, nil, nil, nil
	if r.err == nil {
		r.err = failed(nfs.ProcRead, r.file.path, errClosed)
	}
	return nil
}
