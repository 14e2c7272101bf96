// This file moves the data of files.

package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

// into writes the data to an existing file that is not regular, such as a device.
func (c *Copier) into(ctx context.Context, s *step, to Place) error {
	out, err := to.Tree.Write(ctx, to.Path)
	if err != nil {
		return err
	}
	if err := c.transfer(ctx, s.from, false, out); err != nil {
		return s.failed(err)
	}
	c.copied(s)
	return nil
}

// transfer copies all data of a file and closes out. It copies holes of a sparse file
// as holes.
func (c *Copier) transfer(ctx context.Context, from Place, sparse bool, out Output) error {
	c.moved = 0
	in, err := from.Tree.Open(ctx, from.Path)
	if err != nil {
		out.Abort()
		return err
	}
	defer in.Close()
	if err := c.move(in, sparse, out); err != nil {
		out.Abort()
		return err
	}
	return out.Close()
}

func (c *Copier) move(in io.ReadCloser, sparse bool, out Output) error {
	var w io.Writer = out
	if sparse {
		if s, ok := in.(segmented); ok {
			return c.moveSegments(s, out)
		}
		w = &holeWriter{out: out}
	}
	var err error
	if r, ok := in.(io.WriterTo); ok {
		_, err = r.WriteTo(&counter{c: c, w: w})
	} else if sparse {
		_, err = io.Copy(&counter{c: c, w: w}, in)
	} else {
		_, err = out.ReadFrom(&counter{c: c, r: in})
	}
	return err
}

// A segmented source reports where it has data. Segment returns the next data from an
// offset on, empty at the end of the file; reading continues there.
type segmented interface {
	io.Reader
	Segment(off int64) (start, end int64, err error)
}

func (c *Copier) moveSegments(in segmented, out Output) error {
	for off := int64(0); ; {
		start, end, err := in.Segment(off)
		if err != nil {
			return err
		}
		if err := out.Skip(start - off); err != nil {
			return err
		}
		c.count(start - off)
		if start == end {
			return nil
		}
		n, err := out.ReadFrom(&counter{c: c, r: io.LimitReader(in, end-start)})
		if err != nil {
			return err
		}
		if off = start + n; off < end { // it has become shorter
			return nil
		}
	}
}

// Segment finds data by SEEK_DATA and SEEK_HOLE. Without these everything from the
// offset on is data.
func (i *localInput) Segment(off int64) (start, end int64, err error) {
	if err := i.ctx.Err(); err != nil {
		return 0, 0, err
	}
	size, err := i.f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, 0, err
	}
	if off >= size {
		return off, off, nil
	}
	start, err = i.f.Seek(off, seekData)
	switch {
	case errors.Is(err, errNoData):
		return size, size, nil
	case err != nil:
		start, end = off, size
	default:
		if end, err = i.f.Seek(start, seekHole); err != nil {
			end = size
		}
	}
	_, err = i.f.Seek(start, io.SeekStart)
	return start, end, err
}

// Skip leaves a hole by seeking. If no data follows, Close sets the size.
func (o *localOutput) Skip(n int64) error {
	if err := o.ctx.Err(); err != nil || n == 0 {
		return err
	}
	off, err := o.f.Seek(n, io.SeekCurrent)
	if err != nil {
		return err
	}
	return o.f.Truncate(off)
}

// grain is the unit in which zeros become holes, in bytes: a common block size of file
// systems.
const grain = 4096

var zeros [grain]byte

// A holeWriter skips zeros, in units that begin at multiples of grain.
type holeWriter struct {
	out Output
	off int64
}

func (h *holeWriter) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		run, hole := h.run(p[n:])
		if hole {
			err = h.out.Skip(int64(run))
		} else {
			run, err = h.out.Write(p[n : n+run])
		}
		h.off += int64(run)
		n += run
	}
	return n, err
}

// run returns how many bytes of p are alike, zeros or data, and which.
func (h *holeWriter) run(p []byte) (n int, hole bool) {
	for n < len(p) {
		part := p[n:]
		part = part[:min(len(part), grain-int((h.off+int64(n))%grain))]
		zero := bytes.Equal(part, zeros[:len(part)])
		if n > 0 && zero != hole {
			break
		}
		hole = zero
		n += len(part)
	}
	return n, hole
}

// sum reads a file and returns its checksum.
func (c *Copier) sum(ctx context.Context, p Place) (sum [sha256.Size]byte, err error) {
	in, err := p.Tree.Open(ctx, p.Path)
	if err != nil {
		return sum, err
	}
	defer in.Close()
	var h hash.Hash = sha256.New()
	if _, err := io.Copy(&counter{c: c, w: h}, in); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	return sum, nil
}

// A counter reports the bytes that it passes on.
type counter struct {
	c *Copier
	r io.Reader
	w io.Writer
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.c.moved += int64(n)
	c.c.count(int64(n))
	return n, err
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.c.moved += int64(n)
	c.c.count(int64(n))
	return n, err
}
