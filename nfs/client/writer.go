// This file holds the writer of large files: many WRITEs under way, which are
// kept until the server has them on stable storage.

package client

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/nfs"
)

// errClosed is what a Reader or Writer says after Close.
var errClosed = errors.New("already closed")

// A Writer writes a file from an offset on, with WRITEs behind what it was
// given. It keeps every block until a COMMIT has returned the verifier of the
// block's WRITE, and writes it again if the server has lost it. It is for one
// goroutine.
type Writer struct {
	file   *File
	ctx    context.Context
	cancel context.CancelFunc

	size  int   // octets of a block
	most  int   // blocks at a time
	off   int64 // of the block being filled
	end   int64 // of the data given: below off after Skip
	fill  []byte
	spare [][]byte // memory of blocks that are done

	blocks  int           // that there are: written, committed or neither yet
	writing int           // of these, under way
	settled []*stored     // of these, written and not on stable storage
	commits bool          // a COMMIT is under way
	events  chan progress // what ended
	err     error         // the first; final
	closed  bool
}

// A stored block was written, as often as it was lost plus one.
type stored struct {
	block
	losses int
}

// Progress is the end of a WRITE, or with a nil block of a COMMIT.
type progress struct {
	block *stored
	verf  nfs.Verifier
	until int // of the COMMIT: how many of the settled blocks it was for
	err   error
}

// NewWriter returns a Writer of the file from offset off on, which ends with the
// context. What was written is safe when Close has returned without an error.
func (x *File) NewWriter(ctx context.Context, off int64) *Writer {
	w := &Writer{file: x, off: off, end: off, size: x.fs.writeMax()}
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.most = max(min(x.fs.cfg.Requests, x.fs.cfg.Memory/w.size), 2)
	w.events = make(chan progress, w.most+1)
	w.err = x.checkRange(nfs.ProcWrite, off, 0)
	return w
}

// Write takes p. An error may be that of a WRITE before.
func (w *Writer) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		if err := w.room(); err != nil {
			return n, err
		}
		took, err := pages.Gather(w.fill[len(w.fill):cap(w.fill)], p)
		if err != nil {
			return n, failed(nfs.ProcWrite, w.file.path, err)
		}
		w.fill = w.fill[:len(w.fill)+took]
		n, p = n+took, p[took:]
		if len(w.fill) == w.size {
			w.send(nfs.Unstable)
		}
	}
	return n, w.err
}

// ReadFrom takes all that r has, read straight into the blocks that are sent.
func (w *Writer) ReadFrom(r io.Reader) (n int64, err error) {
	for {
		if err := w.room(); err != nil {
			return n, err
		}
		got, err := io.ReadFull(r, w.fill[len(w.fill):cap(w.fill)])
		w.fill = w.fill[:len(w.fill)+got]
		n += int64(got)
		if len(w.fill) == w.size {
			w.send(nfs.Unstable)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return n, w.err
		case err != nil:
			return n, err
		}
	}
}

// Skip leaves the next n octets as they are. In a new file they are zeros, and a
// hole where the server's file system has such. After a Skip that no data follow,
// Close sets the size of the file to where that ended.
func (w *Writer) Skip(n int64) error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return failed(nfs.ProcWrite, w.file.path, errClosed)
	}
	if n < 0 || w.off+int64(len(w.fill))+n < 0 {
		w.err = failed(nfs.ProcWrite, w.file.path, fmt.Errorf("%w: %d octets skipped at offset %d", nfs.ErrInval, n, w.off))
		return w.err
	}
	if len(w.fill) > 0 {
		w.send(nfs.Unstable)
	}
	w.off += n
	return w.err
}

