// Package nettest has what Weft's own tests need of a network: loopback connections
// without fixed ports, and a check that no goroutine stays behind. For connections in
// memory that misbehave on demand see package iwarptest.
package nettest
