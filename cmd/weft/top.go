// This file is weft top.

package main

import (
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/weft-rdma/weft/cmd/weft/internal/top"
)

func newTop() *cobra.Command {
	var (
		once     bool
		interval time.Duration
	)
	cmd := &cobra.Command{
		Use:   "top {ADDR | unix:PATH}",
		Short: "Show connections, rates and latencies of a running command",
		Long: `Top shows what a running weft serve, gateway, perf or ping does: its connections, their
rates, the calls by procedure with their latencies, errors, and what was refused. That
command has to run with --metrics, and top is given the same address.

P50 and P99 are the latencies that half and 99 of 100 calls of the interval did not
exceed, estimated from the buckets of a histogram. If the command goes away, top says
so, and shows it again when it is back. The key q quits.

--once prints the state and the rates of one interval, for scripts. If there is no
answer, its status is 1.`,
		Example: `  weft serve /srv --metrics 127.0.0.1:9469
  weft top 127.0.0.1:9469            in another terminal
  weft top unix:/run/weft.sock       a command with --metrics unix:/run/weft.sock
  weft top --once 127.0.0.1:9469     for scripts`,
		Args: arguments(1, 1, "the address that --metrics of the other command has"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if interval <= 0 {
				return usagef("--interval %v: expected more than 0", interval)
			}
			source := top.NewSource(args[0])
			defer source.Close()
			if once {
				return top.Once(cmd.Context(), source, interval, cmd.OutOrStdout())
			}
			if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
				return errors.New("there is no terminal to draw on: use --once")
			}
			return top.Run(cmd.Context(), source, interval, os.Stdin, os.Stdout)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "print once and exit, without a terminal")
	cmd.Flags().DurationVarP(&interval, "interval", "i", 2*time.Second, "ask again after this `DURATION`")
	return cmd
}
