package wire

import (
	"bytes"
	"slices"
	"testing"
)

// A step sends one ULPDU.
type step struct {
	d     Direction
	ulpdu string
}

const (
	i = FromInitiator
	r = FromResponder
)

func TestWhatTheSpecificationsAllowDrawsNoFinding(t *testing.T) {
	for name, c := range map[string]struct {
		request, reply string
		steps          []step
	}{
		"sends both ways":          {rev2, rev2, []step{{i, sendMSN1}, {r, sendMSN1}, {i, sendMSN2}}},
		"revision 1":               {rev1, rev1, []step{{i, sendMSN1}, {r, writeOne}}},
		"read":                     {rev2, rev2, []step{{i, readReq}, {r, readResp}}},
		"atomic":                   {rev2, rev2, []step{{i, fetchAdd}, {r, atomicResp}}},
		"immediate":                {rev2, rev2, []step{{i, immed}, {i, sendMSN2}}},
		"peer to peer":             {rev2Peer, "50020004 80048004", []step{{i, rtrWrite}, {r, sendMSN1}}},
		"terminate":                {rev2, rev2, []step{{i, sendMSN1}, {r, terminate}}},
		"terminate inside message": {rev2, rev2, []step{{i, with(sendMSN1, 0, 0x01)}, {i, terminate}}},
		"rejected":                 {rev2, "70020004 00040004", nil},
		"nothing but start-up":     {rev2, rev2, nil},
		"several segments": {rev2, rev2, []step{
			{i, "0143 00000000 00000000 00000001 00000000 6865"}, {i, "4143 00000000 00000000 00000001 00000002 6c6c6f"},
			{i, "8140 00001234 0000000000001000 0102"}, {i, "c140 00001234 0000000000001002 0304"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var s script
			s.startup(c.request, c.reply)
			for _, step := range c.steps {
				s.fpdu(step.d, octets(step.ulpdu))
			}
			rules, conversation := s.judge(t)
			if len(rules) > 0 {
				t.Errorf("findings about %v, expected none", rules)
			}
			if got := len(conversation.FPDUs[0]) + len(conversation.FPDUs[1]); got != len(c.steps) {
				t.Errorf("%d FPDUs, expected %d", got, len(c.steps))
			}
		})
	}
}

func TestEveryBreachOfARuleIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		request, reply string
		steps          []step
		want           Rule
	}{
		"reserved bit of a start-up frame":    {"58020004 00040004", rev2, nil, RuleReserved},
		"R in a request":                      {"70020004 00040004", rev2, nil, RuleStartup},
		"reply of another revision":           {rev2, rev1, nil, RuleStartup},
		"reply without S":                     {rev2, "40020000", nil, RuleStartup},
		"reply drops CRC":                     {rev2, "10020004 00040004", nil, RuleStartup},
		"reply drops peer-to-peer":            {rev2Peer, rev2, nil, RuleStartup},
		"peer-to-peer reply without an RTR":   {rev2Peer, "50020004 80040004", nil, RuleStartup},
		"peer-to-peer request without an RTR": {"50020004 80040004", "50020004 80048004", nil, RuleStartup},
		"ORD above what was offered":          {rev2, "50020004 00040005", nil, RuleStartup},
		"3fff not echoed":                     {"50020004 3fff0004", rev2, nil, RuleStartup},
		"too much private data":               {"40010201", rev1, nil, RuleStartup},
		"octets after a rejection":            {rev2, "70020004 00040004", []step{{i, sendMSN1}}, RuleAfter},
		"responder first":                     {rev2, rev2, []step{{r, sendMSN1}, {i, sendMSN1}}, RuleFence},
		"responder only":                      {rev2, rev2, []step{{r, sendMSN1}}, RuleFence},
		"no RTR":                              {rev2Peer, "50020004 80048004", []step{{i, sendMSN1}}, RuleRTR},
		"RTR of another kind":                 {rev2Peer, "50020004 80044004", []step{{i, rtrWrite}}, RuleRTR},
		"DDP version":                         {rev2, rev2, []step{{i, with(sendMSN1, 0, 0x40)}}, RuleVersion},
		"RDMAP version":                       {rev2, rev2, []step{{i, with(sendMSN1, 1, 0x03)}}, RuleVersion},
		"reserved DDP bits":                   {rev2, rev2, []step{{i, with(sendMSN1, 0, 0x45)}}, RuleReserved},
		"reserved RDMAP bits":                 {rev2, rev2, []step{{i, with(sendMSN1, 1, 0x53)}}, RuleReserved},
		"STag in a plain send":                {rev2, rev2, []step{{i, with(sendMSN1, 5, 1)}}, RuleReserved},
		"unknown opcode":                      {rev2, rev2, []step{{i, with(sendMSN1, 1, 0x4c)}}, RuleOpcode},
		"tagged send":                         {rev2, rev2, []step{{i, with(writeOne, 1, 0x43)}}, RuleOpcode},
		"send on queue 1":                     {rev2, rev2, []step{{i, with(sendMSN1, 9, 1)}}, RuleOpcode},
		"immediate of five octets":            {rev2, rev2, []step{{i, with(sendMSN1, 1, 0x48)}}, RuleOpcode},
		"read request without L":              {rev2, rev2, []step{{i, with(readReq, 0, 0x01)}}, RuleOpcode},
		"MSN skipped":                         {rev2, rev2, []step{{i, sendMSN2}}, RuleSequence},
		"MSN repeated":                        {rev2, rev2, []step{{i, sendMSN1}, {i, sendMSN1}}, RuleSequence},
		"MO not zero at first":                {rev2, rev2, []step{{i, with(sendMSN1, 17, 1)}}, RuleSequence},
		"MO with a gap": {rev2, rev2, []step{
			{i, "0143 00000000 00000000 00000001 00000000 6865"}, {i, "4143 00000000 00000000 00000001 00000003 6c"}}, RuleSequence},
		"TO with a gap": {rev2, rev2, []step{
			{i, "8140 00001234 0000000000001000 0102"}, {i, "c140 00001234 0000000000001003 03"}}, RuleSequence},
		"message not ended":                   {rev2, rev2, []step{{i, with(sendMSN1, 0, 0x01)}}, RuleSequence},
		"messages mixed":                      {rev2, rev2, []step{{i, with(writeOne, 0, 0x81)}, {i, sendMSN1}}, RuleInterlace},
		"STag changes":                        {rev2, rev2, []step{{i, with(writeOne, 0, 0x81)}, {i, with(writeOne, 5, 0x99)}}, RuleInterlace},
		"unasked response":                    {rev2, rev2, []step{{i, sendMSN1}, {r, readResp}}, RuleAnswer},
		"response to another place":           {rev2, rev2, []step{{i, readReq}, {r, with(readResp, 13, 0x04)}}, RuleAnswer},
		"response to another STag":            {rev2, rev2, []step{{i, readReq}, {r, with(readResp, 5, 0x45)}}, RuleAnswer},
		"response too short":                  {rev2, rev2, []step{{i, readReq}, {r, readResp[:len(readResp)-2]}}, RuleAnswer},
		"atomic response for another request": {rev2, rev2, []step{{i, fetchAdd}, {r, with(atomicResp, 21, 8)}}, RuleAnswer},
		"read answered by an atomic response": {rev2, rev2, []step{{i, readReq}, {r, atomicResp}}, RuleAnswer},
		"more reads than IRD": {rev2, "50020004 00010004",
			[]step{{i, readReq}, {i, with(readReq, 13, 2)}, {r, readResp}, {r, readResp}}, RuleDepth},
		"reserved bits of an atomic":   {rev2, rev2, []step{{i, with(fetchAdd, 18, 1)}, {r, atomicResp}}, RuleReserved},
		"unknown atomic":               {rev2, rev2, []step{{i, with(fetchAdd, 21, 1)}, {r, atomicResp}}, RuleOpcode},
		"FetchAdd with compare data":   {rev2, rev2, []step{{i, with(fetchAdd, 61, 1)}, {r, atomicResp}}, RuleReserved},
		"terminate with unknown code":  {rev2, rev2, []step{{i, with(terminate, 19, 0x44)}}, RuleTerminate},
		"terminate in siw's bit order": {rev2, rev2, []step{{i, with(with(terminate, 18, 0x02), 19, 0x02)}}, RuleTerminate},
		"terminate with reserved bits": {rev2, rev2, []step{{i, with(terminate, 20, 0x01)}}, RuleTerminate},
		"terminate without its header": {rev2, rev2, []step{{i, with(terminate, 20, 0xc0)}}, RuleTerminate},
		"terminate with M alone":       {rev2, rev2, []step{{i, with(terminate, 20, 0x80)}}, RuleTerminate},
		"something after a terminate":  {rev2, rev2, []step{{i, terminate}, {i, sendMSN1}}, RuleAfter},
		"header cut short":             {rev2, rev2, []step{{i, sendMSN1[:20]}}, RuleFraming},
	} {
		t.Run(name, func(t *testing.T) {
			var s script
			s.startup(c.request, c.reply)
			if name == "too much private data" {
				s.packets[0].Payload = append(s.packets[0].Payload, make([]byte, 513)...)
			}
			for _, step := range c.steps {
				s.fpdu(step.d, octets(step.ulpdu))
			}
			if rules, _ := s.judge(t); !slices.Contains(rules, c.want) {
				t.Errorf("findings about %v, expected %s", rules, c.want)
			}
		})
	}
}

func TestFramingFaultsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		packet func() []byte
		want   Rule
	}{
		"wrong CRC":     {func() []byte { f := framed(octets(sendMSN1)); f[len(f)-1] ^= 1; return f }, RuleCRC},
		"padding":       {func() []byte { f := framed(octets(sendMSN1)); f[len(f)-5] = 7; return f }, RulePad},
		"length zero":   {func() []byte { return framed(nil) }, RuleFraming},
		"length beyond": {func() []byte { return []byte{0xff, 0xff, 0, 0} }, RuleFraming},
		"cut short":     {func() []byte { f := framed(octets(sendMSN1)); return f[:len(f)-1] }, RuleFraming},
	} {
		t.Run(name, func(t *testing.T) {
			var s script
			s.startup(rev2, rev2)
			s.packet(FromInitiator, c.packet())
			if rules, _ := s.judge(t); !slices.Contains(rules, c.want) {
				t.Errorf("findings about %v, expected %s", rules, c.want)
			}
		})
	}
}

func TestAnFPDUInTheFlightOfAStartupFrameIsFound(t *testing.T) {
	var s script
	s.packet(FromInitiator, append([]byte(requestKey), octets(rev1)...))
	s.packet(FromResponder, append([]byte(replyKey), octets(rev1)...))
	s.packets[0].Payload = append(s.packets[0].Payload, framed(octets(sendMSN1))...)
	if rules, _ := s.judge(t); !slices.Contains(rules, RuleFlight) {
		t.Errorf("findings about %v, expected %s", rules, RuleFlight)
	}
}

