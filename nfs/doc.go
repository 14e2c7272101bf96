// Package nfs has the messages of NFS version 3 and of its MOUNT protocol (RFC
// 1813). What of them may travel by RDMA is in nfs/binding.
//
// Each procedure has a structure for its arguments and one for its results, with
// the fields in the order of the wire: GetattrArgs and GetattrRes for GETATTR.
// Procedures whose messages are alike share them. Both ways are there, because a
// server decodes what a client encodes:
//
//	Encode(*oncrpc.Encoder)   fails by the Encoder, for what is beyond a limit
//	Decode(*oncrpc.Decoder)   fails by the Decoder, with a *oncrpc.DecodeError
//
// What is decoded refers to the memory of the message, but for strings. File
// names and paths are octets in no particular encoding.
//
// Results begin with a [Stat], which is an error when it is not OK. Fields that
// belong to another arm of a union are not encoded, and zero when decoded.
//
// Each structure names its fields once (coder.go). From that it is encoded and
// decoded, its longest form is known ([Proc.MaxResults]), and a [Walker] can go
// through it to find the items that may be elsewhere.
//
// Payload goes around the Encoder where that saves a copy: [ReadReply] is a reply
// into which a server reads a file, [WriteArgs.EncodeHead] and
// [ReadRes.DecodeHead] leave the data out, and [DirWriter] fills a listing to
// the octet.
package nfs
