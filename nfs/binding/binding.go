// Package binding has the upper-layer bindings of NFS: which data of versions 2, 3
// and 4 may travel in chunks of their own, and how long replies can become (RFC
// 8267, RFC 5667). It imports nothing that moves data, so that what passes NFS on
// over TCP can use it, too.
//
// Programs beside NFS have no data that may be reduced, and no binding: MOUNT,
// NLM, NSM and NFSACL (RFC 8267 §5), and callbacks (§6.5).
package binding

import (
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/rpcrdma/payload"
)

// NFS returns the bindings of all versions of NFS. A [V4] serves versions 4.0, 4.1
// and 4.2.
func NFS() payload.Bindings {
	return payload.Bindings{
		{Prog: nfs.Program, Vers: nfs.V2}: V2{},
		{Prog: nfs.Program, Vers: nfs.V3}: V3{},
		{Prog: nfs.Program, Vers: nfs.V4}: V4{},
	}
}
