// This file is the subcommand check, which judges captures.

package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/weft-rdma/weft/interop/internal/verdict"
	"github.com/weft-rdma/weft/interop/internal/wire"
)

// check judges captures from anywhere and prints what is in them.
func check(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	siw := flags.String("siw", "", "waive the habits of Linux's siw in this `role`: initiator, responder or both")
	noTshark := flags.Bool("no-tshark", false, "use our own reading only")
	if status, ok := parse(flags, args); !ok {
		return status
	}
	if flags.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "interop: check: name the captures to judge")
		return exitUsage
	}
	var o verdict.Options
	switch *siw {
	case "":
	case "initiator":
		o = verdict.SiwAs(wire.FromInitiator)
	case "responder":
		o = verdict.SiwAs(wire.FromResponder)
	case "both":
		o = verdict.SiwAs(wire.FromInitiator)
		maps.Copy(o.Waived, verdict.SiwAs(wire.FromResponder).Waived)
	default:
		fmt.Fprintf(os.Stderr, "interop: --siw %s: expected initiator, responder or both\n", *siw)
		return exitUsage
	}
	o.SkipTshark = *noTshark
	status := 0
	for _, file := range flags.Args() {
		v, err := verdict.Examine(ctx, file, o)
		if err != nil {
			fmt.Printf("FAIL  %v\n", err)
			status = exitFailed
			continue
		}
		word := "PASS"
		if len(v.Faults) > 0 {
			word, status = "FAIL", exitFailed
		}
		own := ""
		if v.OwnOnly > 0 {
			own = fmt.Sprintf(", %d of them by our own reading only", v.OwnOnly)
		}
		fmt.Printf("%s  %s: %d connections%s, %d FPDUs, %d CRCs verified by tshark; %s\n",
			word, file, len(v.Conversations), own, v.FPDUs, v.CRCs, messages(v))
		for _, fault := range v.Faults {
			fmt.Printf("      %s\n", fault)
		}
	}
	return status
}

// messages says how many messages of each kind a capture holds.
func messages(v verdict.Verdict) string {
	count := v.Opcodes()
	var words []string
	for _, opcode := range slices.Sorted(maps.Keys(count)) {
		words = append(words, fmt.Sprintf("%d %v", count[opcode], opcode))
	}
	return strings.Join(words, ", ")
}
