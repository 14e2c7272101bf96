package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
)

// cp holds the flags of `weft cp`.
type cp struct {
	mounts
	copier  files.Copier
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

A destination that is a folder takes the sources by their names. -r copies folders
with what is in them, symbolic links as links, and writes through none that it
finds below the destination; without it links are followed.

A file is written under a name of its own (.weft-....part) in the folder that it
goes to, and gets its name when it is whole, and with --verify when it has been
compared: nothing that is in part looks whole, and a file that was there is replaced
at once. What was written to a server is on its disk by then. An interrupt or an
error removes the part; if the server cannot be reached for that, it is told.

--verify reads both ends again, and compares them by SHA-256.

The status is 1 when anything was not copied; the rest is, as far as it goes.`,
		Example: `  weft cp nfs://127.0.0.1/README.md /tmp/            from weft serve .
  weft cp -r --verify photos nfs://192.0.2.7/srv/     a folder, compared
  weft cp -p nfs://192.0.2.7/srv/a nfs://192.0.2.8/srv/a
  weft cp --tcp nfs://192.0.2.7/srv/big .             by TCP, to compare`,
		Args: arguments(2, 0, "what to copy and where to, such as nfs://127.0.0.1/README.md /tmp/"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&c.copier.Recursive, "recursive", "r", false, "copy folders with what is in them")
	f.BoolVarP(&c.copier.Preserve, "preserve", "p", false, "keep permissions, but not setuid and setgid of files, and times")
	f.BoolVar(&c.copier.Verify, "verify", false, "compare checksums of both ends")
	f.BoolVarP(&c.verbose, "verbose", "v", false, "name each file that was copied")
	c.register(cmd)
	return cmd
}

func (c *cp) run(cmd *cobra.Command, args []string) (err error) {
	for _, arg := range args {
		if _, err := files.ParseURL(arg); files.IsURL(arg) && err != nil {
			return usagef("%v", err)
		}
	}
	if err := c.open(cmd); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	ctx := cmd.Context()
	var places []files.Place
	for _, arg := range args {
		p, err := c.place(ctx, arg)
		if err != nil {
			return err
		}
		places = append(places, p)
	}
	last := len(places) - 1
	return c.copy(ctx, places[:last], places[last])
}

func (c *cp) copy(ctx context.Context, sources []files.Place, dst files.Place) error {
	c.copier.Failed = c.tell
	plan, err := c.copier.Plan(ctx, sources, dst)
	if err != nil {
		return err
	}
	bar := c.bar("copying", c.copier.Work(plan))
	c.copier.Progress = bar.add
	if c.verbose {
		c.copier.Copied = func(from, to fmt.Stringer) {
			bar.clear()
			fmt.Fprintln(c.cmd.OutOrStdout(), plain(fmt.Sprintf("%v -> %v", from, to)))
		}
	}
	begun := time.Now()
	err = c.copier.Run(ctx, plan)
	bar.done()
	if err != nil {
		return err
	}
	if c.verbose {
		seconds := time.Since(begun).Seconds()
		fmt.Fprintf(c.cmd.OutOrStdout(), "%d files, %d octets in %.2f s, %.1f MB/s\n", plan.Files, plan.Bytes, seconds, float64(plan.Bytes)/1e6/seconds)
	}
	if n := c.copier.Failures(); n > 0 {
		return fmt.Errorf("not copied: %d", n)
	}
	return nil
}
