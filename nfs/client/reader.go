// This file streams data from a file: many READs in flight, data returned in order.
//
//  1. fetchAhead starts a goroutine with a READ for each of the next blocks, up to depth.
//  2. advance waits for the first of these blocks, which Read and WriteTo then return.
//  3. When a block has been returned, its memory is used for another one.
//
// Locking: none. All fields of a Reader belong to its caller's goroutine. The goroutine of
// a READ sets the fields of its fetch, and then closes done.

package client

import (
	"context"
	"errors"
	"io"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/nfs"
)

// A Reader reads a file from an offset to its end, and sends READs ahead of what its
// caller has read. It is for one goroutine.
type Reader struct {
	file   *File
	ctx    context.Context
	cancel context.CancelFunc

	size  int   // octets of a block
	depth int   // most blocks in flight
	next  int64 // offset of the next block to fetch
	end   int64 // size of the file when it was opened

	ahead []*fetch // in flight, in order
	first *fetch   // the block that Read returns
	rest  []byte   // what is left of it
	spare [][]byte // memory of blocks that have been returned
	err   error    // final
}

// A fetch is a block in flight. Its fields are valid once done is closed.
type fetch struct {
	p    []byte
	n    int
	eof  bool
	err  error
	done chan struct{}
}

// NewReader returns a Reader of the file from offset off on. Its calls end with the
// context. The caller has to close it.
//
// Up to the size that the file had when it was opened, it has as many requests in flight
// as the Config allows; beyond that, one.
func (x *File) NewReader(ctx context.Context, off int64) *Reader {
	r := &Reader{file: x, next: off, end: int64(min(x.size, 1<<62))}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.size = x.fs.readMax()
	if left := r.end - off; left < int64(r.size) { // a small file needs a small block
		r.size = min(int(max(left, 4096)), r.size)
	}
	r.depth = max(min(x.fs.cfg.Requests, x.fs.cfg.Memory/r.size), 1)
	r.err = x.checkRange(nfs.ProcRead, off, 0)
	return r
}

// Read reads up to len(p) octets. It waits for at least one octet, or for the end of the
// file, which is [io.EOF].
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

// WriteTo writes the rest of the file to w, block by block.
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

// advance goes to the next block that is not empty.
func (r *Reader) advance() error {
	for r.err == nil {
		if r.first != nil {
			r.spare = append(r.spare, r.first.p)
		}
		r.fetchAhead()
		r.first, r.ahead = r.ahead[0], r.ahead[1:]
		<-r.first.done // ends with the context at the latest
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

// fetchAhead starts READs until as many blocks are in flight as may be.
func (r *Reader) fetchAhead() {
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

// Close cancels the READs in flight and waits for their end. It returns nil.
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
