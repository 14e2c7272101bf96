// Package listening is what a connection manager needs of an RNIC and nobody else
// does: it counts the listeners and the connections that nobody has accepted yet (RFC
// 5042 §6.4.1). Package verbs provides it and package cm uses it; neither shows it.
package listening

import "io"

// Places are those of one RNIC. Methods may be called by any goroutine.
type Places interface {
	// AttachListener makes a listener part of the RNIC: it counts against
	// Limits.Listeners until DetachListener is called, and is closed when the RNIC
	// is. l is a pointer. The results besides success are verbs.ErrRNIC and
	// verbs.ErrResources.
	AttachListener(l io.Closer) error

	// DetachListener says that a listener has been closed.
	DetachListener(l io.Closer)

	// AdmitConnection counts a connection that nobody has accepted yet against
	// Limits.PendingConnections, until DismissConnection is called once for it. The
	// results besides success are verbs.ErrRNIC and verbs.ErrResources.
	AdmitConnection() error

	// DismissConnection says that a connection does not wait any more.
	DismissConnection()
}

// Of returns the places of an RNIC, a *verbs.RNIC. Package verbs sets it.
var Of func(rnic any) Places
