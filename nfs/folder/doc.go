// Package folder serves a folder of this machine by NFS version 3 (RFC 1813):
// all 22 procedures, so that to a Linux client the folder behaves as if the
// kernel's own server exported it.
//
// A [Server] is an [oncrpc.Handler]. It knows nothing of RDMA: data of READ go
// from the file into the memory that the transport sends, data of WRITE from
// where the transport has put them into the file.
//
// # The jail
//
// Nothing outside of the folder can be reached. On Linux every object is held by
// a descriptor of its own (O_PATH), and the server only ever looks up single
// names below descriptors, without following symbolic links, which are for
// clients to follow. What somebody on this machine moves out of the folder is let go
// within a second, with all that is in it: handles of it are NFS3ERR_STALE, unless a
// file has another name in the folder. ".." never leads above the folder. What is
// mounted below the folder is not entered: it answers NFS3ERR_ACCES.
// On other systems [os.Root] holds the jail.
//
// # Handles
//
// A file handle says which inode is meant, of what birth, and nothing of where it
// is: it survives renaming, is the same by whatever name a file with hard links
// was found, and stays good when the server is started again with the same key
// ([Config.StateDir]). A seal under that key tells handles that the server has not
// made, or for another folder: they are NFS3ERR_STALE after one comparison, in constant
// time, and nothing is looked for. A handle of its own that the server does not
// remember, after a start or because it remembers only so many, is
// looked for in the whole folder, for which clients wait by NFS3ERR_JUKEBOX. An
// inode number that is used again belongs to another handle where the file
// system tells births.
//
// # Whose files
//
// When the server runs as root, it takes the identity of each caller for as long
// as an operation lasts, so that the kernel decides on permissions, owners, quota,
// and the bits that change of owner or data clear. Who a caller is:
//
//   - On this machine it is the owner of its socket, with the groups of that user
//     ([oncrpc.Request.Origin], as [origin.Look] finds it out). What it claims is
//     ignored, unless the owner is root, who may claim to be anybody. Where nobody
//     looked, a caller on this machine is anonymous.
//   - On other machines it is who it claims to be by AUTH_SYS, which is nothing more
//     than its word, and anonymous without.
//   - Then [Config.Squash] is applied: unless told otherwise, root is anonymous,
//     also of this machine. The anonymous user gives no file set-uid or set-gid bits.
//
// Otherwise everybody acts as the server's user: files belong to it, and chown to
// others fails with NFS3ERR_PERM as the kernel sees fit. Who may call at all is for
// others to say: see mount.Access.
//
// # Stable storage
//
// What RFC 1813 calls stable is on disk when the reply leaves, as far as fsync
// does that: data of WRITE with DATA_SYNC and FILE_SYNC, what COMMIT was asked for,
// and every change of names and attributes. The write verifier differs from one
// start of the server to the next, and changes when an fsync has failed.
//
// # Memory
//
// What clients can make the server keep is bounded: objects and descriptors
// ([Config.MaxNames], [Config.MaxOpen]), 2048 replies of calls that must not be
// executed twice, and where the file system has no lasting positions in directories,
// 128 MiB of what was read of them for listings. Replies, listings and searches are
// divided by [origin.Share]: the share that has most of them makes room first.
//
// A call is executed on memory that its transport has taken back from the peer
// (RFC 5042 Appendix A): arguments cannot change once they have been checked. Of
// the memory for a reply no more goes out than what the server has written, so
// that it may hold anything before. The server itself hands out no memory.
package folder
