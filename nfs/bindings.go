// This file says which program has which upper-layer binding.

package nfs

import (
	"github.com/weft-rdma/weft/rpcrdma/payload"
)

// Bindings are the upper-layer bindings of NFS. The programs beside it have no
// data that may travel in chunks of their own, and no binding: MOUNT, NLM, NSM
// and NFSACL (RFC 8267 §5), and callbacks (RFC 8267 §6.5).
func Bindings() payload.Bindings {
	return payload.Bindings{
		{Prog: Program, Vers: V2}: BindingV2{},
		{Prog: Program, Vers: V3}: BindingV3{},
		{Prog: Program, Vers: V4}: BindingV4{},
	}
}
