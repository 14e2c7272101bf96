// This file is what a Conn asks of its connection: stream.go and tcp_linux.go have one each.

package mpa

import (
	"github.com/weft-rdma/weft/mpa/internal/fpdu"
	"github.com/weft-rdma/weft/mpa/internal/turns"
)

// A transport moves octets between a Conn and its connection.
type transport interface {
	// flush writes the batch, all of it if wait is true. It holds g, if there
	// is one, around attempts.
	flush(b *fpdu.Batch, g Guard, wait bool) error
	// read waits for octets and puts them into the buffer's room; the buffer may go back
	// to its pool meanwhile. It returns at least one octet, or io.EOF at their end. Unless
	// alone is set visitors may receive meanwhile: n is 0 without an error if they left
	// something to the reader.
	read(a *readAhead, alone bool) (int, error)
	// close is called before the connection is closed.
	close()
}

// A direct transport has a socket whose calls do not wait.
type direct interface {
	transport
	// share returns the turns that its reader and visitors take.
	share() *turns.Turns
	// look reads once, without waiting: no octets if there are none.
	look(a *readAhead) (int, error)
	// readWindows waits for octets as read does, and puts them where p has them: into
	// the Sink's memory and its gaps, and what follows into more. An error of the Sink is
	// a windowError.
	readWindows(s Sink, p *placement, more []byte) (int, error)
	// peek copies octets from position at on of those that have not been read to b,
	// without reading them. It reports false unless as many as b takes have arrived.
	peek(at int, b []byte) bool
}

// A windowError is what a Sink answered when it was asked for memory.
type windowError struct{ err error }

func (e windowError) Error() string { return e.err.Error() }
