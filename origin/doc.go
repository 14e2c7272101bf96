// Package origin says where a connection comes from, as this machine knows it:
// the peer's address, whether that is this machine's own, and then the user that
// owns the peer's socket, with the groups that the system gives that user. Nothing
// here is taken from what the peer says.
//
// [Look] finds it out when a connection was accepted. It needs no privilege: Linux
// tells everybody who owns which socket, by sock_diag(7) and in /proc/net/tcp.
// Other systems do not, and a caller on this machine has no user there.
package origin
