// Package nettest is the network of the tests: connections in memory that
// misbehave on order, loopback connections without fixed ports, and a check
// that no goroutine stays behind.
//
// [Pipe] makes a connection of two [Conn]s. Each end has a stream of its own
// towards the other, with a buffer of bounded size as TCP has; what is to go
// wrong with it is said to the end that sends (Delay, Hold, Corrupt, FinAfter,
// ResetAfter) or to the end that reads (ReadSizes). All waiting is on condition
// variables and timers that [testing/synctest] knows, and no goroutine runs but
// the caller's, so that a test in a bubble needs no real time.
package nettest
