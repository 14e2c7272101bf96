// Package rdmap is the Remote Direct Memory Access Protocol (RFC 5040) with its
// extensions for atomics and Immediate Data (RFC 7306): what the messages are,
// and the rules of a stream of them.
//
// The codecs are pure functions on octets: [Opcode] and the control octet,
// [ReadRequest], [AtomicRequest], [AtomicResponse], [Terminate].
//
// A [Stream] runs the protocol between a [ddp.LLP] below and a [ULP] above. It
// takes operations from the ULP's send queue and sends their messages, answers
// the peer's Reads and atomics without the ULP, matches answers to questions,
// keeps to IRD and ORD, delivers in order, and ends with the first error, which
// it tells the peer in a Terminate message. It knows nothing of work queues and
// sockets, and starts no goroutine.
package rdmap
