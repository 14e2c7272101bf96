// Command weft measures, tries and describes the software RNIC.
//
//	weft perf    moves data between two RNICs and compares with plain TCP
//	weft ping    what rping(1) does, and speaks with it
//	weft info    what this RNIC is and can do
//	weft serve   serves a folder to NFS clients, over RDMA and TCP
//	weft ls      lists folders of an NFS server
//	weft cat     prints files of an NFS server
//	weft cp      copies files from and to NFS servers
//	weft gateway reaches an NFS server over RDMA that speaks TCP, and the reverse
//
// It ends with status 0 when all went well, 1 when something failed and 2 when
// it was asked wrongly. An interrupt ends it in good order; a second one, at
// once.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, terminate)
	// From the first signal on the default action is back: the second kills.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	// An error before this hook is one of arguments or flags.
	asked := false
	root.PersistentPreRun = func(*cobra.Command, []string) { asked = true }

	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	name := cmd.CommandPath()
	var usage *usageError
	if !asked || errors.As(err, &usage) {
		fmt.Fprintf(stderr, "%s: %v\nSee '%s --help'.\n", name, err, name)
		return exitUsage
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	fmt.Fprintf(stderr, "%s: %s\n", name, plain(err.Error()))
	return exitFailed
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "weft",
		Short: "RDMA over TCP, by a software RNIC",
		Long: `weft is the command of Weft, a software RNIC: RDMA by the iWARP protocols
over ordinary TCP sockets, without special hardware, kernel modules or root.`,
		Example: `  weft perf                           measure this machine against itself
  weft ping -s -a 127.0.0.1           answer pings (rping's too)
  weft ping -c -a 127.0.0.1 -C 10 -v  send ten
  weft serve .                        serve this folder by NFS over RDMA
  weft cp nfs://127.0.0.1/file /tmp/  copy from it`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("say what to do: perf, ping, info, serve, ls, cat, cp or gateway")
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newPerf(), newPing(), newInfo(), newServe(), newLs(), newCat(), newCp(), newGateway())
	return root
}

// A usageError says that the command was asked for something it does not do.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}
