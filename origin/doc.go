// Package origin determines where a connection comes from: the peer's address, whether
// that is an address of this machine, and if so which user owns the peer's socket, with
// the groups that the system gives that user. Nothing of it depends on what the peer
// says.
//
// Call [Look] when a connection has been accepted. It needs no privilege: Linux tells
// everybody who owns which socket, by sock_diag(7) and in /proc/net/tcp. Other systems
// do not; there a peer on this machine has no user.
package origin
