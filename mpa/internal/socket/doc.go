// Package socket is what mpa asks of TCP's socket: reads and writes of several pieces that
// never wait, whether there is something to be read, and what TCP knows of the connection,
// with when to ask for it.
// It knows nothing of frames, and locks nothing. Waiting is for the runtime's network
// poller, within [syscall.RawConn].
package socket
