// Package client is a client of NFS version 3 (RFC 1813), over any transport of ONC
// RPC: package rpcrdma, which places file data without a copy, or package rpctcp.
//
// [Dial] mounts an export and returns an [FS]. The methods of an FS take paths within
// the export, such as "/a/b" or "a/b", in octets of any encoding, and follow symbolic
// links that stay within the export. A [File] reads and writes at offsets. A [Reader] and
// a [Writer] stream large files with many requests in flight. [FS.IOFS] is the export as
// an io/fs.FS.
//
// When [File.WriteAt] or [Writer.Close] returns, the data are on the server's stable
// storage, even if the server has restarted meanwhile: the write verifier shows that, and
// data that may be lost are written again (RFC 1813 §4.8).
//
// An error is an [*Error] with the procedure and the path. errors.Is finds
// [io/fs.ErrNotExist] and the like in it. The transport restores lost connections; calls
// wait for that until their context ends.
package client
