// Package nettest has what Weft's own tests need of a network: loopback connections
// without fixed ports, receives with a time limit, and a check that no goroutine stays
// behind. Package iwarptest has connections in memory that misbehave on demand.
package nettest
