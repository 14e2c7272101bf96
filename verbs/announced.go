// This file is how queue pairs announce to each other that they accept the messages of RFC
// 7306, which leaves that agreement to the ULPs. It needs neither private data nor messages
// of the ULPs: the STag and TO of an RDMA Write of no octets may have any value, and no
// receiver may check them (RFC 5041 §5.2).
//
//  1. The initiator begins with such a Write, which in a peer-to-peer start-up is the
//     ready-to-receive message.
//  2. A responder that announces, too, sends one in return, ahead of its own messages.

package verbs

import "github.com/weft-rdma/weft/rdmap"

// Announced is called when the peer has announced that it accepts Immediate Data and atomics:
// once a stream, before anything else is received that the peer has sent after that. It
// runs in the goroutine that receives, and must not wait. An initiator learns of it one
// round trip after the connection was established.
//
// Only queue pairs of Weft announce it, and only those that have an Announced, too. Other
// implementations of iWARP see a Write of no octets, which does nothing.
type Announced func(*QP)

var announcement = rdmap.Signature{STag: 'W'<<24 | 'e'<<16 | 'f'<<8 | 't', TO: 7306}

// signed looks at what an empty Write of the peer carries.
func (c *connection) signed(s rdmap.Signature) (reply bool) {
	if s != announcement || c.announced {
		return false
	}
	c.announced = true
	c.q.cfg.Announced(c.q)
	return !c.initiator
}
