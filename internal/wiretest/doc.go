// Package wiretest tests the whole stack against a peer of package iwarptest, which
// shares no code with it.
//
// A [Side] is an RNIC with a queue pair under observation: its memory is compared
// as a whole with what is expected, guard zones included, and its asynchronous events
// are recorded. A [Listener] connects peers to it. A [Wire] is a kind of connection
// between the two.
package wiretest
