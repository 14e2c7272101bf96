// Package listening counts the listeners of an RNIC and the connections that have not been
// accepted yet (RFC 5042 §6.4.1), and connects queue pairs. It is between package verbs,
// which implements it, and package cm, which uses it, and is in the public API of neither.
package listening

import (
	"io"

	"github.com/weft-rdma/weft/ddp"
)

// Places are the counts of one RNIC. Methods may be called by any goroutine.
type Places interface {
	// AttachListener makes a listener part of the RNIC: it counts against
	// Limits.Listeners until DetachListener is called, and is closed with the RNIC. l
	// is a pointer. The error is verbs.ErrRNIC or verbs.ErrResources.
	AttachListener(l io.Closer) error

	// DetachListener ends the count of a listener that has been closed.
	DetachListener(l io.Closer)

	// AdmitConnection counts a connection that nobody has accepted yet against
	// Limits.PendingConnections, until DismissConnection is called once for it. The
	// error is verbs.ErrRNIC or verbs.ErrResources.
	AdmitConnection() error

	// DismissConnection ends the count of a connection.
	DismissConnection()
}

// A Pair is a queue pair that is being connected.
type Pair interface {
	// Establish moves the queue pair from Idle to RTS, like verbs.QP.Modify, over an LLP
	// stream that start-up has just established. terms are verbs.Terms.
	Establish(llp ddp.LLP, terms any) error

	// Ready returns a channel that is closed when the peer's first message has arrived
	// and was in order, or nil without a stream. The responder of a peer-to-peer
	// start-up is connected only then (RFC 6581 §9.2).
	Ready() <-chan struct{}
}

// OfQP returns the Pair of a queue pair, a *verbs.QP. Package verbs sets it.
var OfQP func(qp any) Pair

// Of returns the places of an RNIC, a *verbs.RNIC. Package verbs sets it.
var Of func(rnic any) Places
