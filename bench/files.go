// Files: a directory served by the target over NFS version 3, read and written at
// the other end. The client is Weft's over every transport; the servers are what
// `weft serve` runs, over RDMA and over TCP, and go-nfs over TCP.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	"github.com/weft-rdma/weft/nfs/client"
	"github.com/weft-rdma/weft/oncrpc"
)

// fileSize is the length of the file, in octets. It consists of blocks of
// maxSize that are all alike, the sample's pattern.
const fileSize = 64 << 20

// fileName is the file's, in the directory and in the export.
const fileName = "data"

// A share is a directory for one sample.
type share struct {
	dir   string
	block []byte // what the file is made of
}

// newShare makes a directory in that of the job, and its file; one to be written
// has only its length.
func newShare(job Job) (*share, error) {
	dir, err := os.MkdirTemp(job.Dir, "")
	if err != nil {
		return nil, err
	}
	s := &share{dir: dir, block: make([]byte, maxSize)}
	fillPattern(s.block, job.Seed)
	if err := s.create(job.Workload.Op == Read); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

func (s *share) create(filled bool) error {
	f, err := os.Create(filepath.Join(s.dir, fileName))
	if err != nil {
		return err
	}
	if !filled {
		return errors.Join(f.Truncate(fileSize), f.Close())
	}
	for range fileSize / maxSize {
		if _, err := f.Write(s.block); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

func (s *share) remove() error { return os.RemoveAll(s.dir) }

// check looks at the file after messages of it were written: each block is as
// it was written, or not written yet.
func (s *share) check(w Workload, messages uint64) error {
	f, err := os.Open(filepath.Join(s.dir, fileName))
	if err != nil {
		return err
	}
	defer f.Close()
	block, empty := make([]byte, w.Size), make([]byte, w.Size)
	var written uint64
	for off := int64(0); off < fileSize; off += int64(w.Size) {
		if _, err := f.ReadAt(block, off); err != nil {
			return err
		}
		switch {
		case bytes.Equal(block, s.block[:w.Size]):
			written++
		case !bytes.Equal(block, empty):
			return fmt.Errorf("the block at %d did not arrive as it was written", off)
		}
	}
	// Of several that write, one may be ahead of the others.
	if want := min(messages, uint64(fileSize/w.Size)) / uint64(w.connections()); written < want {
		return fmt.Errorf("%d blocks are in the file after %d were written", written, messages)
	}
	return nil
}

// useFile is the active end of a sample: w.Connections goroutines read or write
// the file that nfs has, large blocks in turn, small ones anywhere.
func useFile(ctx context.Context, nfs oncrpc.Caller, job Job) (s Sample, err error) {
	fs, err := client.Dial(ctx, client.Config{NFS: nfs})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, fs.Close()) }()
	file, err := fs.Open(ctx, fileName)
	if err != nil {
		return s, err
	}
	n := job.Workload.connections()
	samples, errs := make([]Sample, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { samples[i], errs[i] = useFileOnce(ctx, file, job, i) })
	}
	all.Wait()
	for _, x := range samples {
		s.Messages += x.Messages
		s.Total += x.Total
		s.Elapsed = max(s.Elapsed, x.Elapsed)
	}
	return s, errors.Join(errs...)
}

// useFileOnce is one of the goroutines.
func useFileOnce(ctx context.Context, file *client.File, job Job, number int) (Sample, error) {
	w := job.Workload
	pattern, buf := make([]byte, maxSize), make([]byte, w.Size)
	fillPattern(pattern, job.Seed)
	copy(buf, pattern)
	places := rand.New(rand.NewPCG(job.Seed, uint64(number)))
	run := newStopwatch(job)
	var at int64
	for step := number; !run.over(); step += w.connections() {
		at = int64(step) * int64(w.Size) % fileSize
		if w.Size < maxSize {
			at = places.Int64N(int64(fileSize/w.Size)) * int64(w.Size)
		}
		var err error
		if w.Op == Write {
			_, err = file.WriteAt(ctx, buf, at)
		} else {
			_, err = file.ReadAt(ctx, buf, at)
		}
		if err != nil {
			return Sample{}, err
		}
		run.add(1)
	}
	s := run.stop()
	if in := int(at % maxSize); !bytes.Equal(buf, pattern[in:in+w.Size]) {
		return s, fmt.Errorf("what was read at %d is not what is there", at)
	}
	return s, nil
}
