// This file is weft info.

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/verbs"
)

// info is the output of `weft info`, and its JSON form.
type info struct {
	Version   string            `json:"version"`
	Go        string            `json:"go"`
	Platform  string            `json:"platform"`
	Name      string            `json:"name"`
	Protocols []protocol        `json:"protocols"`
	Features  map[string]bool   `json:"features"`
	Limits    []limit           `json:"-"`
	LimitsMap map[string]uint64 `json:"limits"` // 0: none
	Operation []string          `json:"operations"`
}

type protocol struct {
	Name     string   `json:"name"`
	Versions []string `json:"versions"`
}

type limit struct {
	key, text string
	value     uint64
}

func newInfo() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "info [flags]",
		Short: "Show what this RNIC is and can do",
		Long:  `Info shows the versions, features and limits of this RNIC.`,
		Example: `  weft info
  weft info --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rnic, err := verbs.Open(verbs.Config{})
			if err != nil {
				return err
			}
			defer rnic.Close()
			a, err := rnic.Query()
			if err != nil {
				return err
			}
			i := describe(a)
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(i)
			}
			return i.write(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func describe(a verbs.Attributes) *info {
	i := &info{
		Version:  version(),
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Name:     a.Name,
		Protocols: []protocol{
			{"MPA", []string{"revision 2 (RFC 6581)", "revision 1 (RFC 5044)", "revision 0 (RDMA Consortium)"}},
			{"DDP", []string{"version 1 (RFC 5041)", "version 0 (RDMA Consortium)"}},
			{"RDMAP", []string{"version 1 (RFC 5040)", "version 0 (RDMA Consortium)", "RFC 7306"}},
		},
		Features: map[string]bool{
			"atomics_and_immediate_data": a.Extensions,
			"cq_overflow_detection":      a.CQOverflowDetect,
			"modify_ird":                 a.ModifyIRD,
			"increase_ord":               a.IncreaseORD,
			"modify_wrs":                 a.ModifyWRs,
			"shared_receive_queues":      a.SRQ,
		},
		Limits: []limit{
			{"pds", "protection domains", uint64(a.Limits.PDs)},
			{"cqs", "completion queues", uint64(a.Limits.CQs)},
			{"cq_entries", "entries per completion queue", uint64(a.Limits.CQEntries)},
			{"total_cq_entries", "entries of all completion queues", uint64(a.Limits.TotalCQEntries)},
			{"completion_handlers", "completion handlers", uint64(a.Limits.CompletionHandlers)},
			{"qps", "queue pairs", uint64(a.Limits.QPs)},
			{"wrs", "work requests per queue", uint64(a.Limits.WRs)},
			{"sges", "scatter/gather elements per work request", uint64(a.Limits.SGEs)},
			{"ird", "outstanding RDMA Reads and atomics of a peer (IRD)", uint64(a.Limits.IRD)},
			{"ord", "outstanding RDMA Reads and atomics to a peer (ORD)", uint64(a.Limits.ORD)},
			{"total_ird", "IRD of all queue pairs", uint64(a.Limits.TotalIRD)},
			{"total_ord", "ORD of all queue pairs", uint64(a.Limits.TotalORD)},
			{"srqs", "shared receive queues", uint64(a.Limits.SRQs)},
			{"srq_wrs", "work requests per shared receive queue", uint64(a.Limits.SRQWRs)},
			{"regions", "memory regions", uint64(a.Limits.Regions)},
			{"regions_octets", "bytes of all regions", a.Limits.RegionsOctets},
			{"windows", "memory windows", uint64(a.Limits.Windows)},
			{"list_entries", "entries per physical buffer list", uint64(a.Limits.ListEntries)},
			{"listeners", "listeners", uint64(a.Limits.Listeners)},
			{"pending_connections", "pending connections", uint64(a.Limits.PendingConnections)},
		},
		LimitsMap: make(map[string]uint64),
	}
	for _, l := range i.Limits {
		i.LimitsMap[l.key] = l.value
	}
	for op := verbs.OpSend; op <= verbs.OpRecvImmediate; op++ {
		i.Operation = append(i.Operation, op.String())
	}
	return i
}

// write prints the text form.
func (i *info) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "RNIC %s: Weft %s, %s, %s\n\nprotocols\n", i.Name, i.Version, i.Go, i.Platform)
	for _, p := range i.Protocols {
		fmt.Fprintf(&b, "  %-6s %s\n", p.Name, strings.Join(p.Versions, ", "))
	}
	fmt.Fprintf(&b, "\nfeatures\n")
	for _, f := range []struct{ key, text string }{
		{"atomics_and_immediate_data", "atomics and Immediate Data (RFC 7306)"},
		{"shared_receive_queues", "shared receive queues"},
		{"modify_ird", "IRD can be changed"},
		{"increase_ord", "ORD can be increased"},
		{"modify_wrs", "work queues can be resized"},
		{"cq_overflow_detection", "completion queue overflow is detected"},
	} {
		fmt.Fprintf(&b, "  %-5s %s\n", yesNo(i.Features[f.key]), f.text)
	}
	fmt.Fprintf(&b, "\nlimits\n")
	for _, l := range i.Limits {
		value := fmt.Sprint(l.value)
		if l.value == 0 {
			value = "any"
		}
		fmt.Fprintf(&b, "  %8s %s\n", value, l.text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
