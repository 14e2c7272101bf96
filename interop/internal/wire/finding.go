// This file names what the checker finds.

package wire

import "fmt"

// A Rule names what a finding is about, so that a known habit of a peer can
// be waived without waiving anything else.
type Rule string

const (
	RuleCapture   Rule = "capture"   // the capture is not whole
	RuleStartup   Rule = "start-up"  // contents of the MPA Request and Reply
	RuleFlight    Rule = "flight"    // an FPDU came together with a start-up frame
	RuleFence     Rule = "fence"     // the Responder sent before it had received (RFC 5044 §7.1.2)
	RuleRTR       Rule = "rtr"       // peer-to-peer: the first FPDU is not the agreed one
	RuleFraming   Rule = "framing"   // lengths do not add up
	RuleMarker    Rule = "marker"    // value or place of a marker
	RuleCRC       Rule = "crc"       //
	RulePad       Rule = "pad"       // padding is not zero
	RuleReserved  Rule = "reserved"  // reserved bits are not zero
	RuleVersion   Rule = "version"   // DV or RV is not what the revision implies
	RuleOpcode    Rule = "opcode"    // opcode against T bit, queue, L bit and length
	RuleSequence  Rule = "sequence"  // MSN, MO and TO within and across messages
	RuleInterlace Rule = "interlace" // segments of two messages mixed
	RuleAnswer    Rule = "answer"    // a response does not fit its request
	RuleDepth     Rule = "depth"     // more requests outstanding than agreed
	RuleTerminate Rule = "terminate" // contents of a Terminate message
	RuleAfter     Rule = "after"     // something was sent after a Terminate or a rejection
)

// A Finding is one breach of a rule by one peer.
type Finding struct {
	By     Direction
	Packet int
	Rule   Rule
	Text   string
}

func (f Finding) String() string {
	return fmt.Sprintf("packet %d, %s: %s", f.Packet, f.Rule, f.Text)
}
