// The largest ULPDU to send (RFC 5044 §4.5): what fits into one segment of the
// TCP connection, so that segments can begin with FPDUs.

package mpa

import (
	"net"

	"github.com/weft-rdma/weft/mpa/internal/fpdu"
	"github.com/weft-rdma/weft/mpa/internal/socket"
)

// defaultEMSS is the effective maximum segment size, in octets, taken for
// transports that do not report theirs: an MTU of 1500 octets less the headers of
// IPv6 and TCP with a time stamp, which also fits IPv4 (RFC 5044 §5.1).
const defaultEMSS = 1500 - 40 - 20 - 12

// emssOf is the effective maximum segment size of nc: of its records, if it has some, or of
// tcp, which may be nil.
func emssOf(nc net.Conn, tcp tcpConn) socket.EMSS {
	if size := recordSize(nc); size > 0 {
		return socket.NewEMSS(nil, size)
	}
	if tcp == nil {
		return socket.NewEMSS(nil, defaultEMSS)
	}
	rc, err := tcp.SyscallConn()
	if err != nil {
		return socket.NewEMSS(nil, defaultEMSS)
	}
	return socket.NewEMSS(socket.AskTCP(rc), defaultEMSS)
}

// recordSize is how many octets of the stream fit into one record of the connection that
// nc is or wraps; 0 if it has no records.
func recordSize(nc net.Conn) int {
	for {
		switch t := nc.(type) {
		case interface{ RecordSize() int }:
			return t.RecordSize()
		case interface{ NetConn() net.Conn }:
			nc = t.NetConn()
		default:
			return 0
		}
	}
}

// mulpduFor is the MULPDU for an effective maximum segment size, in octets.
func mulpduFor(emss int, markers bool) int {
	n := emss - (fpdu.LengthSize + fpdu.CRCSize + emss%4)
	if markers {
		n -= fpdu.MarkerSize * ((emss + fpdu.MarkerSpacing - 1) / fpdu.MarkerSpacing)
	}
	return clampMULPDU(n)
}

func clampMULPDU(n int) int { return min(max(n, MinMULPDU), MaxMULPDU) }
