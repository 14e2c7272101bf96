// Package payload decides which octets of an RPC message travel where: in the
// Send, or in chunks (RFC 8166 §3.4, §3.5). The RPC message as a whole is the
// Payload stream; moving an item of it into a chunk reduces the stream. All of
// the package is pure: no I/O, no goroutines, and no allocation once buffers have
// grown.
//
// An upper layer supplies a [Binding] for each version of its program: which
// items may be reduced, and how long replies can become. The binding moves a
// [Cursor] over a message and so finds its items, wherever their data are.
//
// The transport plans with what the binding says:
//
//   - [CallPlan]: how a requester sends a call, and which memory it exposes.
//   - [Assembly]: from which pieces a receiver puts a message together.
//   - [ReplyPlan]: how a responder sends a reply through the call's chunks.
//   - [ReplyReader]: which results of a reply are in which memory of the caller.
package payload
