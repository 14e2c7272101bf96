// This file is weft mv.

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
	"github.com/weft-rdma/weft/nfs"
)

// mv holds the flags of `weft mv`.
type mv struct {
	mounts
	verbose bool
}

func newMv() *cobra.Command {
	m := new(mv)
	cmd := &cobra.Command{
		Use:   "mv [flags] SOURCE-URL... DESTINATION-URL",
		Short: "Rename files of an NFS server",
		Long: `Mv renames files and directories of an NFS server, or moves them to another directory,
without a mount. An existing file of the new name is replaced atomically, a directory
only if it is empty. A symbolic link is moved itself.

Mv renames and never copies. It fails between servers, exports and file systems, and
between a server and this machine: copy with weft cp -a, and if that succeeds, remove
with weft rm -r.

` + urlHelp + `

The status is 1 if something was not moved; the rest is moved.`,
		Example: `  weft mv nfs://127.0.0.1/old nfs://127.0.0.1/new
  weft mv nfs://192.0.2.7/srv/a nfs://192.0.2.7/srv/b nfs://192.0.2.7/srv/dir/

  weft cp -a --verify nfs://192.0.2.7/srv/a nfs://192.0.2.8/srv/ &&
    weft rm -r nfs://192.0.2.7/srv/a       to another server`,
		Args: arguments(2, 0, "a source and a destination, such as nfs://127.0.0.1/old nfs://127.0.0.1/new"),
		RunE: func(cmd *cobra.Command, args []string) error { return m.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&m.verbose, "verbose", "v", false, "name each file that was moved")
	m.register(cmd)
	return cmd
}

func (m *mv) run(cmd *cobra.Command, args []string) (err error) {
	for _, arg := range args {
		if !files.IsURL(arg) {
			return usagef("%q is on this machine, and mv renames only within a server: copy with weft cp -a, then remove the source", arg)
		}
	}
	if err := needNames(args[:len(args)-1]); err != nil {
		return err
	}
	if err := needURLs(args); err != nil {
		return err
	}
	if err := m.open(cmd); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	last := len(args) - 1
	tree, dst, err := m.remote(cmd.Context(), args[last])
	if err != nil {
		return err
	}
	to := files.Place{Tree: tree, Path: dst}
	into, err := m.isDirectory(cmd.Context(), to)
	if err != nil {
		return err
	}
	if last > 1 && !into {
		return fmt.Errorf("%v is not a directory: expected one as the destination of several files", to)
	}
	return m.each(args[:last], "moved", func(ctx context.Context, arg string) error {
		from, src, err := m.remote(ctx, arg)
		if err != nil {
			return err
		}
		return m.move(ctx, files.Place{Tree: from, Path: src}, to, into)
	})
}

// isDirectory reports whether the place is a directory, or a symbolic link to one.
func (m *mv) isDirectory(ctx context.Context, p files.Place) (bool, error) {
	switch _, info, err := p.Tree.Resolve(ctx, p.Path); {
	case err == nil:
		return info.Mode.IsDir(), nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, fmt.Errorf("%v: %w", p, err)
	}
}

func (m *mv) move(ctx context.Context, from, to files.Place, into bool) error {
	slash := strings.HasSuffix(from.Path, "/")
	from.Path = path.Clean("/" + from.Path)
	if from.Path == "/" {
		return fmt.Errorf("%v is the root of an export, which cannot be moved", from)
	}
	if from.Tree != to.Tree {
		return fmt.Errorf("%v cannot be moved to %v on another server or export: copy it with weft cp -a, then remove it with weft rm -r", from, to)
	}
	info, err := from.Tree.Lstat(ctx, from.Path)
	if err != nil {
		return fmt.Errorf("%v: %w", from, err)
	}
	if (slash || strings.HasSuffix(to.Path, "/") && !into) && !info.Mode.IsDir() {
		return fmt.Errorf("%v: %w", from, nfs.ErrNotDir)
	}
	if to.Path = path.Clean("/" + to.Path); into {
		to.Path = path.Join(to.Path, path.Base(from.Path))
	}
	if err := m.rename(ctx, from, to, info); err != nil {
		return err
	}
	if m.verbose {
		fmt.Fprintln(m.cmd.OutOrStdout(), plain(fmt.Sprintf("%v -> %v", from, to)))
	}
	return nil
}

// rename renames a file. If both names are hard links to the same file, RENAME would do
// nothing, so it removes the old name.
func (m *mv) rename(ctx context.Context, from, to files.Place, info *files.Info) error {
	old, err := to.Tree.Lstat(ctx, to.Path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%v: %w", to, err)
	case err == nil && old.Links > 0 && old.ID == info.ID:
		same, err := m.sameName(ctx, from, to)
		if err != nil {
			return fmt.Errorf("%v: %w", from, err)
		}
		if same || info.Mode.IsDir() {
			return fmt.Errorf("%v and %v are the same file", from, to)
		}
		if err := from.Tree.Remove(ctx, from.Path); err != nil {
			return fmt.Errorf("%v: %w", from, err)
		}
		return nil
	case info.Mode.IsDir() && to.Tree.Inside(to.Path, from.Path):
		return fmt.Errorf("%v cannot be moved into itself, to %v", from, to)
	}
	err = from.Tree.Rename(ctx, from.Path, to.Path)
	var stat nfs.Stat
	if errors.As(err, &stat) && stat == nfs.ErrXDev {
		return fmt.Errorf("%v to %v: %w: they are on different file systems of the server; copy it with weft cp -a, then remove it with weft rm -r", from, to, err)
	}
	if err != nil {
		return fmt.Errorf("%v to %v: %w", from, to, err)
	}
	return nil
}

// sameName reports whether two paths are the same name in the same directory, with
// symbolic links resolved.
func (m *mv) sameName(ctx context.Context, a, b files.Place) (bool, error) {
	if path.Base(a.Path) != path.Base(b.Path) {
		return false, nil
	}
	dirA, _, errA := a.Tree.Resolve(ctx, path.Dir(a.Path))
	dirB, _, errB := b.Tree.Resolve(ctx, path.Dir(b.Path))
	return dirA == dirB, errors.Join(errA, errB)
}
