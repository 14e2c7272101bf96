// This file does what a copy has planned.

package files

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/client"
)

// A Copier copies files and folders. A file is written under another name beside
// the one it gets in the end, so that nothing that is in part looks whole.
type Copier struct {
	Recursive bool // folders, too, and symbolic links as such, which are not written through
	Preserve  bool // permissions and times
	Verify    bool // read both ends again and compare checksums

	Progress func(octets int64)          // of data copied or compared; may be nil
	Copied   func(from, to fmt.Stringer) // a file is there; may be nil
	Failed   func(err error)             // something was not copied, and others are; may be nil

	failures int
}

// Failures is how many files were not copied.
func (c *Copier) Failures() int { return c.failures }

// Work is how many octets the progress of a plan adds up to.
func (c *Copier) Work(p *Plan) int64 {
	if c.Verify {
		return 3 * p.Bytes
	}
	return p.Bytes
}

func (c *Copier) fail(err error) {
	c.failures++
	if c.Failed != nil {
		c.Failed(err)
	}
}

// fatal reports whether an error is that of a whole server rather than of a file.
func fatal(err error) bool {
	var e *client.Error
	if !errors.As(err, &e) {
		return false
	}
	var stat nfs.Stat
	if errors.As(err, &stat) {
		return false
	}
	for _, own := range []error{client.ErrOutside, client.ErrLoop, client.ErrServer, client.ErrLost} {
		if errors.Is(err, own) {
			return false
		}
	}
	return true
}

// Run does what was planned. Its error is one that ended the whole copy; files
// that were not copied are told to c.Failed, and counted.
func (c *Copier) Run(ctx context.Context, p *Plan) error {
	var missing *Place // a folder that could not be made, and what is in it
	for _, s := range p.steps {
		if missing != nil && s.to.Tree.Inside(s.to.Path, missing.Path) {
			continue
		}
		missing = nil
		err := c.step(ctx, &s)
		if err == nil {
			continue
		}
		if ctx.Err() != nil || fatal(err) {
			return err
		}
		c.fail(err)
		if s.do == makeDir {
			missing = &s.to
		}
	}
	return nil
}

func (c *Copier) step(ctx context.Context, s *step) error {
	switch s.do {
	case makeDir:
		_, old, err := s.there(ctx)
		switch {
		case err == nil && old.Mode.IsDir():
			return nil
		case err == nil:
			return fmt.Errorf("%v is no folder, and %v is one", s.to, s.from)
		}
		// The user can write to it at least until it is finished.
		return s.failed(s.to.Tree.Mkdir(ctx, s.to.Path, s.info.perm()|0o700))
	case finishDir:
		if !c.Preserve {
			return nil
		}
		return s.failed(s.to.Tree.Set(ctx, s.to.Path, s.info.meta()))
	case copyLink:
		return c.link(ctx, s)
	}
	return c.file(ctx, s)
}

// failed says of an error what was being copied: systems and servers name the part,
// which the user did not.
func (s *step) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%v to %v: %w", s.from, s.to, err)
}

// there is what is where s copies to, and its path without those symbolic links
// that may be followed.
func (s *step) there(ctx context.Context) (string, *Info, error) {
	if s.named {
		return s.to.Tree.Resolve(ctx, s.to.Path)
	}
	info, err := s.to.Tree.Lstat(ctx, s.to.Path)
	return s.to.Path, info, err
}

// link makes a symbolic link, in place of what there was unless that is a folder.
func (c *Copier) link(ctx context.Context, s *step) error {
	target, err := s.from.Tree.Readlink(ctx, s.from.Path)
	if err != nil {
		return err
	}
	if err := refuseDir(ctx, s.to, s.from); err != nil {
		return err
	}
	part, err := beside(s.to)
	if err != nil {
		return err
	}
	if err := part.Tree.Symlink(ctx, target, part.Path); err != nil {
		return s.failed(err)
	}
	if err := part.Tree.Rename(ctx, part.Path, s.to.Path); err != nil {
		return errors.Join(s.failed(err), discard(ctx, part))
	}
	c.copied(s)
	return nil
}

// refuseDir fails if there is a folder where a file is to be.
func refuseDir(ctx context.Context, to, from Place) error {
	if old, err := to.Tree.Lstat(ctx, to.Path); err == nil && old.Mode.IsDir() {
		return fmt.Errorf("%v is a folder, and %v is none", to, from)
	}
	return nil
}