// markedStream is a Send of 1000 octets, octet n being n modulo 256, and one
// of none, with markers from the first octet on.
func markedStream() []byte {
	b := octets("00000000 03fa 4143 00000000 00000000 00000001 00000000")
	for n := range 1000 {
		switch n {
		case 488:
			b = append(b, octets("000001fc")...) // 508 octets behind the length field
		case 996:
			b = append(b, octets("000003fc")...)
		}
		b = append(b, byte(n))
	}
	b = append(b, octets("5f7b58ca")...)
	return append(b, octets("0012 4143 00000000 00000000 00000002 00000000 accbdb8c")...)
}

func TestMarkersAreTakenOutAndChecked(t *testing.T) {
	judge := func(stream []byte) ([]Rule, *Conversation) {
		var s script
		s.startup(rev1, rev1Marks) // the responder asks for markers in what it receives
		s.packet(FromInitiator, stream)
		return s.judge(t)
	}
	rules, c := judge(markedStream())
	if len(rules) > 0 {
		t.Errorf("findings about %v, expected none", rules)
	}
	list := c.FPDUs[FromInitiator]
	if len(list) != 2 || list[0].Markers != 3 || list[1].Markers != 0 {
		t.Fatalf("%d FPDUs with markers %+v, expected 2 with 3 and 0", len(list), list)
	}
	for n, octet := range list[0].Segment.Payload {
		if octet != byte(n) {
			t.Fatalf("octet %d of the payload is %#x", n, octet)
		}
	}
	broken := bytes.Clone(markedStream())
	broken[515] = 0xf8 // the second marker points four octets short
	rules, _ = judge(broken)
	if !slices.Contains(rules, RuleMarker) || !slices.Contains(rules, RuleCRC) {
		t.Errorf("findings about %v, expected %s and %s", rules, RuleMarker, RuleCRC)
	}
}

