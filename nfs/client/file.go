// This file reads and writes files at offsets, with several requests in flight.

package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// A File is a regular file, by its handle. NFS version 3 does not open files: the handle
// is valid until the server deletes the file, also if the file is renamed, and needs no
// closing. Methods may be called by many goroutines.
type File struct {
	fs   *FS
	path string
	fh   nfs.FH
	size uint64 // when it was opened
}

// Open finds a regular file. It follows symbolic links. The server checks permissions
// for each request, not here.
func (f *FS) Open(ctx context.Context, path string) (*File, error) {
	info, err := f.Stat(ctx, path)
	if err != nil {
		return nil, err
	}
	return f.file(nfs.ProcLookup, path, info)
}

func (f *FS) file(proc nfs.Proc, path string, info *Info) (*File, error) {
	switch info.Attr.Type {
	case nfs.TypeReg:
		return &File{fs: f, path: path, fh: info.FH, size: info.Attr.Size}, nil
	case nfs.TypeDir:
		return nil, failed(proc, path, nfs.ErrIsDir)
	}
	return nil, failed(proc, path, fmt.Errorf("%w: not a regular file but %v", nfs.ErrInval, info.Attr.Type))
}

// Create makes a file. With nfs.Unchecked it may exist already; a size of 0 in attr then
// truncates it. With nfs.Exclusive, which is safe if the call is retransmitted, a second
// call sets the attributes.
func (f *FS) Create(ctx context.Context, path string, mode nfs.CreateMode, attr nfs.SetAttributes) (*File, error) {
	var verf nfs.Verifier
	if mode == nfs.Exclusive {
		rand.Read(verf[:])
	}
	info, err := f.make(ctx, nfs.ProcCreate, path, func(where nfs.DirOpArgs) message {
		return &nfs.CreateArgs{Where: where, Mode: mode, Attr: attr, Verf: verf}
	})
	if err != nil {
		return nil, err
	}
	if mode == nfs.Exclusive {
		// RFC 1813 §3.3.8: the server may keep the verifier in attributes, whose values
		// are undefined until they are set.
		if attr.Mtime.How == nfs.DontChange {
			attr.Mtime.How = nfs.SetToServerTime
		}
		if attr.Atime.How == nfs.DontChange {
			attr.Atime.How = nfs.SetToServerTime
		}
		if err := f.setattr(ctx, info.FH, path, attr); err != nil {
			return nil, err
		}
	}
	return f.file(nfs.ProcCreate, path, info)
}

// Path returns the path by which the file was opened.
func (x *File) Path() string { return x.path }

// Stat returns the file's present attributes.
func (x *File) Stat(ctx context.Context) (*Info, error) {
	attr, err := x.fs.getattr(ctx, x.fh, x.path)
	if err != nil {
		return nil, err
	}
	return newInfo(lastElement(x.path), x.fh, attr), nil
}

// SetAttr sets attributes of the file.
func (x *File) SetAttr(ctx context.Context, attr nfs.SetAttributes) error {
	return x.fs.setattr(ctx, x.fh, x.path, attr)
}

// ReadAt reads into p from offset off on. If it returns fewer octets than p has, they are
// those before the first that could not be read, and the error is not nil; it is [io.EOF]
// at the end of the file.
//
// ReadAt sends requests of the server's maximum size, several at a time. An RDMA transport
// places their data in p itself.
func (x *File) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := x.checkRange(nfs.ProcRead, off, len(p)); err != nil {
		return 0, err
	}
	blocks := cut(p, off, x.fs.readMax())
	got := make([]int, len(blocks))
	errs := make([]error, len(blocks))
	x.fs.each(len(blocks), func(i int) {
		var eof bool
		if got[i], eof, errs[i] = x.read(ctx, blocks[i].p, blocks[i].off); errs[i] == nil && eof && got[i] < len(blocks[i].p) {
			errs[i] = io.EOF
		}
	})
	n := 0
	for i := range blocks {
		n += got[i]
		if errs[i] != nil {
			return n, errs[i]
		}
	}
	return n, nil
}

// WriteAt writes p at offset off. If it returns no error, all of p is on the server's
// stable storage; after an error any part of it may be.
func (x *File) WriteAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := x.checkRange(nfs.ProcWrite, off, len(p)); err != nil {
		return 0, err
	}
	todo := cut(p, off, x.fs.writeMax())
	stable := nfs.Unstable
	if len(todo) == 1 { // no COMMIT is needed
		stable = nfs.FileSync
	}
	for range maxLosses {
		errs := make([]error, len(todo))
		x.fs.each(len(todo), func(i int) { todo[i].written, errs[i] = x.write(ctx, todo[i].p, todo[i].off, stable) })
		for _, err := range errs {
			if err != nil {
				return 0, err
			}
		}
		lost, err := x.commitBlocks(ctx, todo)
		if err != nil {
			return 0, err
		}
		if len(lost) == 0 {
			return len(p), nil
		}
		todo = lost
	}
	return 0, failed(nfs.ProcCommit, x.path, ErrLost)
}

