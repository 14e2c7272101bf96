// Package client reads, writes and changes what an NFS version 3 server exports
// (RFC 1813), over any transport of RPC: package rpcrdma's, with which file data
// are placed without a copy, or package rpctcp's.
//
// [Dial] mounts an export and returns an [FS], whose methods take paths. They
// are paths within the export, "/a/b" or "a/b", in octets of no particular
// encoding; symbolic links are followed as far as they stay within the export.
// [File] reads and writes at offsets, [Reader] and [Writer] stream large files
// with many requests under way, and [FS.IOFS] is the export as an io/fs.FS.
//
// What is written is on the server's stable storage when [File.WriteAt] or
// [Writer.Close] returns, even if the server has lost its memory meanwhile: it
// is told by the write verifier, and what is lost is written again (RFC 1813
// §4.8).
//
// Errors are an [*Error], which says which procedure failed for which path, and
// is [io/fs.ErrNotExist] and the like. Connections that are lost are the
// transport's business: calls wait for the next one as long as their context
// lets them.
package client
