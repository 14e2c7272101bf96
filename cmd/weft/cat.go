// This file is weft cat, and the help text about URLs.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// urlHelp is the part of the help that all commands with URLs share.
const urlHelp = `A file on a server is nfs://host[:port]/path. The longest part of the path that the
server exports is mounted. Any byte may be written %XX, and a percent sign is %25. The
port is 20049 for NFS over RDMA, or 2049 with --tcp.

The server has ten seconds for its first answer. If it stops answering later, the
command says so and waits, as a hard mount does. --timeout limits both; the status is
then 3. After an interrupt it is 130 (see weft --help).`

// catFiles holds the flags of `weft cat`.
type catFiles struct{ mounts }

func newCat() *cobra.Command {
	c := new(catFiles)
	cmd := &cobra.Command{
		Use:   "cat [flags] URL...",
		Short: "Print files of an NFS server",
		Long: `Cat prints files of NFS servers, one after the other, without a mount.

` + urlHelp + `

The status is 1 if a file could not be read to its end; the others are printed.`,
		Example: `  weft cat nfs://127.0.0.1/README.md                from weft serve .
  weft cat nfs://192.0.2.7/srv/a nfs://192.0.2.7/srv/b > both
  weft cat --tcp nfs://192.0.2.7/srv/big | sha256sum`,
		Args: arguments(1, 0, "a URL, such as nfs://127.0.0.1/README.md"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	cmd.Flags().SortFlags = false
	c.register(cmd)
	return cmd
}

func (c *catFiles) run(cmd *cobra.Command, args []string) (err error) {
	if err := needURLs(args); err != nil {
		return err
	}
	if err := c.open(cmd); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return c.each(args, "printed", func(ctx context.Context, arg string) error {
		return c.print(ctx, cmd.OutOrStdout(), arg)
	})
}

func (c *catFiles) print(ctx context.Context, w io.Writer, arg string) error {
	p, err := c.place(ctx, arg)
	if err != nil {
		return err
	}
	in, err := p.Tree.Open(ctx, p.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", arg, err)
	}
	defer in.Close()
	if _, err := io.Copy(w, in); err != nil {
		return fmt.Errorf("%s: %w", arg, err)
	}
	return nil
}
