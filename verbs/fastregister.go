// This file is the operand of a Fast-Register (Verbs §7.3.2.5).

package verbs

import "github.com/weft-rdma/weft/memory"

// A FastRegister is what an OpFastRegister makes of a memory region that is Invalid
// (Fast-Register Non-Shared Memory Region, Verbs §7.3.2.5). Its STag is the region's
// index with a key of the consumer's choice; what it names must not be modified until
// the request has completed.
type FastRegister struct {
	STag memory.STag // the index of the region and its new key

	// Buf, or else List, is the memory. Buf counts as a list of one entry.
	Buf  []byte
	List BufferList

	Access    memory.Access // BindWindow included; remote rights need the region's Remote Access Flag
	VA        uint64        // as in MRConfig
	ZeroBased bool          // as in MRConfig
}

// FastRegister is for an OpFastRegister of the region with the memory buf. The key is
// another than the one before, so that an STag which a peer remembers meets nothing.
func (mr *MR) FastRegister(buf []byte, access memory.Access) FastRegister {
	stag := mr.STag()
	return FastRegister{STag: stag&^0xFF | memory.STag(stag.Key()+1), Buf: buf, Access: access}
}