// file copies a regular file. A symbolic link that is not followed is replaced.
func (c *Copier) file(ctx context.Context, s *step) error {
	to := s.to
	meta, set := s.info.meta(), c.Preserve
	path, old, err := s.there(ctx)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil, old.Mode&fs.ModeSymlink != 0: // a new one
	case old.Mode.IsDir():
		return fmt.Errorf("%v is a folder, and %v is none", to, s.from)
	case !old.Mode.IsRegular():
		return c.into(ctx, s.from, Place{to.Tree, path})
	default:
		if same, err := c.same(ctx, s.from, path, to.Tree); err != nil || same {
			return errors.Join(err, sameFile(same, s.from, to))
		}
		to.Path = path
		if !set { // it stays as open as it was
			meta, set = Meta{Perm: old.perm()}, true
		}
	}
	part, err := beside(to)
	if err != nil {
		return err
	}
	out, err := part.Tree.Create(ctx, part.Path, s.info.perm())
	if err != nil {
		left := discard(ctx, part)
		if !fatal(err) { // it was refused, and nothing can be left
			left = nil
		}
		return errors.Join(s.failed(err), left)
	}
	if err := c.transfer(ctx, s.from, out); err != nil {
		return errors.Join(s.failed(err), discard(ctx, part))
	}
	if err := c.compare(ctx, s.from, part); err != nil {
		return errors.Join(err, discard(ctx, part))
	}
	if set {
		err = part.Tree.Set(ctx, part.Path, meta)
	}
	if err == nil {
		err = part.Tree.Rename(ctx, part.Path, to.Path)
	}
	if err != nil {
		return errors.Join(s.failed(err), discard(ctx, part))
	}
	c.copied(s)
	return nil
}

func (c *Copier) copied(s *step) {
	if c.Copied != nil {
		c.Copied(s.from, s.to)
	}
}

// same reports whether a source is the file at path of a tree.
func (c *Copier) same(ctx context.Context, from Place, path string, tree Tree) (bool, error) {
	if from.Tree != tree {
		return false, nil
	}
	own, _, err := from.Tree.Resolve(ctx, from.Path)
	return own == path, err
}

func sameFile(same bool, from, to Place) error {
	if !same {
		return nil
	}
	return fmt.Errorf("%v and %v are the same file", from, to)
}

// compare reads a file and its copy again, if asked to.
func (c *Copier) compare(ctx context.Context, from, part Place) error {
	if !c.Verify {
		return nil
	}
	want, err := c.sum(ctx, from)
	if err != nil {
		return fmt.Errorf("reading %v again: %w", from, err)
	}
	got, err := c.sum(ctx, part)
	if err != nil {
		return fmt.Errorf("reading what was written of %v: %w", from, err)
	}
	if got != want {
		return fmt.Errorf("%v was not copied right, or has changed: its SHA-256 is %x, that of the copy was %x", from, want, got)
	}
	return nil
}

// into writes the data to what is no regular file, such as a device.
func (c *Copier) into(ctx context.Context, from, to Place) error {
	out, err := to.Tree.Write(ctx, to.Path)
	if err != nil {
		return err
	}
	return c.transfer(ctx, from, out)
}

// transfer copies all data of a file and closes out.
func (c *Copier) transfer(ctx context.Context, from Place, out Output) error {
	in, err := from.Tree.Open(ctx, from.Path)
	if err != nil {
		out.Abort()
		return err
	}
	defer in.Close()
	if w, ok := in.(io.WriterTo); ok {
		_, err = w.WriteTo(&counter{c: c, w: out})
	} else {
		_, err = out.ReadFrom(&counter{c: c, r: in})
	}
	if err != nil {
		out.Abort()
		return err
	}
	return out.Close()
}

// sum reads a file for its checksum.
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

// beside is a new name beside a place, which says whose it is.
func beside(p Place) (Place, error) {
	var r [6]byte
	rand.Read(r[:])
	return Place{p.Tree, p.Tree.Dir(p.Path)}.in(".weft-" + hex.EncodeToString(r[:]) + ".part")
}

// discardTime bounds the removal of a file in part, even after an interrupt.
const discardTime = 5 * time.Second

// discard removes a file in part. If there is none, so much the better.
func discard(ctx context.Context, part Place) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTime)
	defer cancel()
	if err := part.Tree.Remove(ctx, part.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%v may be left behind: %w", part, err)
	}
	return nil
}

// A counter tells of the octets that go by.
type counter struct {
	c *Copier
	r io.Reader
	w io.Writer
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.count(n)
	return n, err
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.count(n)
	return n, err
}

func (c *counter) count(n int) {
	if c.c.Progress != nil {
		c.c.Progress(int64(n))
	}
}
