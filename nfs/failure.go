// This file holds the results of calls that fail before their procedure is executed.

package nfs

import "github.com/weft-rdma/weft/oncrpc"

// failures are the optional attributes in the results of procedures that fail (RFC 1813
// §3.3).
var failures = [...]int{
	ProcGetattr:     0,
	ProcSetattr:     2,
	ProcLookup:      1,
	ProcAccess:      1,
	ProcReadlink:    1,
	ProcRead:        1,
	ProcWrite:       2,
	ProcCreate:      2,
	ProcMkdir:       2,
	ProcSymlink:     2,
	ProcMknod:       2,
	ProcRemove:      2,
	ProcRmdir:       2,
	ProcRename:      4,
	ProcLink:        3,
	ProcReaddir:     1,
	ProcReaddirplus: 1,
	ProcFsstat:      1,
	ProcFsinfo:      1,
	ProcPathconf:    1,
	ProcCommit:      2,
}

// maxFailure is the most octets of results of Fail.
const maxFailure = 4 + 4*4

// Fail returns the reply to a call of version 3 that fails with a status, without the
// attributes that the results may have. It is for programs that do not pass a call on to
// the server of its file. NULL has no status, and no procedure beyond [ProcCommit] exists:
// for those the error says that the procedure is not available.
func Fail(r *oncrpc.Request, stat Stat) ([]byte, error) {
	if r.Proc == uint32(ProcNull) || int64(r.Proc) >= int64(len(failures)) {
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}
	}
	e := r.Accept(maxFailure)
	e.Uint32(uint32(stat))
	for range failures[r.Proc] {
		e.Uint32(0)
	}
	return e.Finish()
}
