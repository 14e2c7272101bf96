// This file is weft cp.

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
)

// cp holds the flags of `weft cp`.
type cp struct {
	mounts
	copier  files.Copier
	archive bool
	verbose bool
}

func newCp() *cobra.Command {
	c := new(cp)
	cmd := &cobra.Command{
		Use:   "cp [flags] SOURCE... DESTINATION",
		Short: "Copy files to and from NFS servers",
		Long: `Cp copies files between this machine and NFS servers, or between servers, without a
mount. It keeps many requests for a large file in flight, and RDMA moves the data
without copying it.

` + urlHelp + `

If the destination is a directory, the sources are copied into it under their own
names, unless -T says that it is the name of the copy. -r copies directories with
their contents, and symbolic links as links; without -r links are followed. A source -
is standard input, and must be the only source; a destination - is standard output.

Cp writes a file under a temporary name (.weft-....part) in the destination directory
and renames it when it is complete, with --verify after it was compared. So a partial
file never has its final name, and an existing file is replaced atomically. By then,
what was written to a server is on its disk. After an interrupt or an error the
partial file is removed. If that fails because the server does not answer, cp names
the file, and the next weft cp with that server removes it.

A destination that is a symbolic link is written through, on a server as well. One
that -r finds below the destination is written through only if it leads to a file
below the destination, too. Any other link there is an error.

New files and directories have the permissions of their sources except those in the
umask; directories keep the sticky bit. -p keeps permissions, times, owner and group.
A user other than root cannot give files away: then the owner is not kept, which is no
error, nor are the set-user-ID, set-group-ID and sticky bits. Cp reports times that
NFS cannot hold, before 1970 and after 2106. Holes are always kept: in files of this
machine the system reports them; in files of a server that take less room than their
size, they are the runs of zeros. -a is -r and -p, and keeps hard links among the
files that are copied together, pipes, sockets and, for root, devices. As root, use -p
and -a only with servers that you trust: they can create programs and devices with the
rights of root.

--resume continues an interrupted copy: it skips files that exist with the same size
and time, and with --checksum those with the same content, whatever their time. It
relies on times that -p, -a or --resume have kept. With -p and -a a skipped file gets
the current permissions and owner of its source. An incomplete file is copied again
from the beginning. If the first run made the destination directory, use -T the second
time; otherwise a copy is made inside it.

--verify reads source and copy again and compares their SHA-256.

The status is 1 if anything was not copied, or not kept; the rest is copied as far as
possible.`,
		Example: `  weft cp nfs://127.0.0.1/README.md /tmp/            from weft serve .
  weft cp -r --verify photos nfs://192.0.2.7/srv/     a directory, compared
  weft cp -a --resume photos nfs://192.0.2.7/srv/     keep everything; repeat after an interrupt
  weft cp -a --resume -T nfs://192.0.2.7/srv/photos backup
  weft cp -p nfs://192.0.2.7/srv/a nfs://192.0.2.8/srv/a
  tar c photos | weft cp - nfs://192.0.2.7/srv/photos.tar
  weft cp nfs://192.0.2.7/srv/photos.tar - | tar t
  weft cp --tcp nfs://192.0.2.7/srv/big .             by TCP, to compare`,
		Args: arguments(2, 0, "a source and a destination, such as nfs://127.0.0.1/README.md /tmp/"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&c.copier.Recursive, "recursive", "r", false, "copy directories with their contents")
	f.BoolVarP(&c.copier.Exact, "no-target-directory", "T", false, "the destination is the name of the copy, even if it is a directory")
	f.BoolVarP(&c.copier.Preserve, "preserve", "p", false, "keep permissions and times, and the owner where permitted")
	f.BoolVarP(&c.archive, "archive", "a", false, "like -r and -p; also keep hard links, pipes, sockets and devices")
	f.BoolVar(&c.copier.Resume, "resume", false, "skip files that exist with the same size and time; keep times")
	f.BoolVar(&c.copier.Checksum, "checksum", false, "like --resume, but compare content instead of times")
	f.BoolVar(&c.copier.Verify, "verify", false, "read source and copy again and compare their SHA-256")
	f.BoolVarP(&c.verbose, "verbose", "v", false, "name each file that was copied")
	c.register(cmd)
	return cmd
}

func (c *cp) run(cmd *cobra.Command, args []string) (err error) {
	if err := c.checkArgs(args); err != nil {
		return err
	}
	c.copier.Umask = files.Umask()
	if c.archive {
		c.copier.Recursive, c.copier.Preserve = true, true
		c.copier.HardLinks, c.copier.Special = true, true
	}
	c.copier.Resume = c.copier.Resume || c.copier.Checksum
	if err := c.open(cmd); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	ctx := cmd.Context()
	var places []files.Place
	for i, arg := range args {
		p, err := c.sourceOrDest(ctx, arg, i == len(args)-1)
		if err != nil {
			return err
		}
		places = append(places, p)
	}
	defer c.recordParts(ctx)()
	last := len(places) - 1
	return c.copy(ctx, places[:last], places[last])
}

// standard is the argument for standard input or output.
const standard = "-"

func (c *cp) checkArgs(args []string) error {
	for _, arg := range args {
		if _, err := files.ParseURL(arg); files.IsURL(arg) && err != nil {
			return usagef("%v", err)
		}
	}
	from := slices.Contains(args[:len(args)-1], standard)
	to := args[len(args)-1] == standard
	switch {
	case from && len(args) > 2:
		return usagef("- is standard input, which must be the only source; a file named - is ./-")
	case from && c.copier.Resume || from && c.copier.Checksum:
		return usagef("--resume and --checksum need files on both sides; - is standard input")
	case c.copier.Exact && len(args) > 2:
		return usagef("-T takes one source")
	case (from || to) && c.copier.Verify:
		return usagef("--verify reads source and copy again; - cannot be read again")
	}
	return nil
}

// sourceOrDest returns the place of an argument.
func (c *cp) sourceOrDest(ctx context.Context, arg string, destination bool) (files.Place, error) {
	switch {
	case arg == standard && destination:
		return files.Place{Tree: &files.Stdout{W: c.cmd.OutOrStdout()}, Path: arg}, nil
	case arg == standard:
		return files.Place{Tree: &files.Stdin{R: c.cmd.InOrStdin()}, Path: arg}, nil
	}
	return c.place(ctx, arg)
}

func (c *cp) copy(ctx context.Context, sources []files.Place, dst files.Place) error {
	c.copier.Failed, c.copier.Lost = c.report, c.report
	plan, err := c.copier.Plan(ctx, sources, dst)
	if err != nil {
		return err
	}
	bar := c.bar(c.copier.Work(plan), plan.Files)
	c.copier.Progress, c.copier.Begun = bar.add, bar.next
	reportAbove := func(err error) {
		bar.clear()
		c.report(err)
	}
	c.copier.Failed, c.copier.Lost = reportAbove, reportAbove
	// If standard output is the destination, it gets no messages.
	out := c.cmd.OutOrStdout()
	if _, ok := dst.Tree.(*files.Stdout); ok {
		out = c.cmd.ErrOrStderr()
	}
	if c.verbose {
		c.copier.Copied = func(from, to fmt.Stringer) {
			bar.clear()
			fmt.Fprintln(out, plain(fmt.Sprintf("%v -> %v", from, to)))
		}
	}
	begun := time.Now()
	err = c.copier.Run(ctx, plan)
	bar.done()
	if err != nil {
		return err
	}
	if c.verbose {
		fmt.Fprintln(out, c.summary(time.Since(begun)))
	}
	return c.outcome()
}

// summary returns what was copied.
func (c *cp) summary(took time.Duration) string {
	done, bytes := c.copier.Done()
	plural := "s"
	if done == 1 {
		plural = ""
	}
	text := fmt.Sprintf("%d file%s, %d bytes in %.2f s", done, plural, bytes, took.Seconds())
	if n := c.copier.Skipped(); n > 0 { // a rate would be of nothing
		return fmt.Sprintf("%s; %d files and links were up to date", text, n)
	}
	return fmt.Sprintf("%s, %.1f MB/s", text, float64(bytes)/1e6/took.Seconds())
}

// outcome returns an error about what was not copied or not kept.
func (c *cp) outcome() error {
	var errs []error
	if n := c.copier.Failures(); n > 0 {
		errs = append(errs, errors.New(items(n)+" not copied"))
	}
	if n := c.copier.Losses(); n > 0 {
		errs = append(errs, errors.New(items(n)+" copied without an owner, a time or a hard link"))
	}
	return errors.Join(errs...)
}
