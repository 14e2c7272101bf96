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
		Short: "Copy files from and to NFS servers",
		Long: `Cp copies files between this machine and NFS servers, or between servers, without
mounting anything. Large files have many requests under way at a time, and are
read and written by RDMA without a copy.

` + urlHelp + `

A destination that is a folder takes the sources by their names, unless -T says that
it is the name of the copy itself. -r copies folders with what is in them, symbolic
links as links; without it links are followed. As the only source - is standard
input, and as the destination standard output.

A file is written under a name of its own (.weft-....part) in the folder that it
goes to, and gets its name when it is whole, and with --verify when it has been
compared: a partial file never has its final name, and a file that was there is
replaced at once. What was written to a server is on its disk by then. An interrupt
or an error removes the part. One that cannot be removed, as the server does not
answer, is named, and the next weft cp with that server removes it.

A destination that is a symbolic link is written through, on a server as well. One
that -r finds below the destination is written through only if it leads to a file
within; one that leads elsewhere, or to nothing, is an error.

New files and folders have the permissions of their sources without those of the
umask. -p keeps permissions, times, owner and group. Who is not root on the other
side cannot give files away: then the owner is left out without an error, and so
are the set-user-ID, set-group-ID and sticky bits. Holes are always kept: from
this machine's files as the system tells them, from a server's as runs of zeros in
files that take less room than their size. -a is -r and -p, and keeps hard links
among the files that are copied at a time, pipes, sockets, and for root devices.
As root, take -p and -a from servers that you trust only: they can make programs
and devices with root's rights.

--resume goes on where an interrupted copy has stopped: it skips files that are
there with the same size and time, and with --checksum those with the same content,
however old they are. It goes by times that -p, -a or --resume have kept. -p and -a
give what is skipped the permissions and the owner that its source has now. A file
that was not finished is copied anew from its beginning. A folder that the first run made
under a name of its own takes -T the second time, or it would get a copy in it.

--verify reads both ends of what was copied again, and compares them by SHA-256.

The status is 1 when anything was not copied, or not kept; the rest is, as far as
it goes.`,
		Example: `  weft cp nfs://127.0.0.1/README.md /tmp/            from weft serve .
  weft cp -r --verify photos nfs://192.0.2.7/srv/     a folder, compared
  weft cp -a --resume photos nfs://192.0.2.7/srv/     all there is to keep; again after an interrupt
  weft cp -a --resume -T nfs://192.0.2.7/srv/photos backup
  weft cp -p nfs://192.0.2.7/srv/a nfs://192.0.2.8/srv/a
  tar c photos | weft cp - nfs://192.0.2.7/srv/photos.tar
  weft cp nfs://192.0.2.7/srv/photos.tar - | tar t
  weft cp --tcp nfs://192.0.2.7/srv/big .             by TCP, to compare`,
		Args: arguments(2, 0, "what to copy and where to, such as nfs://127.0.0.1/README.md /tmp/"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&c.copier.Recursive, "recursive", "r", false, "copy folders with what is in them")
	f.BoolVarP(&c.copier.Exact, "no-target-directory", "T", false, "the destination is the name of the copy, even if it is a folder")
	f.BoolVarP(&c.copier.Preserve, "preserve", "p", false, "keep permissions, times, and owners where that may be")
	f.BoolVarP(&c.archive, "archive", "a", false, "-r and -p, and keep hard links, pipes, sockets and devices")
	f.BoolVar(&c.copier.Resume, "resume", false, "skip files that are there with the same size and time, and keep times")
	f.BoolVar(&c.copier.Checksum, "checksum", false, "--resume by content in place of time")
	f.BoolVar(&c.copier.Verify, "verify", false, "compare checksums of both ends")
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
		p, err := c.end(ctx, arg, i == len(args)-1)
		if err != nil {
			return err
		}
		places = append(places, p)
	}
	defer c.account(ctx)()
	last := len(places) - 1
	return c.copy(ctx, places[:last], places[last])
}

// standard is the argument that is standard input or output.
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
		return usagef("- is standard input, which is the only source if it is one; a file of that name is ./-")
	case from && c.copier.Resume || from && c.copier.Checksum:
		return usagef("--resume and --checksum need files on both sides, and - is standard input")
	case c.copier.Exact && len(args) > 2:
		return usagef("-T takes one source")
	case (from || to) && c.copier.Verify:
		return usagef("--verify reads both ends again, and - cannot be read again")
	}
	return nil
}

// end is the place of an argument, which is a source or the destination.
func (c *cp) end(ctx context.Context, arg string, destination bool) (files.Place, error) {
	switch {
	case arg == standard && destination:
		return files.Place{Tree: &files.Stdout{W: c.cmd.OutOrStdout()}, Path: arg}, nil
	case arg == standard:
		return files.Place{Tree: &files.Stdin{R: c.cmd.InOrStdin()}, Path: arg}, nil
	}
	return c.place(ctx, arg)
}

func (c *cp) copy(ctx context.Context, sources []files.Place, dst files.Place) error {
	c.copier.Failed, c.copier.Lost = c.tell, c.tell
	plan, err := c.copier.Plan(ctx, sources, dst)
	if err != nil {
		return err
	}
	bar := c.bar(c.copier.Work(plan), plan.Files)
	c.copier.Progress, c.copier.Begun = bar.add, bar.next
	told := func(err error) {
		bar.clear()
		c.tell(err)
	}
	c.copier.Failed, c.copier.Lost = told, told
	// Standard output that is the copy gets no messages.
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

// summary says what was done.
func (c *cp) summary(took time.Duration) string {
	done, octets := c.copier.Done()
	text := fmt.Sprintf("%d files, %d octets in %.2f s", done, octets, took.Seconds())
	if n := c.copier.Skipped(); n > 0 { // a rate would be of nothing
		return fmt.Sprintf("%s; %d files and links were there already", text, n)
	}
	return fmt.Sprintf("%s, %.1f MB/s", text, float64(octets)/1e6/took.Seconds())
}

// outcome says what was not done.
func (c *cp) outcome() error {
	var errs []error
	if n := c.copier.Failures(); n > 0 {
		errs = append(errs, fmt.Errorf("not copied: %d", n))
	}
	if n := c.copier.Losses(); n > 0 {
		errs = append(errs, fmt.Errorf("copied with something not kept: %d", n))
	}
	return errors.Join(errs...)
}
