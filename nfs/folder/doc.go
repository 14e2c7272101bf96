// Package folder serves a directory of this machine, the export, over NFS version 3 (RFC
// 1813). It implements all 22 procedures, and behaves to Linux clients like the kernel's
// server.
//
// A [Server] is an [oncrpc.Handler] for any transport. READ reads from the file straight
// into the memory that the transport sends from, and WRITE writes from the memory that the
// transport has received into.
//
// # The jail
//
// Clients cannot reach anything outside of the export. On Linux the server holds a
// descriptor (O_PATH) for each object. It looks up single names relative to these
// descriptors, and never follows symbolic links, which are for clients to follow. If a
// user of this machine moves an object out of the export, its handle, and those of
// everything in it, become NFS3ERR_STALE within a second, unless a file has another hard
// link in the export. ".." never leads above the export. File systems that are mounted
// below the export are not entered: the answer is NFS3ERR_ACCES. On other systems [os.Root]
// is the jail.
//
// # Handles
//
// A file handle contains the inode's number and birth time, but no path. It survives
// renaming, is the same for all hard links of a file, and stays valid when the server
// restarts with the same key ([Config.StateDir]). An HMAC under that key authenticates it:
// forged handles, and handles of other exports, are NFS3ERR_STALE after one comparison in
// constant time. If a handle is authentic but its object is not in memory, because the
// server has restarted or because of [Config.MaxNames], the server searches the whole export
// for it, and clients wait (NFS3ERR_JUKEBOX). If the file system records birth times, a
// reused inode number makes a different handle.
//
// # Identity
//
// When the server runs as root on Linux, each operation runs with the identity of its
// caller. So the kernel checks permissions and quotas, sets owners, and clears set-uid and
// set-gid bits as for a local user. The identity is found in this order:
//
//   - A caller on this machine is the owner of its socket, with that user's groups
//     ([oncrpc.Request.Origin], see [origin.Look]), whatever its credential claims. If the
//     owner is root, the credential counts. If the owner is not known, the caller is
//     anonymous.
//   - A caller on another machine is who its AUTH_SYS credential claims, which nothing
//     proves, and anonymous without one.
//   - [Config.Squash] then makes some callers anonymous: by default root, also root of this
//     machine.
//
// Squashed callers, and local users whom the system does not know, cannot set set-uid and
// set-gid bits.
//
// Without root, all operations run as the server's user. Files belong to that user, and
// chown fails with NFS3ERR_PERM where the kernel does not permit it. mount.Access decides who
// may call at all.
//
// # Stable storage
//
// What RFC 1813 calls stable is on disk before the reply is sent, as far as fsync ensures
// that: data of WRITE with DATA_SYNC or FILE_SYNC, data that COMMIT names, and all changes of
// names and attributes. The write verifier changes when the server restarts, and when an
// fsync fails.
//
// # Memory
//
// The memory that clients can make the server use is bounded: objects and descriptors
// ([Config.MaxNames], [Config.MaxOpen]), 2048 replies in the duplicate request cache, and
// 128 MiB of directory listings for file systems without stable directory positions.
// Replies, listings and searches are divided by [origin.Share]: when there is no more room,
// the share that has most loses some.
//
// Arguments are in memory that the peer can no longer access, so they cannot change after
// they have been checked (RFC 5042 Appendix A). Replies contain only what the server has
// written to them, whatever their memory contained before.
package folder
