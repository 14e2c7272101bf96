// This file is what a Conn asks of the layer above.

package mpa

// A Sink takes the ULPDUs of one stream, in order. DDP's receiver is one.
//
// [Conn.Receive] and [Conn.Poll] call it from one goroutine at a time. Memory that a Sink hands
// out is held between Window and Release only, and never while the Conn waits
// for the network.
//
// Sink and [Guard] are aliases so that the layers above, which do not import this
// package, can name the same types.
type Sink = interface {
	// ULPDU takes one whole, validated ULPDU. u is valid until it returns.
	// An error ends the reception: Receive returns it. A fault in the memory that
	// Writing names ends ULPDU, and Unwritable follows. No lock may be held where
	// one can occur.
	ULPDU(u []byte) error

	// Writing returns the memory that ULPDU is writing to.
	Writing() [][]byte

	// Begin is asked, only when CRC and received markers are off, about a
	// large ULPDU of length octets of which no more than head has arrived.
	// Saying yes, the Sink has checked the headers in head and will take
	// octets from head[skip:] on through Window; it gets End when all octets
	// are in place. Saying no, it gets the whole ULPDU later.
	Begin(head []byte, length int) (skip int, ok bool, err error)

	// Window appends to dst the memory for octets [off, length) of the ULPDU
	// begun, and for those that have joined it (see [JoiningSink]), checks it again,
	// and holds it until Release.
	Window(dst [][]byte, off int) ([][]byte, error)

	// Unwritable reports that memory of Writing, or before Release the beginning of the last
	// Window, cannot be written, and why. It returns the error that ends the reception.
	Unwritable(cause error) error

	// Release ends the hold of the last Window.
	Release()

	// End reports that every octet of the ULPDU begun is in place.
	End() error

	// Idle is called when all that was read has been handed over, before the
	// Conn waits for more: the moment to release memory kept from one ULPDU
	// to the next, and to start what the ULPDUs asked for.
	Idle()
}

// A BlockingSink is a Sink that may have to block before it can take a ULPDU.
type BlockingSink = interface {
	// WouldBlock reports that ULPDU(u) would block. Poll asks, where PollNeverBlocks is
	// true, and leaves such a ULPDU to Receive.
	WouldBlock(u []byte) bool
}

// A JoiningSink is a Sink that lets several ULPDUs be placed together, with one read.
type JoiningSink = interface {
	// MayJoin reports that Join may say yes to the ULPDU that follows. Where it does not there
	// is no need to look for one.
	MayJoin() bool
	// Join is asked, after Begin said yes, about the ULPDU that follows, of which head has
	// arrived. Saying yes, the Sink has memory for its octets from head[skip:] on, which
	// Window appends to that of those before. When all are in place Begin and End are called
	// for each, after End for the one begun.
	Join(head []byte, length int) (skip int, ok bool)
}

// A RunSink is a Sink that takes several ULPDUs in one call.
type RunSink = interface {
	// ULPDUs is ULPDU for each of us, in order, up to the first error. us, which has at least
	// one, is valid until it returns.
	ULPDUs(us [][]byte) error
}

// A Guard holds the memory that frames not yet written refer to. The Conn
// acquires it around each attempt to write, which never waits, so that memory
// can be revoked while the Conn waits for the network.
type Guard = interface {
	// Acquire takes the hold; false means that some of the memory has been
	// revoked: the write is not attempted and Flush returns ErrRevoked.
	Acquire() bool
	// Release ends it.
	Release()
}
