// Package memory is the protected memory of one RNIC: protection domains, Memory
// Regions and Windows, STags and access rights (Verbs §7, RFC 5042).
//
// A [Table] has all STags of the RNIC. [Table.Register] gives a []byte an STag, bounds
// and rights. From then on local work requests and remote peers access the octets only
// through a [Holder], which checks each access and returns the memory itself:
//
//	var h memory.Holder
//	h.Init(table, pd, 0)
//	pieces, fault := h.Resolve(nil, stag, offset, length, memory.RemoteWrite)
//	... copy into pieces ...
//	h.Forget()
//
// # Regions and windows
//
// A [Region] is memory with rights for local work requests and for peers.
// [Table.Register] makes one, [Table.AllocRegion] one without memory.
// [Table.FastRegister], if it is Invalid, and [Table.Reregister] give it other memory.
// [Table.RegisterShared] makes a second region over the same octets. The memory is a
// []byte, or a [BufferList] of several.
//
// A [Window] gives the peer of one stream rights to a part of a region, from
// [Table.Bind] until it is invalidated. An access through it depends on its own stream
// and rights only; its region can't be deallocated while it is bound.
//
// Both are Valid or Invalid and share one space of STag indices. [Table.Invalidate]
// invalidates either, for the consumer or for a peer.
//
// # Revocation
//
// Deallocating or invalidating an STag returns only when no octet can move through it
// any more, in either direction (Verbs §7.9, RFC 5042 §6.2.2). No peer can delay that:
//
//  1. Each valid registration has one atomic word: a revoked bit and a count of holders.
//  2. A Holder increments the count unless the bit is set. It never waits.
//  3. A revoker sets the bit, and then waits for the count to reach zero. A window holds
//     its region as long as the window is held.
//
// Holders hold a registration only across copies, checksums and non-blocking system
// calls, so that wait is short. From this follow two rules for users of a Holder:
//
//   - Release or Forget before waiting for anything, above all for the network, and after
//     every bounded piece of work even if there is nothing to wait for, so that a peer
//     that never pauses delays nobody.
//   - Never revoke while holding: a goroutine that invalidates or deallocates releases
//     its own Holders first, or it waits for itself.
//
// A registration is never made valid again. Memory that is registered again gets a new
// registration, so that accesses through the old one fail. It gets it when the old one
// is not held any more, so that an STag never reaches two.
//
// # Locking
//
// Lookups and accesses take no lock. Table.mu serializes every change of state, and
// guards the fields that name it. Nobody waits for holders with Table.mu locked.
//
// # Pages
//
// A Table checks who may use an STag, not whether this program may use the pages behind
// it: they may be read-only, unmapped meanwhile, or beyond the end of a truncated file.
// Code that accesses memory that a Holder returned has to handle such faults, as
// [ddp.FaultMemory]; [Holder.Atomic] does so itself. With Config.ProbePages the pages are
// probed when the memory is registered.
package memory
