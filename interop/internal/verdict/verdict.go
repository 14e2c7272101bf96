// Package verdict examines a capture twice, with Wireshark's dissectors and
// with the checker of package wire, and holds the two readings against each
// other.
package verdict

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/weft-rdma/weft/interop/internal/tshark"
	"github.com/weft-rdma/weft/interop/internal/wire"
)

// Options say what a capture may show.
type Options struct {
	// Waived are known habits of a peer by the role that it has.
	Waived map[wire.Direction][]wire.Rule
	// SkipTshark leaves Wireshark out, for captures that are too large to be
	// worth it. Connections whose markers it cannot follow are left out anyway.
	SkipTshark bool
}

// SiwAs returns what Linux's siw does differently from the letter, in the role
// given: as Responder it does not hold its first FPDU back, and it writes the
// control field of a Terminate in the order of its own bit fields.
func SiwAs(role wire.Direction) Options {
	return Options{Waived: map[wire.Direction][]wire.Rule{role: {wire.RuleFence, wire.RulePad, wire.RuleTerminate, wire.RuleReserved}}}
}

// A Verdict is what was found in a capture.
type Verdict struct {
	Conversations []*wire.Conversation
	FPDUs         int
	CRCs          int // verified by tshark
	OwnOnly       int // conversations that tshark was not asked about, or could not follow
	Faults        []string
}

// Err returns nil when nothing is wrong, else the first faults.
func (v Verdict) Err() error {
	if len(v.Faults) == 0 {
		return nil
	}
	const shown = 3
	text := strings.Join(v.Faults[:min(shown, len(v.Faults))], "; ")
	if len(v.Faults) > shown {
		text += fmt.Sprintf("; and %d more", len(v.Faults)-shown)
	}
	return errors.New(text)
}

// Opcodes counts the messages of each opcode by their last segments.
func (v Verdict) Opcodes() map[wire.Opcode]int {
	count := map[wire.Opcode]int{}
	for _, c := range v.Conversations {
		for _, list := range c.FPDUs {
			for _, f := range list {
				if f.Segment.Last {
					count[f.Segment.Opcode]++
				}
			}
		}
	}
	return count
}

// Examine reads the capture in file. The error is about reading it; what is
// wrong in it is in the Verdict.
func Examine(ctx context.Context, file string, o Options) (Verdict, error) {
	f, err := os.Open(file)
	if err != nil {
		return Verdict{}, err
	}
	defer f.Close()
	packets, err := wire.ReadPackets(f)
	if err != nil {
		return Verdict{}, fmt.Errorf("%s: %w", file, err)
	}
	v := Verdict{Conversations: wire.Conversations(packets)}
	for _, c := range v.Conversations {
		v.FPDUs += len(c.FPDUs[0]) + len(c.FPDUs[1])
		for _, finding := range c.Findings {
			if !slices.Contains(o.Waived[finding.By], finding.Rule) {
				v.Faults = append(v.Faults, finding.String())
			}
		}
	}
	if o.SkipTshark {
		v.OwnOnly = len(v.Conversations)
		return v, nil
	}
	report, err := tshark.Judge(ctx, file)
	if err != nil {
		return v, fmt.Errorf("%s: %w", file, err)
	}
	// Where markers may have lost tshark, and it does complain, it is asked about the
	// other connections alone.
	var except []tshark.Way
	own := map[*wire.Conversation]bool{}
	for _, c := range v.Conversations {
		if !dissectable(c) && (len(report.Faults()) > 0 || len(compare(c, report)) > 0) {
			own[c] = true
			except = append(except, ways(c)[wire.FromInitiator])
		}
	}
	if v.OwnOnly = len(own); v.OwnOnly > 0 {
		if report, err = tshark.Judge(ctx, file, except...); err != nil {
			return v, fmt.Errorf("%s: %w", file, err)
		}
	}
	v.CRCs = report.GoodCRC
	v.Faults = append(v.Faults, report.Faults()...)
	for _, c := range v.Conversations {
		if !own[c] {
			v.Faults = append(v.Faults, compare(c, report)...)
		}
	}
	return v, nil
}

