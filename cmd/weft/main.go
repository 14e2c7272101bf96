// Command weft is the command of the software RNIC Weft.
//
//	weft perf    measures RDMA and plain TCP side by side
//	weft ping    pings by RDMA; interoperates with rping(1)
//	weft info    shows what this RNIC is and can do
//	weft run     runs an RDMA program unchanged
//	weft serve   serves a directory to NFS clients, over RDMA and TCP
//	weft ls      lists directories of an NFS server
//	weft cat     prints files of an NFS server
//	weft cp      copies files to and from NFS servers
//	weft rm      removes files of an NFS server
//	weft mkdir   makes directories on an NFS server
//	weft mv      renames files of an NFS server
//	weft stat    shows the attributes of files of an NFS server
//	weft df      shows the disk space of an NFS server
//	weft gateway passes NFS between RDMA and TCP
//	weft top     shows connections, rates and latencies of a running command
//	weft cert    makes certificates for encryption by TLS
//
// weft completion prints scripts for shell completion, and weft --version prints the
// version.
//
// The exit status is 0 for success, 1 if something failed, 2 for wrong usage, 3 if a
// server or peer did not answer in time, and after a signal 128 plus its number: 130
// for SIGINT, 143 for SIGTERM. The first signal ends a command cleanly within a second.
// A file server or gateway first answers the calls in progress, and then ends with status
// 0. A second signal ends a command at once.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Exit statuses. After a signal it is signalError's.
const (
	exitFailed = 1
	exitUsage  = 2
	exitSilent = 3
)

func main() {
	signals := make(chan os.Signal, 2)
	if underSupervision() {
		signal.Ignore(os.Interrupt, terminate, reload)
	} else {
		signal.Notify(signals, os.Interrupt, terminate)
	}
	os.Exit(untilSignals(signals, func(ctx context.Context) int {
		ctx = context.WithValue(ctx, processKey{}, &process{signals})
		return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}))
}

// run runs the command and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	out := &output{w: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	// An error before this hook is about arguments or flags.
	asked := false
	root.PersistentPreRun = func(*cobra.Command, []string) { asked = true }

	cmd, err := root.ExecuteContextC(ctx)
	name := cmd.CommandPath()
	var usage *usageError
	if err != nil && (!asked || errors.As(err, &usage)) {
		about := name
		if cmd.Name() == "help" {
			about = root.Name()
		}
		fmt.Fprintf(stderr, "%s: %s\nSee '%s --help'.\n", name, escape(err.Error()), about)
		return exitUsage
	}
	var worker *workerError
	if errors.As(err, &worker) {
		return worker.status
	}
	end, interrupted := signaled(ctx)
	if interrupted && errors.Is(err, context.Canceled) {
		err = end
	}
	if err == nil {
		err = out.failed()
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %s\n", name, message(err))
	}
	return exitStatus(ctx, err)
}

// exitStatus is the status of a command that has ended with an error or nil.
func exitStatus(ctx context.Context, err error) int {
	end, interrupted := signaled(ctx)
	switch {
	case err == nil && endedWell(ctx):
		return 0
	case interrupted:
		return end.status()
	case err == nil:
		return 0
	case silent(err):
		return exitSilent
	}
	return exitFailed
}

// silent reports whether an error is a timeout: a server or peer did not answer.
func silent(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "weft",
		Short: "RDMA over TCP: a software RNIC",
		Long: `Weft is a software RNIC: RDMA over ordinary TCP sockets, by the iWARP protocols. It
needs no special hardware, no kernel module and no root.

Exit status:
  0    success
  1    something failed
  2    wrong usage
  3    a server or peer did not answer in time
  130  ended by an interrupt (SIGINT)
  143  ended by SIGTERM

The first signal ends a command cleanly within a second. A file server or gateway first
answers the calls in progress (--drain), and then ends with status 0. A second signal
ends a command at once.`,
		Example: `  weft perf                           measure this machine against itself
  weft ping -s -a 127.0.0.1           answer pings, also those of rping
  weft ping -c -a 127.0.0.1 -C 10 -v  send ten
  weft serve .                        serve this directory by NFS over RDMA
  weft cp nfs://127.0.0.1/file /tmp/  copy a file from it`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       fullVersion(),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(cmd, "command", args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("missing command: perf, ping, info, run, serve, ls, cat, cp, rm, mkdir, mv, stat, df, gateway, top or cert")
		},
	}
	root.SetVersionTemplate("weft {{.Version}}\n")
	root.SetHelpCommand(newHelp())
	root.AddCommand(newPerf(), newPing(), newInfo(), newRun(), newServe(), newLs(), newCat(), newCp(), newRm(), newMkdir(), newMv(), newStat(), newDf(), newGateway(), newTop(), newCert())
	addCompletion(root)
	return root
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknown(cmd.Root(), "help topic", args)
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) (list []string, _ cobra.ShellCompDirective) {
			topic, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, sub := range topic.Commands() {
				if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), typed) {
					list = append(list, sub.Name()+"\t"+sub.Short)
				}
			}
			return list, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// unknown makes the error for an unknown name, with suggestions.
func unknown(root *cobra.Command, what string, name []string) error {
	text := fmt.Sprintf("unknown %s %q", what, strings.Join(name, " "))
	root.SuggestionsMinimumDistance = min(len(name[0])/2, 2) // in letters
	like := root.SuggestionsFor(name[0])
	whole := func(command string) bool { return strings.HasPrefix(command, name[0]) }
	if slices.ContainsFunc(like, whole) {
		like = slices.DeleteFunc(like, func(command string) bool { return !whole(command) })
	}
	if len(like) > 0 {
		text += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return usagef("%s", text)
}

// A usageError says that the arguments or flags are wrong.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}
