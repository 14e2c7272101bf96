// Reading a capture back, as a stranger's program would.

package capture

import (
	"bytes"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// A packet is what the tests look at of one.
type packet struct {
	from, to netip.AddrPort
	flags    string
	seq, ack uint32
	payload  []byte
	options  []layers.TCPOption
	at       time.Time
}

// readBack reads all packets of a file, and checks lengths and checksums.
func readBack(t *testing.T, file []byte) (all []packet) {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		data, info, err := r.ReadPacketData()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		p := gopacket.NewPacket(data, layers.LinkTypeEthernet, gopacket.Default)
		if p.ErrorLayer() != nil {
			t.Fatalf("packet %d: %v", len(all), p.ErrorLayer().Error())
		}
		tcp, _ := p.TransportLayer().(*layers.TCP)
		if tcp == nil {
			t.Fatalf("packet %d is not of TCP", len(all))
		}
		if err := tcp.SetNetworkLayerForChecksum(p.NetworkLayer()); err != nil {
			t.Fatal(err)
		}
		if err, bad := p.VerifyChecksums(); err != nil || len(bad) != 0 {
			t.Fatalf("packet %d: checksums: %v %v", len(all), err, bad)
		}
		src, dst := p.NetworkLayer().NetworkFlow().Endpoints()
		from, _ := netip.AddrFromSlice(src.Raw())
		to, _ := netip.AddrFromSlice(dst.Raw())
		flags := ""
		for _, f := range []struct {
			set  bool
			name string
		}{{tcp.SYN, "S"}, {tcp.FIN, "F"}, {tcp.RST, "R"}, {tcp.PSH, "P"}, {tcp.ACK, "A"}} {
			if f.set {
				flags += f.name
			}
		}
		all = append(all, packet{
			from:    netip.AddrPortFrom(from, uint16(tcp.SrcPort)),
			to:      netip.AddrPortFrom(to, uint16(tcp.DstPort)),
			flags:   flags,
			seq:     tcp.Seq,
			ack:     tcp.Ack,
			payload: bytes.Clone(tcp.Payload),
			options: tcp.Options,
			at:      info.Timestamp,
		})
	}
}

// A talk is a TCP connection put together again.
type talk struct {
	client, server netip.AddrPort
	sent           map[netip.AddrPort][]byte // by who sent it
	flags          []string                  // ">SA" from the client, "<A" from the server; without PA
}

// assemble puts the packets together strictly: nothing may be missing,
// repeated or out of order, and each acknowledgement says what the other has
// sent until then.
func assemble(t *testing.T, all []packet) (talks []*talk) {
	t.Helper()
	type key struct{ a, b netip.AddrPort }
	type state struct {
		*talk
		next map[netip.AddrPort]uint32
	}
	open := map[key]*state{}
	for i, p := range all {
		if i > 0 && p.at.Before(all[i-1].at) {
			t.Errorf("packet %d is older than the one before", i)
		}
		s := open[key{p.from, p.to}]
		if p.flags == "S" {
			s = &state{&talk{client: p.from, server: p.to, sent: map[netip.AddrPort][]byte{}}, map[netip.AddrPort]uint32{p.from: p.seq}}
			open[key{p.from, p.to}], open[key{p.to, p.from}] = s, s
			talks = append(talks, s.talk)
		}
		if s == nil {
			t.Fatalf("packet %d (%s) of no connection", i, p.flags)
		}
		if p.flags == "SA" {
			s.next[p.from] = p.seq
		}
		if p.seq != s.next[p.from] {
			t.Errorf("packet %d (%s): sequence number %d, want %d", i, p.flags, p.seq, s.next[p.from])
		}
		if p.flags != "S" && p.ack != s.next[p.to] {
			t.Errorf("packet %d (%s): acknowledges %d, want %d", i, p.flags, p.ack, s.next[p.to])
		}
		s.next[p.from] += uint32(len(p.payload))
		if p.flags[0] == 'S' || p.flags[0] == 'F' {
			s.next[p.from]++
		}
		s.sent[p.from] = append(s.sent[p.from], p.payload...)
		if p.flags != "PA" {
			mark := ">"
			if p.from == s.server {
				mark = "<"
			}
			s.flags = append(s.flags, mark+p.flags)
		}
	}
	return talks
}
