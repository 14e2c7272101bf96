// Package origin says where a connection comes from, as this machine knows it:
// the peer's address, and for a peer on this machine the user that owns its
// socket. Nothing here is taken from what the peer says.
package origin