// dissectable reports whether tshark is sure to follow a conversation: one with
// markers only if both directions have them and each TCP segment holds one FPDU.
func dissectable(c *wire.Conversation) bool {
	if c.Request == nil || c.Reply == nil || !c.Marked(wire.FromInitiator) && !c.Marked(wire.FromResponder) {
		return true
	}
	if !c.Marked(wire.FromInitiator) || !c.Marked(wire.FromResponder) {
		return false
	}
	for _, list := range c.FPDUs {
		if slices.ContainsFunc(list, func(f wire.FPDU) bool { return f.Shared || f.First != f.Last }) {
			return false
		}
	}
	return true
}

// ways are the two directions of a conversation as tshark names them.
func ways(c *wire.Conversation) [2]tshark.Way {
	forth := tshark.Way{Src: c.Initiator.String(), Dst: c.Responder.String()}
	return [2]tshark.Way{wire.FromInitiator: forth, wire.FromResponder: {Src: forth.Dst, Dst: forth.Src}}
}

// compare holds tshark's header fields against ours: as many FPDUs, and the
// same values. A segment that tshark did not take for FPDUs shows here.
func compare(c *wire.Conversation, report tshark.Report) []string {
	var faults []string
	verified := 0
	for d, list := range c.FPDUs {
		theirs := report.FPDUs[ways(c)[d]]
		if theirs == nil {
			theirs = &tshark.Fields{}
		}
		ours := fields(list)
		for _, field := range []struct {
			name         string
			ours, theirs []uint64
		}{
			{"ULPDU_Length", ours.Length, theirs.Length}, {"T", ours.Tagged, theirs.Tagged}, {"L", ours.Last, theirs.Last},
			{"opcode", ours.Opcode, theirs.Opcode}, {"STag", ours.STag, theirs.STag}, {"TO", ours.TO, theirs.TO},
			{"QN", ours.QN, theirs.QN}, {"MSN", ours.MSN, theirs.MSN}, {"MO", ours.MO, theirs.MO},
		} {
			if !slices.Equal(field.ours, field.theirs) {
				faults = append(faults, fmt.Sprintf("tshark's %s fields of the %v differ from ours: %s",
					field.name, wire.Direction(d), difference(field.ours, field.theirs)))
				break
			}
		}
		verified += len(list)
	}
	if (c.Request.CRC || c.Reply != nil && c.Reply.CRC) && len(faults) == 0 && len(report.BadCRC) == 0 && report.GoodCRC < verified {
		faults = append(faults, fmt.Sprintf("tshark verified %d CRCs of %d FPDUs", report.GoodCRC, verified))
	}
	return faults
}

func difference(ours, theirs []uint64) string {
	for i := range min(len(ours), len(theirs)) {
		if ours[i] != theirs[i] {
			return fmt.Sprintf("number %d is %#x, ours is %#x", i+1, theirs[i], ours[i])
		}
	}
	return fmt.Sprintf("it shows %d, ours are %d", len(theirs), len(ours))
}

func fields(list []wire.FPDU) tshark.Fields {
	var f tshark.Fields
	flag := func(b bool) uint64 {
		if b {
			return 1
		}
		return 0
	}
	for i := range list {
		g := &list[i].Segment
		f.Length = append(f.Length, uint64(len(list[i].ULPDU)))
		f.Tagged, f.Last = append(f.Tagged, flag(g.Tagged)), append(f.Last, flag(g.Last))
		f.Opcode = append(f.Opcode, uint64(g.Opcode))
		if g.Tagged {
			f.STag, f.TO = append(f.STag, uint64(g.STag)), append(f.TO, g.TO)
		} else {
			f.QN, f.MSN, f.MO = append(f.QN, uint64(g.QN)), append(f.MSN, uint64(g.MSN)), append(f.MO, uint64(g.MO))
		}
	}
	return f
}