// Close writes what is left, waits until all is on stable storage, and frees
// everything. Its error is the first of all, or nil.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	if w.err == nil && len(w.fill) > 0 {
		stable := nfs.Unstable
		if w.blocks == 1 { // the only one: saves the COMMIT
			stable = nfs.FileSync
		}
		w.send(stable)
	}
	for w.err == nil && (w.writing > 0 || len(w.settled) > 0) {
		if w.writing == 0 {
			w.commit()
		}
		w.await()
	}
	if w.err == nil && w.end < w.off {
		w.err = w.file.SetAttr(w.ctx, nfs.SetAttributes{Size: nfs.SetUint64{Set: true, Value: uint64(w.off)}})
	}
	w.Abort()
	return w.err
}

// Abort ends what is under way and frees everything. What of the data is in the
// file is not known then. After Close it does nothing.
func (w *Writer) Abort() {
	if w.closed {
		return
	}
	w.closed = true
	w.cancel()
	for w.writing > 0 || w.commits {
		w.await()
	}
	for _, b := range w.settled {
		w.free(b)
	}
	for _, p := range append(w.spare, w.fill) {
		w.file.fs.blocks.put(p)
	}
	w.fill, w.spare, w.settled = nil, nil, nil
}

// room waits until there is a block to be filled.
func (w *Writer) room() error {
	if w.closed && w.err == nil {
		return failed(nfs.ProcWrite, w.file.path, errClosed)
	}
	for {
		w.drain()
		switch {
		case w.err != nil || w.fill != nil:
			return w.err
		case len(w.spare) > 0:
			last := len(w.spare) - 1
			w.fill, w.spare = w.spare[last][:0], w.spare[:last]
			w.blocks++
		case w.blocks < w.most:
			w.fill = w.file.fs.blocks.get(w.size)[:0]
			w.blocks++
		default:
			w.await()
		}
	}
}

// send writes the block that was filled.
func (w *Writer) send(stable nfs.StableHow) {
	b := &stored{block: block{p: w.fill, off: w.off}}
	w.off += int64(len(w.fill))
	w.end = w.off
	w.fill = nil
	w.write(b, stable)
}

func (w *Writer) write(b *stored, stable nfs.StableHow) {
	w.writing++
	go func() {
		var err error
		b.written, err = w.file.write(w.ctx, b.p, b.off, stable)
		w.events <- progress{block: b, err: err}
	}()
}

// commit has the server make safe what it has so far. More is written meanwhile.
func (w *Writer) commit() {
	if w.commits {
		return
	}
	w.commits = true
	until := len(w.settled)
	go func() {
		verf, err := w.file.Commit(w.ctx)
		w.events <- progress{verf: verf, until: until, err: err}
	}()
}

// drain takes what has ended, without waiting.
func (w *Writer) drain() {
	for len(w.events) > 0 {
		w.await()
	}
}

// await takes the next end of a WRITE or COMMIT. One is under way.
func (w *Writer) await() {
	e := <-w.events
	if e.block != nil {
		w.writing--
	} else {
		w.commits = false
	}
	switch {
	case w.err != nil:
	case e.err != nil:
		w.err = e.err
	case e.block == nil:
		w.sort(e)
	case e.block.written.stable:
		w.free(e.block)
	default:
		w.settled = append(w.settled, e.block)
		// Half of the blocks: the others are filled and written meanwhile.
		if len(w.settled) >= w.most/2 {
			w.commit()
		}
	}
}

// sort goes by what a COMMIT said of the blocks that it was for: they are safe,
// or lost and written again (RFC 1813 §3.3.21).
func (w *Writer) sort(e progress) {
	done := w.settled[:e.until]
	w.settled = w.settled[e.until:]
	for _, b := range done {
		if b.written.verf == e.verf {
			w.free(b)
			continue
		}
		if b.losses++; b.losses == maxLosses {
			w.err = failed(nfs.ProcCommit, w.file.path, ErrLost)
			return
		}
		w.write(b, nfs.Unstable)
	}
}

func (w *Writer) free(b *stored) {
	w.blocks--
	w.spare = append(w.spare, b.p[:0:cap(b.p)])
}
