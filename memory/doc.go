// Package memory is the protected memory of one RNIC: what RDMA calls
// protection domains, Memory Regions, STags and access rights (Verbs §7,
// RFC 5042).
//
// A [Table] knows every STag of the RNIC. [Table.Register] gives a []byte an
// STag, bounds and rights; from then on local work requests and remote peers
// reach the octets only through a [Holder], which checks each access and hands
// out the memory itself:
//
//	var h memory.Holder
//	h.Init(table, pd, 0)
//	pieces, fault := h.Resolve(nil, stag, offset, length, memory.RemoteWrite)
//	... copy into pieces ...
//	h.Forget()
//
// # Regions and windows
//
// A [Region] is memory with rights for local work requests and for peers. It begins
// with [Table.Register], or without memory with [Table.AllocRegion]; it gets other
// memory by [Table.FastRegister], when it is Invalid, and by [Table.Reregister];
// [Table.RegisterShared] makes a second one over the same octets. The memory is a
// []byte, or a [BufferList] of several.
//
// A [Window] gives the peer of one stream rights to a part of a region, from
// [Table.Bind] on until it is invalidated. Who may use it depends on the stream alone
// and what may be done on its own rights alone; the region below it cannot go as long
// as it is bound.
//
// Both are Valid or Invalid, share one space of STag indices, and are invalidated by
// [Table.Invalidate], on whose behalf it may be.
//
// # Revocation
//
// Deallocating or invalidating an STag returns only when no octet can move
// through it any more, in either direction (Verbs §7.9, RFC 5042 §6.2.2), and
// no peer can delay that. Each valid registration has one atomic word: a
// revoked bit and a count of holders. A Holder counts itself in unless the bit
// is set, and never waits; the revoker sets the bit, then waits for the count
// to reach zero. A window holds its region as long as anybody holds the window.
// Holders keep a registration only across copies, checksums and non-blocking system
// calls, so that wait is short. The rule for users follows:
//
//   - let go (Release or Forget) before waiting for anything, the network above
//     all, and at the end of every bounded piece of work even when there is
//     nothing to wait for, so that a peer that never pauses delays nobody;
//   - never revoke while holding: a goroutine that invalidates or deallocates
//     lets its own Holders go first, or it waits for itself.
//
// A registration object is never made valid a second time. Memory that is
// registered anew gets a new object, so that whoever remembers the old one can
// only fail. It gets it when nobody holds the old one any more, so that an STag never
// reaches more than the one that it has now.
//
// # Pages
//
// A Table knows who may use an STag, and not whether this program may use the pages
// behind it: they may be read-only, unmapped by now, or behind the end of a file that
// was truncated. Who copies to or from memory that a Holder handed out has to be ready
// for a fault, and treats it as [ddp.FaultMemory]; [Holder.Atomic] does so itself.
// With Config.ProbePages the pages are tried when the memory is registered.
package memory
