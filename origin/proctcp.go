// The tables of sockets in /proc/net/tcp and /proc/net/tcp6 (proc_pid_net(5)).

package origin

import (
	"bufio"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

// findSocket returns the socket that is connected from one address to another.
func findSocket(order byteOrder, table io.Reader, from, to netip.AddrPort) (s socket, found bool, err error) {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		s, ok := parseProcLine(order, lines.Text())
		if ok && s.local == bare(from) && s.remote == bare(to) {
			return s, true, nil
		}
	}
	return socket{}, false, lines.Err()
}

// parseProcLine parses one line: number, local and remote address, state, queues, timer,
// retransmissions, uid, timeout, inode, and others. ok is false for the headings.
func parseProcLine(order byteOrder, line string) (s socket, ok bool) {
	f := strings.Fields(line)
	if len(f) < 10 {
		return s, false
	}
	var ok1, ok2 bool
	s.local, ok1 = parseProcAddr(order, f[1])
	s.remote, ok2 = parseProcAddr(order, f[2])
	state, err1 := strconv.ParseUint(f[3], 16, 8)
	uid, err2 := strconv.ParseUint(f[7], 10, 32)
	inode, err3 := strconv.ParseUint(f[9], 10, 64)
	s.state, s.uid, s.inode = uint8(state), uint32(uid), inode
	return s, ok1 && ok2 && err1 == nil && err2 == nil && err3 == nil
}

// parseProcAddr parses "0100007F:0801": the words of the address in the host's octet
// order, and the port.
func parseProcAddr(order byteOrder, s string) (netip.AddrPort, bool) {
	words, port, _ := strings.Cut(s, ":")
	p, err := strconv.ParseUint(port, 16, 16)
	if err != nil || len(words) != 8 && len(words) != 32 {
		return netip.AddrPort{}, false
	}
	var octets []byte
	for ; words != ""; words = words[8:] {
		w, err := strconv.ParseUint(words[:8], 16, 32)
		if err != nil {
			return netip.AddrPort{}, false
		}
		octets = order.AppendUint32(octets, uint32(w))
	}
	a, _ := netip.AddrFromSlice(octets)
	return netip.AddrPortFrom(a.Unmap(), uint16(p)), true
}
