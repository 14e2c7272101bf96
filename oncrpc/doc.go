// Package oncrpc is ONC RPC version 2 (RFC 5531) as far as messages go, with
// the part of XDR (RFC 4506) that they and NFS are made of, and the record
// marking that carries them over a byte stream.
//
// [Encoder] and [Decoder] are XDR on octets: the one appends, the other refers
// to what it was given and believes no count before it has been bounded. On
// them stand [Call] and [Reply], which say where arguments and results begin
// and never touch those, [OpaqueAuth] for credentials and verifiers of any
// flavor, [AuthSys], and the port mapper's messages ([Mapping]).
//
// What a server answers instead of results is an error here: [AcceptError] and
// [RejectError] print in words, [Reply.Err] makes them of a reply and [ReplyTo]
// makes the reply of them. A [DecodeError] says what could not be read, and
// where.
//
// [RecordReader] and [RecordWriter] are record marking (RFC 5531 §11). They
// keep no more of a record than has arrived, copy no large piece of one, and
// start no goroutine. RPC-over-RDMA has no use for them: its messages carry no
// record mark.
package oncrpc
