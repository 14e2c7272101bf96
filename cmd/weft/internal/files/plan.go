// This file finds out what is to be copied where.

package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/weft-rdma/weft/internal/quote"
)

// A Place is a path in a tree.
type Place struct {
	Tree Tree
	Path string
}

// String returns the path for messages, on one line whatever the name contains.
func (p Place) String() string { return quote.Name(p.Tree.Show(p.Path)) }

// failed adds the path to an error that does not name it.
func (p Place) failed(err error) error {
	var own *fs.PathError
	if errors.As(err, &own) {
		return err
	}
	return fmt.Errorf("%v: %w", p, err)
}

// in returns the place of a file in the directory p.
func (p Place) in(name string) (Place, error) {
	joined, err := p.Tree.Join(p.Path, name)
	return Place{p.Tree, joined}, err
}

// A step of a copy makes one file or directory.
type step struct {
	do       action
	from, to Place
	info     *Info // of from

	// named says that the user has named to. A symbolic link there is followed.
	// Others are not to directories, and to files only within root, the directory that the
	// user has named: a server could list one first and then a directory or file of its
	// name, which would be written to where the link leads.
	named bool
	root  *Place
}

type action int

const (
	copyFile action = iota
	copyLink
	makeNode // a pipe, a socket or a device
	makeDir
	finishDir // what of a directory is kept is set when its files are there
)

// A Plan is the steps of a copy.
type Plan struct {
	steps []step
	room  int64 // bytes of memory that more steps may take
	Files int   // regular files
	Bytes int64 // in them, when they were looked at
}

const (
	// maxPlan bounds the memory of a plan, which a server could make grow, in bytes. A
	// million files with paths of 200 bytes fit.
	maxPlan = 1 << 30
	// stepSize is the size of a step without its paths, listSize that of an Info
	// without its name.
	stepSize = 256
	listSize = 256
)

// errTooLarge ends a plan that has grown too large.
var errTooLarge = errors.New("too many files to copy at once; copy them in parts")

// maxDepth bounds the depth of directories.
const maxDepth = 1000

// Plan examines the sources and the destination. An existing directory takes the
// sources under their names; anything else is the name of the copy of the one source,
// and so is a directory with c.Exact.
// Files that cannot be copied are reported to c.Failed and left out.
func (c *Copier) Plan(ctx context.Context, sources []Place, dst Place) (*Plan, error) {
	into := false
	switch path, info, err := dst.Tree.Resolve(ctx, dst.Path); {
	case err == nil && info.Mode.IsDir() && (!c.Exact || len(sources) > 1):
		into, dst.Path = true, path
	case err == nil && info.Mode.IsDir():
		dst.Path = path
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, dst.failed(err)
	case len(sources) > 1:
		return nil, fmt.Errorf("%v is not a directory: expected one as the destination of several files", dst)
	case strings.HasSuffix(dst.Path, "/") && !(err != nil && c.Recursive):
		return nil, fmt.Errorf("%v is not a directory", dst)
	}
	p := &Plan{room: maxPlan}
	for _, src := range sources {
		if err := c.planSource(ctx, p, src, dst, into); err != nil {
			if endsPlan(ctx, err) {
				return nil, err
			}
			c.fail(err)
		}
	}
	return p, nil
}

// endsPlan reports whether err ends the planning.
func endsPlan(ctx context.Context, err error) bool {
	return ctx.Err() != nil || fatal(err) || errors.Is(err, errTooLarge)
}

