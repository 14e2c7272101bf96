// This file names the ready-to-receive messages.

package rdmap

// RTR is a set of ready-to-receive messages: the messages of no octets with which
// the initiator of a peer-to-peer stream may begin, so that the responder may send,
// too (RFC 6581 §9.2).
type RTR uint8

const (
	RTRSend RTR = 1 << iota
	RTRWrite
	RTRRead
)
