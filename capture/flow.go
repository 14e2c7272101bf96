// The synthetic TCP connection: its handshake, its segments with their sequence numbers,
// and its end.

package capture

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

const (
	// maxSegment is the largest payload of an IPv4 packet under 64 KiB:
	// 65535 - 20 (IP) - 20 (TCP).
	maxSegment = 65495
	// windowScale makes the window of 65535 one of 1 GiB, so that no reader takes
	// it for full (RFC 7323 §2.3: at most 14).
	windowScale = 14
	// ackEvery is how many octets one end sends before the other, if it sends
	// nothing itself, acknowledges them.
	ackEvery = 1 << 20
)

// A side is one end of the connection: the program's, or its peer's.
type side int

const (
	local side = iota
	remote
)

func (s side) other() side { return 1 - s }

// A flow is the synthetic TCP connection around the octets of a real one.
type flow struct {
	w *Writer

	mu     sync.Mutex
	ends   [2]end
	opened bool // the handshake is recorded
	reset  bool // an RST is recorded: nothing follows
}

// An end is the state of one side.
type end struct {
	addr    netip.AddrPort
	mac     net.HardwareAddr
	next    uint32 // sequence number of its next octet
	fin     bool   // its FIN is recorded
	pending int    // octets of it that the other side has not acknowledged
	packets uint16 // identifies its IPv4 packets
}

func newFlow(w *Writer, here, there net.Addr) *flow {
	n := w.number()
	f := &flow{w: w}
	f.ends[local].addr, f.ends[remote].addr = addresses(here, there, n)
	for i := range f.ends {
		// A locally administered address, and sequence numbers that do not
		// look like those of an earlier connection between the same ports.
		f.ends[i].mac = net.HardwareAddr{0x02, 0, 0, 0, 0, byte(i + 1)}
		f.ends[i].next = n<<24 + uint32(i)<<23
	}
	return f
}

// addresses returns the addresses of a TCP connection. For other connections they are
// those for documentation (RFC 5737), with a different port for each connection.
func addresses(here, there net.Addr, n uint32) (a, b netip.AddrPort) {
	h, ok := here.(*net.TCPAddr)
	t, ok2 := there.(*net.TCPAddr)
	if ok && ok2 && h != nil && t != nil {
		a, b = plain(h), plain(t)
		if a.Addr().IsValid() && a.Addr().BitLen() == b.Addr().BitLen() {
			return a, b
		}
	}
	port := uint16(0xc000 | n&0x3fff) // dynamic ports
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), port),
		netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 2}), port)
}

// plain returns the address as packets carry it.
func plain(a *net.TCPAddr) netip.AddrPort {
	p := a.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
}

// data records octets that from has sent.
func (f *flow) data(from side, p []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open(from)
	if f.ends[from].fin {
		return // the write is about to fail
	}
	for len(p) > 0 {
		n := min(len(p), maxSegment)
		f.segment(from, layers.TCP{PSH: true, ACK: true}, p[:n])
		p = p[n:]
		if f.ends[from].pending >= ackEvery {
			f.segment(from.other(), layers.TCP{ACK: true}, nil)
		}
	}
}

// unsent takes back the last n octets recorded for from, which were not sent. What is
// sent in their place looks like a retransmission.
func (f *flow) unsent(from side, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ends[from].fin {
		f.ends[from].next -= uint32(n)
	}
}

// finish records the FIN of from.
func (f *flow) finish(from side) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ends[from].fin {
		return
	}
	f.open(from)
	f.segment(from, layers.TCP{FIN: true, ACK: true}, nil)
	f.ends[from].fin = true
	f.segment(from.other(), layers.TCP{ACK: true}, nil)
}

// abort records the RST of from.
func (f *flow) abort(from side) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open(from)
	f.segment(from, layers.TCP{RST: true, ACK: true}, nil)
	f.reset = true
}

// flush writes the Writer's buffer to its file.
func (f *flow) flush() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.w.flush()
}

// open records the handshake, once. A net.Conn does not say which side dialed; it is
// taken to be first, the side that sends first, as an MPA initiator does.
func (f *flow) open(first side) {
	if f.opened {
		return
	}
	f.opened = true
	mss := layers.TCPOption{OptionType: layers.TCPOptionKindMSS, OptionLength: 4, OptionData: binary.BigEndian.AppendUint16(nil, maxSegment)}
	scale := layers.TCPOption{OptionType: layers.TCPOptionKindWindowScale, OptionLength: 3, OptionData: []byte{windowScale}}
	options := []layers.TCPOption{mss, {OptionType: layers.TCPOptionKindNop}, scale}
	f.segment(first, layers.TCP{SYN: true, Options: options}, nil)
	f.segment(first.other(), layers.TCP{SYN: true, ACK: true, Options: options}, nil)
	f.segment(first, layers.TCP{ACK: true}, nil)
}

// segment records one segment with the flags and options of tcp. It needs f.mu.
func (f *flow) segment(from side, tcp layers.TCP, payload []byte) {
	if f.reset {
		return
	}
	src, dst := &f.ends[from], &f.ends[from.other()]
	tcp.SrcPort, tcp.DstPort = layers.TCPPort(src.addr.Port()), layers.TCPPort(dst.addr.Port())
	tcp.Seq, tcp.Window = src.next, 65535
	if tcp.ACK {
		tcp.Ack = dst.next
		dst.pending = 0
	}
	src.next += uint32(len(payload))
	src.pending += len(payload)
	if tcp.SYN || tcp.FIN { // each counts as an octet (RFC 9293 §3.4)
		src.next++
	}

	ether := layers.Ethernet{SrcMAC: src.mac, DstMAC: dst.mac}
	var ip interface {
		gopacket.SerializableLayer
		gopacket.NetworkLayer
	}
	if src.addr.Addr().Is4() {
		src.packets++
		ether.EthernetType = layers.EthernetTypeIPv4
		ip = &layers.IPv4{
			Version: 4, TTL: 64, Id: src.packets, Flags: layers.IPv4DontFragment, Protocol: layers.IPProtocolTCP,
			SrcIP: src.addr.Addr().AsSlice(), DstIP: dst.addr.Addr().AsSlice(),
		}
	} else {
		ether.EthernetType = layers.EthernetTypeIPv6
		ip = &layers.IPv6{
			Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolTCP,
			SrcIP: src.addr.Addr().AsSlice(), DstIP: dst.addr.Addr().AsSlice(),
		}
	}
	// It fails only for layers other than IP.
	_ = tcp.SetNetworkLayerForChecksum(ip)
	f.w.packet(&ether, ip, &tcp, gopacket.Payload(payload))
}