func TestPacketsArePutTogetherInAnyOrder(t *testing.T) {
	var s script
	s.startup(rev2, rev2)
	f := framed(octets(sendMSN1))
	s.packet(FromInitiator, f[:10])
	s.packet(FromInitiator, f[10:20])
	s.packet(FromInitiator, f[20:])
	p := s.packets
	overlap := p[3] // repeats four octets that were there and brings the rest
	overlap.Seq -= 4
	overlap.Payload = append(bytes.Clone(f[6:10]), overlap.Payload...)
	s.packets = []Packet{p[0], p[1], p[4], p[2], p[2], overlap}
	rules, c := s.judge(t)
	if len(rules) > 0 || len(c.FPDUs[FromInitiator]) != 1 {
		t.Errorf("findings about %v and %d FPDUs, expected none and 1", rules, len(c.FPDUs[FromInitiator]))
	}

	s.packets = []Packet{p[0], p[1], p[2], p[4]}
	if rules, _ := s.judge(t); !slices.Contains(rules, RuleCapture) {
		t.Errorf("findings about %v, expected %s", rules, RuleCapture)
	}
}

func TestAResetMayCutAnything(t *testing.T) {
	var s script
	s.startup(rev2, rev2)
	f := framed(octets(with(sendMSN1, 0, 0x01)))
	s.packet(FromInitiator, f)
	s.packet(FromInitiator, f[:7])
	s.packet(FromResponder, nil)
	s.packets[len(s.packets)-1].RST = true
	if rules, _ := s.judge(t); len(rules) > 0 {
		t.Errorf("findings about %v, expected none", rules)
	}
}

func TestPortsUsedAgainAreAnotherConversation(t *testing.T) {
	var s script
	for range 2 {
		s.packets = append(s.packets, Packet{Number: len(s.packets) + 1, Src: ends[0], Dst: ends[1], Seq: 999, SYN: true})
		s.sent = [2]uint32{}
		s.startup(rev2, rev2)
		s.fpdu(FromInitiator, octets(sendMSN1))
	}
	all := Conversations(s.packets)
	if len(all) != 2 {
		t.Fatalf("%d conversations, expected 2", len(all))
	}
	for _, c := range all {
		if len(c.Findings) > 0 || len(c.FPDUs[FromInitiator]) != 1 {
			t.Errorf("findings %v and %d FPDUs, expected none and 1", c.Findings, len(c.FPDUs[FromInitiator]))
		}
	}
}

func TestWhoeverSendsTheRequestIsTheInitiator(t *testing.T) {
	var s script
	s.packet(FromResponder, nil) // the TCP side that was seen first
	s.startup(rev2, rev2)
	if _, c := s.judge(t); c.Initiator != ends[0] || len(c.Findings) > 0 {
		t.Errorf("initiator %v with findings %v, expected %v and none", c.Initiator, c.Findings, ends[0])
	}
}
