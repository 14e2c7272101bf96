// Package wire judges captures of iWARP connections without any code of Weft:
// it puts the TCP streams together, cuts them into start-up frames and FPDUs,
// and checks what Wireshark's dissectors show without judging it: markers,
// reserved bits, the sequence of messages and offsets on every queue, that
// each RDMA Read Response answers its Request, Immediate Data, atomics, the
// contents of Terminate messages, and who may send first.
//
// It is a second reading of the specifications, kept free of the library's
// codecs so that a mistake in them cannot hide itself.
package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// A Packet is one TCP segment of a capture.
type Packet struct {
	Number        int // position in the capture, from 1, as tshark counts
	Src, Dst      netip.AddrPort
	Seq           uint32
	SYN, FIN, RST bool
	Payload       []byte
}

// ReadPackets reads the TCP segments of a capture in pcap or pcapng format.
// Other packets are counted and left out.
func ReadPackets(r io.Reader) ([]Packet, error) {
	source, link, err := openCapture(bufio.NewReader(r))
	if err != nil {
		return nil, err
	}
	var packets []Packet
	for number := 1; ; number++ {
		data, info, err := source.ReadPacketData()
		if err == io.EOF {
			return packets, nil
		}
		if err != nil {
			return packets, fmt.Errorf("packet %d: %w", number, err)
		}
		if info.CaptureLength < info.Length {
			return packets, fmt.Errorf("packet %d: only %d of %d octets were captured: capture whole packets (tcpdump -s 0)",
				number, info.CaptureLength, info.Length)
		}
		if p, ok := decodeTCP(data, link); ok {
			p.Number = number
			packets = append(packets, p)
		}
	}
}

// openCapture distinguishes pcap and pcapng by their first four octets.
func openCapture(r *bufio.Reader) (gopacket.PacketDataSource, layers.LinkType, error) {
	magic, err := r.Peek(4)
	if err != nil {
		return nil, 0, fmt.Errorf("the capture is empty: %w", err)
	}
	if binary.BigEndian.Uint32(magic) == 0x0a0d0d0a { // pcapng's Section Header Block
		ng, err := pcapgo.NewNgReader(r, pcapgo.DefaultNgReaderOptions)
		if err != nil {
			return nil, 0, fmt.Errorf("not a pcapng capture: %w", err)
		}
		return ng, ng.LinkType(), nil
	}
	classic, err := pcapgo.NewReader(r)
	if err != nil {
		return nil, 0, fmt.Errorf("neither pcap nor pcapng: %w", err)
	}
	return classic, classic.LinkType(), nil
}

func decodeTCP(data []byte, link layers.LinkType) (Packet, bool) {
	decoded := gopacket.NewPacket(data, link, gopacket.DecodeOptions{NoCopy: true})
	tcp, ok := decoded.TransportLayer().(*layers.TCP)
	if !ok {
		return Packet{}, false
	}
	network := decoded.NetworkLayer().NetworkFlow()
	src, _ := netip.AddrFromSlice(network.Src().Raw())
	dst, _ := netip.AddrFromSlice(network.Dst().Raw())
	return Packet{
		Src: netip.AddrPortFrom(src, uint16(tcp.SrcPort)),
		Dst: netip.AddrPortFrom(dst, uint16(tcp.DstPort)),
		Seq: tcp.Seq,
		SYN: tcp.SYN, FIN: tcp.FIN, RST: tcp.RST,
		Payload: tcp.Payload,
	}, true
}