// planSource plans a source that the user has named. It follows symbolic links unless
// directories are copied.
func (c *Copier) planSource(ctx context.Context, p *Plan, src, dst Place, into bool) error {
	info, err := src.Tree.Lstat(ctx, src.Path)
	if err != nil {
		return src.failed(err)
	}
	if info.Mode&fs.ModeSymlink != 0 && (!c.Recursive || strings.HasSuffix(src.Path, "/")) {
		if _, info, err = src.Tree.Resolve(ctx, src.Path); err != nil {
			return src.failed(err)
		}
	}
	if _, nameless := src.Tree.(*Stdin); nameless && into {
		return fmt.Errorf("%v is a directory: name the file in it that %v is to become", dst, src)
	}
	to, named := dst, true
	// A source without a name, such as /, is copied into the directory itself.
	if name := src.Tree.Base(src.Path); into && name != "." && name != ".." && !strings.HasSuffix(name, "/") && !strings.HasSuffix(name, `\`) {
		if to, err = dst.in(name); err != nil {
			return err
		}
		named = !c.Recursive
	}
	if info.Mode.IsDir() {
		if !c.Recursive {
			return fmt.Errorf("%v is a directory; -r copies it", src)
		}
		if err := c.checkApart(ctx, src, to); err != nil {
			return err
		}
	}
	return c.planFile(ctx, p, &step{from: src, to: to, info: info, named: named, root: &dst}, 0)
}

// checkApart refuses to copy a directory into itself, which would not end.
func (c *Copier) checkApart(ctx context.Context, src, to Place) error {
	if src.Tree != to.Tree {
		return nil
	}
	from, _, err := src.Tree.Resolve(ctx, src.Path)
	if err != nil {
		return err
	}
	target := to.Path
	if dir, _, err := to.Tree.Resolve(ctx, to.Tree.Dir(to.Path)); err == nil {
		if target, err = to.Tree.Join(dir, to.Tree.Base(to.Path)); err != nil {
			target = dir
		}
	}
	if to.Tree.Inside(target, from) {
		return fmt.Errorf("%v is inside %v: a directory cannot be copied into itself", to, src)
	}
	return nil
}

// planFile plans a file of any type, and the contents of a directory. It fills in what
// s does.
func (c *Copier) planFile(ctx context.Context, p *Plan, s *step, depth int) error {
	switch mode := s.info.Mode; {
	case mode.IsRegular():
		p.Files++
		p.Bytes += min(max(s.info.Size, 0), math.MaxInt64-p.Bytes)
		return p.add(s, copyFile)
	case mode&fs.ModeSymlink != 0:
		return p.add(s, copyLink)
	case mode.IsDir():
		if depth == maxDepth {
			return fmt.Errorf("%v: directories more than %d levels deep", s.from, maxDepth)
		}
		return c.planDir(ctx, p, s, depth)
	case mode&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice) != 0 && c.Special:
		return p.add(s, makeNode)
	default:
		return fmt.Errorf("%v is not a file, directory or symbolic link (%v): not copied; -a copies pipes, sockets and devices", s.from, mode)
	}
}

func (p *Plan) add(s *step, do action) error {
	if err := p.reserve(s.from, stepSize+len(s.from.Path)+len(s.to.Path)); err != nil {
		return err
	}
	added := *s
	added.do = do
	p.steps = append(p.steps, added)
	return nil
}

// reserve accounts for memory. It fails with errTooLarge beyond maxPlan.
func (p *Plan) reserve(at Place, bytes int) error {
	if p.room -= int64(bytes); p.room < 0 {
		return fmt.Errorf("%v: %w", at, errTooLarge)
	}
	return nil
}

func (c *Copier) planDir(ctx context.Context, p *Plan, dir *step, depth int) error {
	list, err := dir.from.Tree.ReadDir(ctx, dir.from.Path)
	if err != nil {
		return dir.from.failed(err)
	}
	for _, entry := range list {
		if err := p.reserve(dir.from, listSize+len(entry.Name)); err != nil {
			return err
		}
	}
	slices.SortFunc(list, func(a, b *Info) int { return strings.Compare(a.Name, b.Name) })
	if err := p.add(dir, makeDir); err != nil {
		return err
	}
	for _, entry := range list {
		s := step{info: entry, root: dir.root}
		if s.from, err = dir.from.in(entry.Name); err == nil {
			if s.to, err = dir.to.in(entry.Name); err == nil {
				err = c.planFile(ctx, p, &s, depth+1)
			}
		}
		if err != nil {
			if endsPlan(ctx, err) {
				return err
			}
			c.fail(err)
		}
	}
	return p.add(dir, finishDir)
}
