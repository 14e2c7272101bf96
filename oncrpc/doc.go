// Package oncrpc implements the messages of ONC RPC version 2 (RFC 5531), the
// part of XDR (RFC 4506) that they and NFS use, record marking over byte streams,
// and the port mapper (RFC 1833). Packages rpctcp and rpcrdma carry the messages.
//
//   - [Encoder] and [Decoder] append and read XDR. A Decoder copies no opaque data
//     and trusts no count before it has checked it.
//   - [Call] and [Reply] are the message headers. They say where arguments and
//     results begin, and do not touch those. [OpaqueAuth] is a credential or a
//     verifier of any flavor, [AuthSys] the body of an AUTH_SYS credential.
//   - [Handler] and [Caller] are what a program and a transport are to each other:
//     a server's transport calls a Handler, a client's transport is a Caller.
//   - [RecordReader] and [RecordWriter] implement record marking (RFC 5531 §11).
//     They keep no more of a record than has arrived, do not copy large pieces, and
//     start no goroutine. RPC-over-RDMA messages have no record marks.
//   - [PortMapper] serves a table of programs, [Register] enters them in the
//     host's port mapper.
//
// A call that a server does not execute is an [AcceptError] or a [RejectError].
// [Reply.Err] makes the error of a reply, and [ReplyTo] the reply of an error. A
// [DecodeError] says what could not be decoded, and where.
package oncrpc
