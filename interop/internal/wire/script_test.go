package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// A script makes the packets of a connection.
type script struct {
	packets []Packet
	sent    [2]uint32
}

var ends = [2]netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1000"), netip.MustParseAddrPort("192.0.2.2:2000")}

// packet adds a packet that carries these octets.
func (s *script) packet(d Direction, octets []byte) {
	s.packets = append(s.packets, Packet{
		Number: len(s.packets) + 1, Src: ends[d], Dst: ends[d.other()],
		Seq: 1000 + s.sent[d], Payload: octets,
	})
	s.sent[d] += uint32(len(octets))
}

// fpdu adds an FPDU without markers, in a packet of its own.
func (s *script) fpdu(d Direction, ulpdu []byte) { s.packet(d, framed(ulpdu)) }

func framed(ulpdu []byte) []byte {
	f := binary.BigEndian.AppendUint16(nil, uint16(len(ulpdu)))
	f = append(f, ulpdu...)
	for len(f)%4 != 0 {
		f = append(f, 0)
	}
	return binary.LittleEndian.AppendUint32(f, crc32.Checksum(f, castagnoli))
}

// startup adds both start-up frames, without private data other than what the
// argument gives in hex behind flags and revision.
func (s *script) startup(request, reply string) {
	s.packet(FromInitiator, append([]byte(requestKey), octets(request)...))
	s.packet(FromResponder, append([]byte(replyKey), octets(reply)...))
}

// judge reads the packets and returns the rules that the one conversation in
// them breaks.
func (s *script) judge(t *testing.T) ([]Rule, *Conversation) {
	t.Helper()
	all := Conversations(s.packets)
	if len(all) != 1 {
		t.Fatalf("%d conversations, expected 1", len(all))
	}
	var rules []Rule
	for _, f := range all[0].Findings {
		t.Log(f)
		if !slices.Contains(rules, f.Rule) {
			rules = append(rules, f.Rule)
		}
	}
	return rules, all[0]
}

// octets reads hex with blanks.
func octets(text string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		panic(err)
	}
	return b
}

const (
	rev2      = "50020004 00040004" // S and C, IRD 4, ORD 4
	rev2Peer  = "50020004 8004c004" // A, offers C and D
	rev1      = "40010000"
	rev1Marks = "c0010000"
)

// ULPDUs in hex: control octets, then the header.
const (
	sendMSN1 = "4143 00000000 00000000 00000001 00000000 68656c6c6f"
	sendMSN2 = "4143 00000000 00000000 00000002 00000000"
	writeOne = "c140 00001234 0000000000001000 01020304"
	rtrWrite = "c140 00000000 0000000000000000"
	readReq  = "4141 00000000 00000001 00000001 00000000 11223344 0000000000001000 00000004 55667788 0000000000000020"
	readResp = "c142 11223344 0000000000001000 01020304"
	immed    = "4148 00000000 00000000 00000001 00000000 0102030405060708"
	fetchAdd = "414a 00000000 00000001 00000001 00000000 00000000 00000007 55667788 0000000000000040" +
		"0000000000000001 0000000000000000 0000000000000000 ffffffffffffffff"
	atomicResp = "414b 00000000 00000003 00000001 00000000 00000007 0000000000000029"
	terminate  = "4147 00000000 00000002 00000001 00000000 20020000"
)

// with replaces one octet of a ULPDU.
func with(ulpdu string, at int, octet byte) string {
	b := bytes.Clone(octets(ulpdu))
	b[at] = octet
	return hex.EncodeToString(b)
}
