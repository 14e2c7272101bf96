// Package polled is TCP connections that Go's network poller does not know.
//
// That poller wakes a thread for everything that arrives, even if nobody waits: it is
// edge-triggered and cannot be told to leave a socket alone. In a program whose own threads
// receive, such a wakeup costs more than the message, and takes the processor from the thread
// that receives. The connections of this package are watched only while somebody waits for
// them.
//
// # The flow
//
//  1. [New] takes over the socket of a *net.TCPConn.
//  2. A read or a write that has to wait registers the socket for one event (EPOLLONESHOT),
//     and sleeps.
//  3. The poller, one goroutine for the whole program, waits for events. It receives what has
//     arrived by the function given to [Conn.ReceiveWith], or wakes the sleeper.
//  4. A visitor is a thread that receives by itself: it calls [Conn.Visit] each time, and may
//     wait for the descriptor ([Conn.Hold]). A visit leases what arrives to visitors: the
//     poller ignores it. The lease ends when the visitors leave ([Conn.EndLease]), when none
//     has come for 1 to 2 ms, and when something is left to the read ([Conn.WakeReader]).
//
// The states of a lease and their events are a table, in state_linux.go.
//
// # Locking
//
// Each direction of a connection has a lock that its user holds while it works and waits.
// Conn.mu guards the rest, and nobody waits while holding it; the state may be read without.
// poller.leases is taken within it. Visitors share the descriptor with the read: their users
// agree among themselves who receives (package mpa, by the token of its turns). Close waits
// until nobody uses the descriptor.
package polled
