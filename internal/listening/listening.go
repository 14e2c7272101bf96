// Package listening counts the listeners of an RNIC and the connections that nobody has
// accepted yet (RFC 5042 §6.4.1). It is between package verbs, which implements it, and
// package cm, which uses it, and is in the public API of neither.
package listening

import "io"

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

// Of returns the places of an RNIC, a *verbs.RNIC. Package verbs sets it.
var Of func(rnic any) Places
