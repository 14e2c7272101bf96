// This file is weft mkdir.

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/client"
)

// mkdir holds the flags of `weft mkdir`.
type mkdir struct {
	mounts
	parents, verbose bool
	mode             string
}

func newMkdir() *cobra.Command {
	m := new(mkdir)
	cmd := &cobra.Command{
		Use:   "mkdir [flags] URL...",
		Short: "Make directories on an NFS server",
		Long: `Mkdir makes directories on NFS servers, without a mount. They get all permissions
except those in the umask.

` + urlHelp + `

The status is 1 if a directory was not made; the others are made.`,
		Example: `  weft mkdir nfs://127.0.0.1/new
  weft mkdir -p nfs://192.0.2.7/srv/a/b/c       and any missing parents
  weft mkdir -m 1777 nfs://192.0.2.7/srv/tmp`,
		Args: arguments(1, 0, "a URL, such as nfs://127.0.0.1/new"),
		RunE: func(cmd *cobra.Command, args []string) error { return m.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&m.parents, "parents", "p", false, "make missing parents, too; an existing directory is no error")
	f.StringVarP(&m.mode, "mode", "m", "", "`PERMISSIONS` in octal, such as 750, regardless of the umask")
	f.BoolVarP(&m.verbose, "verbose", "v", false, "name each directory that was made")
	m.register(cmd)
	return cmd
}

func (m *mkdir) run(cmd *cobra.Command, args []string) (err error) {
	if err := needURLs(args); err != nil {
		return err
	}
	perm := 0o777 &^ uint32(files.Umask())
	if m.mode != "" {
		mode, err := strconv.ParseUint(m.mode, 8, 32)
		if err != nil || mode > uint64(nfs.ModeMask) {
			return usagef("-m %s: expected permissions in octal, 0 to 7777, such as 750", m.mode)
		}
		perm = uint32(mode)
	}
	if err := m.open(cmd); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	return m.each(args, "made", func(ctx context.Context, arg string) error {
		tree, path, err := m.remote(ctx, arg)
		if err != nil {
			return err
		}
		if m.parents {
			return m.makeAll(ctx, tree, path, perm)
		}
		return m.make(ctx, tree, path, perm)
	})
}

// make makes a directory. It sets the bits that mkdir(2) does not have by SETATTR,
// because servers may ignore them in MKDIR.
func (m *mkdir) make(ctx context.Context, tree *files.Remote, path string, perm uint32) error {
	if strings.Trim(path, "/") == "" {
		return fmt.Errorf("%s: %w", tree.Show(path), nfs.ErrExist)
	}
	info, err := tree.FS.Mkdir(ctx, path, client.Mode(perm&0o777))
	if err == nil && perm&^0o777 != 0 {
		err = tree.FS.SetAttrOf(ctx, info, client.Mode(perm))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", tree.Show(path), err)
	}
	if m.verbose {
		fmt.Fprintf(m.cmd.OutOrStdout(), "made %v\n", files.Place{Tree: tree, Path: path})
	}
	return nil
}

// makeAll makes a directory and its missing parents. The user can write to the parents,
// so that it can go on.
func (m *mkdir) makeAll(ctx context.Context, tree *files.Remote, path string, perm uint32) error {
	above := 0o777&^uint32(files.Umask()) | 0o300
	elems := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	for i := range elems {
		name := "/" + strings.Join(elems[:i+1], "/")
		switch info, err := tree.FS.Stat(ctx, name); {
		case err == nil && info.IsDir():
			continue
		case err == nil:
			return fmt.Errorf("%s: %w", tree.Show(name), nfs.ErrNotDir)
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s: %w", tree.Show(name), err)
		}
		mode := above
		if i == len(elems)-1 {
			mode = perm
		}
		if err := m.make(ctx, tree, name, mode); err != nil && !errors.Is(err, fs.ErrExist) { // made meanwhile
			return err
		}
	}
	return nil
}
