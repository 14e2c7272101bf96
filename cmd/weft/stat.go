// This file is weft stat.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
	"github.com/weft-rdma/weft/internal/quote"
)

// statFiles holds the flags of `weft stat`.
type statFiles struct {
	mounts
	follow, asJSON bool
}

func newStat() *cobra.Command {
	s := new(statFiles)
	cmd := &cobra.Command{
		Use:   "stat [flags] URL...",
		Short: "Show the attributes of files of an NFS server",
		Long: `Stat shows the attributes that an NFS server reports for files. Owners and groups are
the server's numbers. Blocks are of 512 bytes.

` + urlHelp + `

` + jsonHelp + `

The status is 1 if the attributes of a file could not be read.`,
		Example: `  weft stat nfs://127.0.0.1/README.md
  weft stat -L nfs://192.0.2.7/srv/link              the target of the link
  weft stat --json nfs://192.0.2.7/srv/a | jq .size`,
		Args: arguments(1, 0, "a URL, such as nfs://127.0.0.1/README.md"),
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&s.follow, "dereference", "L", false, "follow symbolic links")
	f.BoolVar(&s.asJSON, "json", false, "print one JSON object per line for each file")
	s.register(cmd)
	return cmd
}

func (s *statFiles) run(cmd *cobra.Command, args []string) (err error) {
	if err := needURLs(args); err != nil {
		return err
	}
	if err := s.open(cmd); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.each(args, "looked at", func(ctx context.Context, arg string) error {
		tree, path, err := s.remote(ctx, arg)
		if err != nil {
			return err
		}
		if err := s.show(ctx, cmd.OutOrStdout(), tree, path); err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		return nil
	})
}

func (s *statFiles) show(ctx context.Context, w io.Writer, tree *files.Remote, path string) (err error) {
	var info *files.Info
	if s.follow {
		_, info, err = tree.Resolve(ctx, path)
	} else {
		info, err = tree.Lstat(ctx, path)
	}
	if err != nil {
		return err
	}
	target := ""
	if info.Mode&os.ModeSymlink != 0 {
		if target, err = tree.Readlink(ctx, path); err != nil {
			return err
		}
	}
	info.Name = tree.Base(path)
	if s.asJSON {
		return fileEncoder(w).Encode(describeFile(tree, path, info, target))
	}
	name := quote.Name(tree.Show(path))
	if target != "" {
		name += " -> " + quote.Name(target)
	}
	device := ""
	if info.Mode&os.ModeDevice != 0 {
		device = fmt.Sprintf("  Device type: %d,%d", info.Device.Major, info.Device.Minor)
	}
	_, err = fmt.Fprintf(w, "  File: %s\n  Size: %-15d Blocks: %-10d %s\nDevice: %#-15x  Inode: %-11d Links: %d%s\nAccess: (%s/%s)  Uid: %d  Gid: %d\nAccess: %s\nModify: %s\nChange: %s\n",
		name, info.Size, info.Used/512, kindOf(info.Mode), info.ID.FS, info.ID.File, info.Links, device,
		octal(info.Mode), modeOf(info.Mode), info.UID, info.GID, stamp(info.Atime), stamp(info.Mtime), stamp(info.Ctime))
	return err
}

func stamp(t time.Time) string { return t.Format("2006-01-02 15:04:05.000000000 -0700") }
