// Package polled is TCP connections that Go's network poller does not know.
//
// That poller is told of all that arrives, and wakes a thread for it, also where nobody
// waits in it: edge-triggered, it cannot be told to leave a socket alone. Where a thread
// of a program receives by itself, the thread that is woken in vain costs more than the
// message, and takes the processor from the one that receives. The connections of this
// package are watched only while somebody waits for them.
//
// # The flow
//
//  1. [New] takes the socket of a *net.TCPConn over.
//  2. Who has to wait registers the socket for one event (EPOLLONESHOT), and sleeps.
//  3. One goroutine for the whole program waits for events, and wakes those who sleep.
//
// # Locking
//
// Each half of a connection has a lock that its user holds while it works and waits, and
// the connection a lock of its state, which nobody waits under. Close waits until nobody
// uses the descriptor.
package polled
