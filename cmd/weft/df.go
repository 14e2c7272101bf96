// This file is weft df.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/internal/quote"
	"github.com/weft-rdma/weft/nfs"
)

// df holds the flags of `weft df`.
type df struct {
	mounts
	human, files bool
}

func newDf() *cobra.Command {
	d := new(df)
	cmd := &cobra.Command{
		Use:   "df [flags] URL...",
		Short: "Show the disk space of an NFS server",
		Long: `Df shows the size of the file system that each URL leads to, and how much of it is
used, in units of 1,024 bytes. Available is what the caller may use, which can be less
than what is free.

` + urlHelp + `

The status is 1 if a file system could not be queried.`,
		Example: `  weft df nfs://127.0.0.1/
  weft df -h nfs://192.0.2.7/srv nfs://192.0.2.8/srv
  weft df -i nfs://192.0.2.7/srv     number of files instead of bytes`,
		Args: arguments(1, 0, "a URL, such as nfs://127.0.0.1/"),
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&d.human, "human-readable", "h", false, "show sizes such as 1.5G, in powers of 1,024")
	f.BoolVarP(&d.files, "inodes", "i", false, "show numbers of files instead of bytes")
	f.Bool("help", false, "help for df")
	d.register(cmd)
	return cmd
}

func (d *df) run(cmd *cobra.Command, args []string) (err error) {
	if err := needURLs(args); err != nil {
		return err
	}
	if err := d.open(cmd); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "Filesystem\t%s\n", d.titles())
	err = d.each(args, "looked at", func(ctx context.Context, arg string) error {
		tree, path, err := d.remote(ctx, arg)
		if err != nil {
			return err
		}
		res, err := tree.FS.StatFS(ctx, path)
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		fmt.Fprintf(table, "%s\t%s\n", quote.Name(tree.Show(path)), d.row(res))
		return nil
	})
	return errors.Join(err, table.Flush())
}

func (d *df) titles() string {
	switch {
	case d.files:
		return "Inodes\tIUsed\tIFree\tIUse%"
	case d.human:
		return "Size\tUsed\tAvail\tUse%"
	}
	return "1K-blocks\tUsed\tAvailable\tUse%"
}

// row formats the answer of a server, whose numbers need not add up.
func (d *df) row(r *nfs.FsstatRes) string {
	total, free, avail := r.TotalBytes, r.FreeBytes, r.AvailBytes
	if d.files {
		total, free, avail = r.TotalFiles, r.FreeFiles, r.AvailFiles
	}
	used := total - min(free, total)
	show := func(n uint64) string { return strconv.FormatUint((n>>10)+min(n&1023, 1), 10) }
	if d.human {
		show = human
	} else if d.files {
		show = func(n uint64) string { return strconv.FormatUint(n, 10) }
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s", show(total), show(used), show(avail), percent(used, avail))
}

// percent returns the used share of the usable space, rounded up.
func percent(used, avail uint64) string {
	all, carry := bits.Add64(used, avail, 0)
	if carry != 0 { // nothing is as large
		used, all = used>>1, all>>1|1<<63
	}
	if all == 0 {
		return "-"
	}
	high, low := bits.Mul64(used, 100)
	whole, rest := bits.Div64(high, low, all)
	return fmt.Sprintf("%d%%", whole+min(rest, 1))
}
