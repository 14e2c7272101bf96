package verdict

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/weft-rdma/weft/interop/internal/tshark"
	"github.com/weft-rdma/weft/interop/internal/wire"
)

// record writes a capture of a connection: what the initiator sends after the
// start-up frames.
func record(t *testing.T, fpdus ...[]byte) string {
	t.Helper()
	return recordWith(t, 0x40, 0x40, fpdus...)
}

// recordWith is record with the flags of the start-up frames.
func recordWith(t *testing.T, request, reply byte, fpdus ...[]byte) string {
	t.Helper()
	var file bytes.Buffer
	w, err := pcapgo.NewNgWriter(&file, layers.LinkTypeRaw)
	if err != nil {
		t.Fatal(err)
	}
	ips := [2][]byte{{192, 0, 2, 1}, {192, 0, 2, 2}}
	ports := [2]layers.TCPPort{40000, 7174}
	var sent [2]uint32
	packet := func(d int, octets []byte) {
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: ips[d], DstIP: ips[1-d]}
		tcp := &layers.TCP{SrcPort: ports[d], DstPort: ports[1-d], Seq: sent[d], Ack: sent[1-d], ACK: true, PSH: true, Window: 65535}
		if err := tcp.SetNetworkLayerForChecksum(ip); err != nil {
			t.Fatal(err)
		}
		b := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ip, tcp, gopacket.Payload(octets)); err != nil {
			t.Fatal(err)
		}
		sent[d] += uint32(len(octets))
		if err := w.WritePacket(gopacket.CaptureInfo{CaptureLength: len(b.Bytes()), Length: len(b.Bytes())}, b.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	packet(0, append([]byte("MPA ID Req Frame"), request, 1, 0, 0))
	packet(1, append([]byte("MPA ID Rep Frame"), reply, 1, 0, 0))
	for _, f := range fpdus {
		packet(0, f)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "capture.pcapng")
	if err := os.WriteFile(path, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// send is an FPDU that carries a Send of 20 octets.
func send(msn uint32) []byte {
	f := []byte{0, 38, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0}
	f = binary.BigEndian.AppendUint32(f, msn)
	f = append(f, 0, 0, 0, 0)
	f = append(f, "twenty octets of it.."[:20]...)
	return binary.LittleEndian.AppendUint32(f, crc32.Checksum(f, crc32.MakeTable(crc32.Castagnoli)))
}

func examine(t *testing.T, path string) Verdict {
	t.Helper()
	if err := tshark.Missing(); err != nil {
		t.Skip(err)
	}
	v, err := Examine(context.Background(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAGoodCaptureIsWithoutFaultInBothReadings(t *testing.T) {
	v := examine(t, record(t, send(1), append(send(2), send(3)...)))
	if err := v.Err(); err != nil {
		t.Error(err)
	}
	if v.FPDUs != 3 || v.CRCs != 3 || v.Opcodes()[wire.Send] != 3 {
		t.Errorf("%d FPDUs, %d CRCs, %v; expected 3 Sends, each with its CRC verified", v.FPDUs, v.CRCs, v.Opcodes())
	}
}

// marked is send with the marker that stands before the first FPDU.
func marked(msn uint32) []byte {
	f := append(make([]byte, 4), send(msn)...)
	return binary.LittleEndian.AppendUint32(f[:len(f)-4], crc32.Checksum(f[:len(f)-4], crc32.MakeTable(crc32.Castagnoli)))
}

// tshark cannot follow markers of one direction, nor several FPDUs with markers in
// one segment: that is no fault of the capture. What it cannot see, we do.
func TestMarkersThatTsharkCannotFollowAreJudgedByOurOwnReading(t *testing.T) {
	const crc, markers = 0x40, 0x80
	for _, c := range []struct {
		name           string
		request, reply byte
		fpdus          [][]byte
		own            int // at most: versions of tshark differ
	}{
		{"to the responder", crc, crc | markers, [][]byte{marked(1), send(2)}, 1},
		{"to the initiator, which is sent nothing", crc | markers, crc, [][]byte{send(1), send(2)}, 1},
		{"both ways, one FPDU a segment", crc | markers, crc | markers, [][]byte{marked(1), send(2)}, 0},
		{"both ways, two in one", crc | markers, crc | markers, [][]byte{append(marked(1), send(2)...)}, 1},
		{"both ways, one in two", crc | markers, crc | markers, [][]byte{marked(1), send(2)[:9], send(2)[9:]}, 1},
	} {
		v := examine(t, recordWith(t, c.request, c.reply, c.fpdus...))
		if err := v.Err(); err != nil || v.OwnOnly > c.own || v.FPDUs != 2 || v.CRCs != 2*(1-v.OwnOnly) {
			t.Errorf("markers %s: %v, %d of 2 FPDUs, %d CRCs, %d by our own reading, expected %d at most", c.name, err, v.FPDUs, v.CRCs, v.OwnOnly, c.own)
		}
	}
	bad := marked(1)
	bad[len(bad)-1] ^= 1
	if v := examine(t, recordWith(t, crc, crc|markers, bad)); v.Err() == nil {
		t.Errorf("a bad CRC is not noticed: %+v", v)
	}
}

func TestABadCRCIsAFaultInBothReadings(t *testing.T) {
	bad := send(1)
	bad[len(bad)-1] ^= 1
	faults := strings.Join(examine(t, record(t, bad)).Faults, "\n")
	for _, want := range []string{"Bad CRC32", "the FPDU's CRC is"} {
		if !strings.Contains(faults, want) {
			t.Errorf("no fault says %q:\n%s", want, faults)
		}
	}
}

// A segment that tshark does not take for FPDUs draws no complaint of its own;
// that must not pass for a clean capture.
func TestFPDUsThatTsharkDoesNotSeeAreAFault(t *testing.T) {
	path := record(t, send(1))
	v := examine(t, path)
	report, err := tshark.Judge(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	for _, fields := range report.FPDUs {
		if len(fields.Opcode) > 0 {
			fields.Length, fields.Opcode = nil, nil
		}
	}
	if faults := compare(v.Conversations[0], report); len(faults) == 0 {
		t.Error("no fault, expected one about the FPDU that is missing")
	}
}

func TestOnlyTheRulesWaivedForARoleAreWaived(t *testing.T) {
	path := record(t, send(2)) // a Send with MSN 2 first
	for name, c := range map[string]struct {
		waived map[wire.Direction][]wire.Rule
		faults int
	}{
		"nothing waived":         {nil, 1},
		"waived":                 {map[wire.Direction][]wire.Rule{wire.FromInitiator: {wire.RuleSequence}}, 0},
		"waived for the other":   {map[wire.Direction][]wire.Rule{wire.FromResponder: {wire.RuleSequence}}, 1},
		"something else waived":  {map[wire.Direction][]wire.Rule{wire.FromInitiator: {wire.RuleFence}}, 1},
		"habits of siw's waived": {SiwAs(wire.FromInitiator).Waived, 1},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := Examine(context.Background(), path, Options{Waived: c.waived, SkipTshark: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(v.Faults) != c.faults {
				t.Errorf("faults %q, expected %d", v.Faults, c.faults)
			}
		})
	}
}
