// This file is the tree of this machine.

package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Local is the files of this machine, by the paths of the system.
type Local struct{}

var _ Tree = Local{}

// Join refuses names that this system takes for paths, such as one with a backslash on
// Windows.
func (Local) Join(dir, name string) (string, error) {
	if !filepath.IsLocal(name) || strings.ContainsRune(name, filepath.Separator) || name == "." {
		return "", fmt.Errorf("a file cannot be named %q here", name)
	}
	return filepath.Join(dir, name), nil
}

func (Local) Dir(name string) string { return filepath.Dir(name) }

func (Local) Base(name string) string { return filepath.Base(name) }

func (Local) Inside(name, dir string) bool {
	name, err1 := absolute(name)
	dir, err2 := absolute(dir)
	rel, err3 := filepath.Rel(dir, name)
	return errors.Join(err1, err2, err3) == nil && filepath.IsLocal(rel)
}

// absolute returns an absolute path, with the symbolic links of the current directory
// resolved.
func absolute(name string) (string, error) {
	if filepath.VolumeName(name) != "" || name != "" && os.IsPathSeparator(name[0]) {
		return filepath.Abs(name)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	return filepath.Join(dir, name), nil
}

func (Local) Show(name string) string { return name }

// Resolve returns the given name for a file without a path, such as the pipe behind
// /dev/stdout.
func (l Local) Resolve(ctx context.Context, name string) (string, *Info, error) {
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		if info, statErr := os.Stat(name); statErr == nil && !info.Mode().IsRegular() && !info.IsDir() {
			return name, localInfo(info), nil
		}
		return "", nil, err
	}
	info, err := l.Lstat(ctx, path)
	return path, info, err
}

func (Local) Lstat(ctx context.Context, name string) (*Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	return localInfo(info), nil
}

func localInfo(info fs.FileInfo) *Info {
	i := &Info{Name: info.Name(), Mode: info.Mode(), Size: info.Size(), Mtime: info.ModTime(), Atime: info.ModTime()}
	addSystemInfo(i, info)
	return i
}

func (Local) ReadDir(ctx context.Context, name string) ([]*Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var infos []*Info
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, localInfo(info))
	}
	return infos, nil
}

func (Local) Readlink(_ context.Context, name string) (string, error) { return os.Readlink(name) }

func (Local) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	f, err := openExisting(ctx, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return &localInput{f, ctx, bound(ctx, f)}, nil
}

func (Local) Create(ctx context.Context, name string, perm fs.FileMode) (Output, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm.Perm())
	if err != nil {
		return nil, err
	}
	return &localOutput{f, ctx, bound(ctx, f)}, nil
}

func (Local) Write(ctx context.Context, name string) (Output, error) {
	f, err := openExisting(ctx, name, os.O_WRONLY)
	if err != nil {
		return nil, err
	}
	return &localOutput{f, ctx, bound(ctx, f)}, nil
}

func (Local) Mkdir(_ context.Context, name string, perm fs.FileMode) error {
	return os.Mkdir(name, perm.Perm())
}

func (Local) Symlink(_ context.Context, target, name string) error { return os.Symlink(target, name) }

func (Local) Rename(_ context.Context, from, to string) error { return os.Rename(from, to) }

func (Local) Remove(_ context.Context, name string) error { return os.Remove(name) }

func (Local) Link(_ context.Context, old, name string) error { return os.Link(old, name) }

func (Local) Mknod(_ context.Context, name string, mode fs.FileMode, dev Device) error {
	return mknod(name, mode, dev)
}

func (Local) Set(_ context.Context, name string, m Meta) error {
	kept, lost := setOwner(name, m.Owner)
	var refused *OwnerError
	if lost != nil && !errors.As(lost, &refused) {
		return lost
	}
	if !m.Symlink {
		if !kept {
			m.Perm = disowned(m.Perm)
		}
		if err := os.Chmod(name, m.Perm); err != nil {
			return err
		}
	}
	if !m.Mtime.IsZero() {
		if err := setTimes(name, m); err != nil {
			return err
		}
	}
	return lost
}

// A localInput reads until the context ends. It hides the other methods of os.File,
// which ignore the context.
type localInput struct {
	f       *os.File
	ctx     context.Context
	release func() bool
}

func (i *localInput) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := i.f.Read(p)
	return n, because(i.ctx, err)
}

func (i *localInput) Close() error {
	i.release()
	return i.f.Close()
}

// A localOutput writes until the context ends.
type localOutput struct {
	f       *os.File
	ctx     context.Context
	release func() bool
}

func (o *localOutput) Write(p []byte) (int, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := o.f.Write(p)
	return n, because(o.ctx, err)
}

func (o *localOutput) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{o}, r, make([]byte, 256<<10))
}

func (o *localOutput) Close() error {
	o.release()
	return o.f.Close()
}

func (o *localOutput) Abort() { o.Close() }
