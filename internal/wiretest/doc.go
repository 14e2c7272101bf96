// Package wiretest holds what tests of the whole stack need: a peer made by
// hand, and a side of Weft whose every octet, completion and event is watched.
//
// A [Peer] speaks MPA over any net.Conn without the stack: it is given ULPDUs,
// or octets that are no FPDUs at all, and reads back what Weft answers down to
// pad, marker and CRC. ULPDUs are made by the functions named after messages
// ([Send], [Write], [ReadRequest] and so on) and bent by [With], [More] and
// [Cut]. Nothing of it uses the stack's codecs, so that one mistake cannot be
// on both sides.
//
// A [Side] is an RNIC with a queue pair, memory that is compared as a whole
// with what is expected of it, guard zones included, and a record of its
// asynchronous events. [Wire] names the kinds of connection between the two.
package wiretest
