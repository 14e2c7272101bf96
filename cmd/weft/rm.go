// This file is weft rm.

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
	"github.com/weft-rdma/weft/internal/quote"
)

// rm holds the flags of `weft rm`.
type rm struct {
	mounts
	remover files.Remover
	verbose bool
}

func newRm() *cobra.Command {
	r := new(rm)
	cmd := &cobra.Command{
		Use:   "rm [flags] URL...",
		Short: "Remove files of an NFS server",
		Long: `Rm removes files of NFS servers, and with -r directories with their contents, without
a mount. It does not ask. A symbolic link is removed, never its target. Rm refuses the
root of an export, and a URL that ends in . or .. .

` + urlHelp + `

The status is 1 if something was not removed; the rest is removed. With -f a file that
does not exist is no error.`,
		Example: `  weft rm nfs://127.0.0.1/old
  weft rm -r nfs://192.0.2.7/srv/tmp       a directory with its contents
  weft rm -rf nfs://192.0.2.7/srv/tmp      even if it does not exist`,
		Args: func(cmd *cobra.Command, args []string) error {
			if r.remover.Force {
				return nil
			}
			return arguments(1, 0, "a URL, such as nfs://127.0.0.1/old")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&r.remover.Recursive, "recursive", "r", false, "remove directories with their contents")
	f.BoolVarP(&r.remover.Force, "force", "f", false, "ignore files that do not exist")
	f.BoolVarP(&r.verbose, "verbose", "v", false, "name each file that was removed")
	r.register(cmd)
	return cmd
}

func (r *rm) run(cmd *cobra.Command, args []string) (err error) {
	if err := needNames(args); err != nil {
		return err
	}
	if err := r.open(cmd); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	r.remover.Failed = r.report
	if r.verbose {
		r.remover.Removed = func(name string) {
			fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", quote.Name(name))
		}
	}
	for _, arg := range args {
		tree, path, err := r.remote(cmd.Context(), arg)
		if err != nil {
			return err
		}
		if err := r.remover.Remove(cmd.Context(), tree, path); err != nil {
			return err
		}
	}
	if n := r.remover.Failures(); n > 0 {
		return errors.New(items(n) + " not removed")
	}
	return nil
}
