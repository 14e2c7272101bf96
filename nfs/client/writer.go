// This file streams data to a file: many WRITEs in flight, and each block kept until the
// server has it on stable storage. A block takes these steps:
//
//  1. room provides a block to fill: a spare one, or a new one if there are fewer than
//     maxBlocks. Otherwise it waits for an event.
//  2. send starts a goroutine that writes the block, UNSTABLE, and reports an event.
//  3. await handles the event: the block is uncommitted now. When half of all blocks are,
//     it starts a goroutine with a COMMIT, which reports an event, too.
//  4. finishCommit handles that: it frees the blocks whose verifier is that of the COMMIT, and
//     writes the others again, because the server has lost them.
//
// Locking: none. All fields of a Writer belong to its caller's goroutine. The goroutine of
// a WRITE sets the written field of its block before it reports. The channel of events has
// room for all requests in flight, so that their goroutines never wait for the caller.

package client

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/nfs"
)

// errClosed is the error of a Reader or Writer after Close.
var errClosed = errors.New("already closed")

// A Writer writes a file from an offset on, with many WRITEs in flight. It keeps each
// block until a COMMIT has returned the verifier of the block's WRITE, and writes it again
// if the server has lost it. It is for one goroutine.
type Writer struct {
	file   *File
	ctx    context.Context
	cancel context.CancelFunc

	size      int   // octets of a block
	maxBlocks int   // blocks there may be
	off       int64 // of the block that is being filled
	end       int64 // of the data written; less than off after Skip
	fill      []byte
	spare     [][]byte // memory of blocks that are on stable storage

	blocks      int           // being filled, in flight and uncommitted
	writing     int           // of these, in flight
	uncommitted []*sentBlock  // of these, written but not on stable storage
	committing  bool          // a COMMIT is in flight
	events      chan progress // results of WRITEs and COMMITs
	err         error         // the first one; final
	closed      bool
}

// A sentBlock has been sent, once more than it was lost.
type sentBlock struct {
	block
	losses int
}

// A progress is the result of a WRITE or, if block is nil, of a COMMIT.
type progress struct {
	block *sentBlock
	verf  nfs.Verifier
	until int // of a COMMIT: how many of the uncommitted blocks it covers
	err   error
}

// NewWriter returns a Writer of the file from offset off on. Its calls end with the
// context. The data are on stable storage when Close has returned without an error.
func (x *File) NewWriter(ctx context.Context, off int64) *Writer {
	w := &Writer{file: x, off: off, end: off, size: x.fs.writeMax()}
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.maxBlocks = max(min(x.fs.cfg.Requests, x.fs.cfg.Memory/w.size), 2)
	w.events = make(chan progress, w.maxBlocks+1)
	w.err = x.checkRange(nfs.ProcWrite, off, 0)
	return w
}

// Write writes p. Its error may be that of an earlier WRITE.
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

// ReadFrom writes all that it reads from r, straight from the blocks that it reads into.
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

// Skip leaves the next n octets as they are. In a new file they are zeros, or a hole if
// the server's file system supports holes. If no data follow the last Skip, Close sets the
// size of the file to include it.
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

// Close writes what is left, waits until all data are on stable storage, and frees
// everything. It returns the first error of the Writer, or nil.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	if w.err == nil && len(w.fill) > 0 {
		stable := nfs.Unstable
		if w.blocks == 1 { // the only one: no COMMIT is needed
			stable = nfs.FileSync
		}
		w.send(stable)
	}
	for w.err == nil && (w.writing > 0 || len(w.uncommitted) > 0) {
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

// Abort cancels the requests in flight and frees everything. The file may have any part of
// the data then. After Close it does nothing.
func (w *Writer) Abort() {
	if w.closed {
		return
	}
	w.closed = true
	w.cancel()
	for w.writing > 0 || w.committing {
		w.await()
	}
	for _, b := range w.uncommitted {
		w.free(b)
	}
	for _, p := range append(w.spare, w.fill) {
		w.file.fs.blocks.put(p)
	}
	w.fill, w.spare, w.uncommitted = nil, nil, nil
}

// room waits until there is a block to fill.
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
		case w.blocks < w.maxBlocks:
			w.fill = w.file.fs.blocks.get(w.size)[:0]
			w.blocks++
		default:
			w.await()
		}
	}
}

// send writes the block that has been filled.
func (w *Writer) send(stable nfs.StableHow) {
	b := &sentBlock{block: block{p: w.fill, off: w.off}}
	w.off += int64(len(w.fill))
	w.end = w.off
	w.fill = nil
	w.write(b, stable)
}

func (w *Writer) write(b *sentBlock, stable nfs.StableHow) {
	w.writing++
	go func() {
		var err error
		b.written, err = w.file.write(w.ctx, b.p, b.off, stable)
		w.events <- progress{block: b, err: err}
	}()
}

// commit starts a COMMIT for the uncommitted blocks. WRITEs continue meanwhile.
func (w *Writer) commit() {
	if w.committing {
		return
	}
	w.committing = true
	until := len(w.uncommitted)
	go func() {
		verf, err := w.file.Commit(w.ctx)
		w.events <- progress{verf: verf, until: until, err: err}
	}()
}

// drain handles the events that have been reported.
func (w *Writer) drain() {
	for len(w.events) > 0 {
		w.await()
	}
}

// await waits for an event and handles it. At least one request is in flight.
func (w *Writer) await() {
	e := <-w.events
	if e.block != nil {
		w.writing--
	} else {
		w.committing = false
	}
	switch {
	case w.err != nil:
	case e.err != nil:
		w.err = e.err
	case e.block == nil:
		w.finishCommit(e)
	case e.block.written.stable:
		w.free(e.block)
	default:
		w.uncommitted = append(w.uncommitted, e.block)
		// Commit half of the blocks; the other half is filled and written meanwhile.
		if len(w.uncommitted) >= w.maxBlocks/2 {
			w.commit()
		}
	}
}

// finishCommit handles the result of a COMMIT: of the blocks that it covers it frees those that
// are on stable storage, and writes those again that are lost (RFC 1813 §3.3.21).
func (w *Writer) finishCommit(e progress) {
	done := w.uncommitted[:e.until]
	w.uncommitted = w.uncommitted[e.until:]
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

func (w *Writer) free(b *sentBlock) {
	w.blocks--
	w.spare = append(w.spare, b.p[:0:cap(b.p)])
}
