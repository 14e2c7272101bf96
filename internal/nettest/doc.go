// Package nettest has what Weft's own tests need of a network: loopback connections
// without fixed ports, and a check that no goroutine stays behind. Connections in
// memory that misbehave on demand are in the public package iwarptest; [Pipe] and
// [Conn] are those.
package nettest
