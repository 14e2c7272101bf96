// This file is weft perf diff.

package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cmd/weft/internal/perf"
)

func newPerfDiff() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff [flags] BEFORE.json AFTER.json",
		Short: "Compare two reports of weft perf --json",
		Long: `Diff compares what two reports of weft perf --json both measured: bandwidth, its ratio to
plain TCP, and latency, each with the spread of its rounds. It says which figures differ by more
than the rounds among themselves do: better or worse by a rank test at the level of 5 %.

The ratio to plain TCP is what to look at first: it is taken inside each round, and so does not
show that the machine was slower that day. Take at least 5 rounds.`,
		Example: `  weft perf --ops write --crc on --rounds 9 --json >before.json
  weft perf --ops write --crc on --rounds 9 --spin 50us --json >after.json
  weft perf diff before.json after.json`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			before, err := perf.ReadReport(args[0])
			if err != nil {
				return err
			}
			after, err := perf.ReadReport(args[1])
			if err != nil {
				return err
			}
			all, err := perf.Diff(before, after)
			if err != nil {
				return err
			}
			if !asJSON {
				return perf.WriteDiff(cmd.OutOrStdout(), perf.OtherSettings(before, after), all)
			}
			enc := json.NewEncoder(cmd.OutOrStdout())
			enc.SetIndent("", "  ")
			return enc.Encode(all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document instead of the table")
	return cmd
}
