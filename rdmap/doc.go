// Package rdmap is the Remote Direct Memory Access Protocol (RFC 5040) with its
// extensions for atomics and Immediate Data (RFC 7306): the messages, and the rules
// of a stream of messages.
//
// The codecs are pure functions on octets: [Opcode] and the control octet,
// [ReadRequest], [AtomicRequest], [AtomicResponse], [Terminate].
//
// A [Stream] runs the protocol between a [ddp.LLP] below and a [ULP] above. It
// sends the operations of the ULP's send queue, answers the peer's Reads and
// atomics without the ULP, matches responses to requests, keeps to IRD and ORD,
// delivers in order, and ends with the first error, which it reports to the peer
// in a Terminate message. It knows neither work queues nor sockets nor which LLP
// it runs over, and starts no goroutine.
//
// To add a message, give its opcode a row in opcodes (what follows from the opcode
// alone), in handlings (how a Stream starts and delivers it) and, if the peer
// answers it, in services.
package rdmap