// commitBlocks commits the blocks that were written, and returns those that the server has lost.
func (x *File) commitBlocks(ctx context.Context, blocks []block) (lost []block, err error) {
	stable := true
	for i := range blocks {
		stable = stable && blocks[i].written.stable
	}
	if stable {
		return nil, nil
	}
	verf, err := x.Commit(ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range blocks {
		if !b.written.stable && b.written.verf != verf {
			lost = append(lost, b)
		}
	}
	return lost, nil
}

// Commit makes the server write the file's data to stable storage. Data of a WRITE whose
// verifier differs from the one that Commit returns may be lost.
func (x *File) Commit(ctx context.Context) (nfs.Verifier, error) {
	var res nfs.CommitRes
	err := x.fs.do(ctx, nfs.ProcCommit, &nfs.CommitArgs{File: x.fh}, &res, &res.Stat, nil)
	return res.Verf, failed(nfs.ProcCommit, x.path, err)
}

// maxLosses is how often data are sent before ErrLost is returned.
const maxLosses = 8

// checkRange refuses ranges that do not exist.
func (x *File) checkRange(proc nfs.Proc, off int64, n int) error {
	if off < 0 || off+int64(n) < 0 {
		return failed(proc, x.path, fmt.Errorf("%w: %d octets at offset %d", nfs.ErrInval, n, off))
	}
	return nil
}

// A block is the data of one request.
type block struct {
	p       []byte
	off     int64
	written written // result of the WRITE
}

// cut cuts p, the data at offset off, into blocks of at most size octets.
func cut(p []byte, off int64, size int) []block {
	blocks := make([]block, 0, (len(p)+size-1)/size)
	for len(p) > 0 {
		n := min(size, len(p))
		blocks = append(blocks, block{p: p[:n:n], off: off})
		p, off = p[n:], off+int64(n)
	}
	return blocks
}

// each calls do for 0 to n-1, up to Config.Requests calls at a time.
func (f *FS) each(n int, do func(int)) {
	if n == 1 {
		do(0)
		return
	}
	var running sync.WaitGroup
	next := make(chan int)
	for range min(n, f.cfg.Requests) {
		running.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	running.Wait()
}

// read fills p from offset off on, with as many READs as the server needs. It returns
// fewer octets than p has only with eof or an error.
func (x *File) read(ctx context.Context, p []byte, off int64) (n int, eof bool, err error) {
	for n < len(p) && !eof {
		var got int
		if got, eof, err = x.readOnce(ctx, p[n:], off+int64(n)); err != nil {
			return n, false, err
		}
		if got == 0 && !eof {
			return n, false, failed(nfs.ProcRead, x.path, fmt.Errorf("%w: no data at offset %d, before the end of the file", ErrServer, off+int64(n)))
		}
		n += got
	}
	return n, eof, nil
}

// readOnce sends one READ.
func (x *File) readOnce(ctx context.Context, p []byte, off int64) (n int, eof bool, err error) {
	args := nfs.ReadArgs{File: x.fh, Offset: uint64(off), Count: uint32(len(p))}
	e := oncrpc.NewEncoder(nil)
	args.Encode(&e)
	b, err := e.Finish()
	if err != nil {
		return 0, false, failed(nfs.ProcRead, x.path, err)
	}
	var bad error // p cannot be written
	err = x.fs.call(ctx, nfs.ProcRead, &oncrpc.ClientCall{Args: [][]byte{b}, Sinks: [][]byte{p}}, func(reply *oncrpc.ClientReply) (nfs.Stat, error) {
		var res nfs.ReadRes
		d := oncrpc.NewDecoder(reply.Results, "READ results")
		count := int64(res.DecodeHead(&d))
		if d.Err() == nil && count > int64(len(p)) {
			return 0, fmt.Errorf("%d octets returned, expected at most %d", count, len(p))
		}
		if placed := len(reply.Placed) > 0 && reply.Placed[0].Length >= 0; !placed {
			_, bad = pages.Scatter([][]byte{p}, d.Fixed(int(count)))
		}
		n, eof = int(count), res.EOF
		return res.Stat, d.End()
	})
	if bad != nil {
		n, eof, err = 0, false, bad
	}
	return n, eof, failed(nfs.ProcRead, x.path, err)
}

// written says how a server has stored data.
type written struct {
	stable bool // on stable storage
	verf   nfs.Verifier
}

// write writes all of p, with as many WRITEs as the server needs. If the verifier changes
// between them, because the server has restarted, it begins again.
func (x *File) write(ctx context.Context, p []byte, off int64, stable nfs.StableHow) (w written, err error) {
	for range maxLosses {
		w = written{stable: true}
		n := 0
		for n < len(p) {
			res, err := x.writeOnce(ctx, p[n:], off+int64(n), stable)
			if err != nil {
				return w, err
			}
			if n > 0 && res.Verf != w.verf {
				break
			}
			w.verf = res.Verf
			w.stable = w.stable && res.Committed != nfs.Unstable && res.Committed >= stable
			n += int(res.Count)
		}
		if n == len(p) {
			return w, nil
		}
	}
	return w, failed(nfs.ProcWrite, x.path, ErrLost)
}

// writeOnce sends one WRITE.
func (x *File) writeOnce(ctx context.Context, p []byte, off int64, stable nfs.StableHow) (*nfs.WriteRes, error) {
	args := nfs.WriteArgs{File: x.fh, Offset: uint64(off), Count: uint32(len(p)), Stable: stable, Data: p}
	e := oncrpc.NewEncoder(nil)
	args.EncodeHead(&e)
	head, err := e.Finish()
	if err != nil {
		return nil, failed(nfs.ProcWrite, x.path, err)
	}
	pieces := [][]byte{head, p, make([]byte, oncrpc.Padding(len(p)))}
	res := new(nfs.WriteRes)
	err = x.fs.call(ctx, nfs.ProcWrite, &oncrpc.ClientCall{Args: pieces}, func(reply *oncrpc.ClientReply) (nfs.Stat, error) {
		d := oncrpc.NewDecoder(reply.Results, "WRITE results")
		res.Decode(&d)
		if err := d.End(); err != nil {
			return 0, err
		}
		if res.Stat == nfs.OK && (res.Count == 0 || int64(res.Count) > int64(len(p))) {
			return 0, fmt.Errorf("%d octets written of %d", res.Count, len(p))
		}
		return res.Stat, nil
	})
	return res, failed(nfs.ProcWrite, x.path, err)
}
