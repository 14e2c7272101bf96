// This file names the programs, versions, ports and procedures of NFS.

package nfs

import "fmt"

// The program NFS and its versions (RFC 1813 §1.2, RFC 7530 §18.1).
const (
	Program = 100003
	V2      = 2
	V3      = 3
	V4      = 4
)

// Ports of NFS: over TCP (RFC 1813 §2.1), and over RDMA (RFC 8267 §6.3).
const (
	Port     = 2049
	PortRDMA = 20049
)

// A Proc is a procedure of NFS version 3 (RFC 1813 §3.3).
type Proc uint32

// The procedures, with the structures of their arguments and results.
const (
	ProcNull        Proc = 0  // nothing; nothing
	ProcGetattr     Proc = 1  // GetattrArgs; GetattrRes
	ProcSetattr     Proc = 2  // SetattrArgs; WccRes
	ProcLookup      Proc = 3  // DirOpArgs; LookupRes
	ProcAccess      Proc = 4  // AccessArgs; AccessRes
	ProcReadlink    Proc = 5  // ReadlinkArgs; ReadlinkRes
	ProcRead        Proc = 6  // ReadArgs; ReadRes
	ProcWrite       Proc = 7  // WriteArgs; WriteRes
	ProcCreate      Proc = 8  // CreateArgs; CreateRes
	ProcMkdir       Proc = 9  // MkdirArgs; CreateRes
	ProcSymlink     Proc = 10 // SymlinkArgs; CreateRes
	ProcMknod       Proc = 11 // MknodArgs; CreateRes
	ProcRemove      Proc = 12 // DirOpArgs; WccRes
	ProcRmdir       Proc = 13 // DirOpArgs; WccRes
	ProcRename      Proc = 14 // RenameArgs; RenameRes
	ProcLink        Proc = 15 // LinkArgs; LinkRes
	ProcReaddir     Proc = 16 // ReaddirArgs; ReaddirRes
	ProcReaddirplus Proc = 17 // ReaddirplusArgs; ReaddirplusRes
	ProcFsstat      Proc = 18 // FsstatArgs; FsstatRes
	ProcFsinfo      Proc = 19 // FsinfoArgs; FsinfoRes
	ProcPathconf    Proc = 20 // PathconfArgs; PathconfRes
	ProcCommit      Proc = 21 // CommitArgs; CommitRes
)

var procNames = [...]string{
	"NULL", "GETATTR", "SETATTR", "LOOKUP", "ACCESS", "READLINK", "READ", "WRITE",
	"CREATE", "MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK",
	"READDIR", "READDIRPLUS", "FSSTAT", "FSINFO", "PATHCONF", "COMMIT",
}

func (p Proc) String() string {
	if int64(p) < int64(len(procNames)) {
		return procNames[p]
	}
	return fmt.Sprintf("procedure %d", uint32(p))
}

// results are the structures of the procedures' results.
var results = [...]structure{
	ProcGetattr:     new(GetattrRes),
	ProcSetattr:     new(WccRes),
	ProcLookup:      new(LookupRes),
	ProcAccess:      new(AccessRes),
	ProcReadlink:    new(ReadlinkRes),
	ProcRead:        new(ReadRes),
	ProcWrite:       new(WriteRes),
	ProcCreate:      new(CreateRes),
	ProcMkdir:       new(CreateRes),
	ProcSymlink:     new(CreateRes),
	ProcMknod:       new(CreateRes),
	ProcRemove:      new(WccRes),
	ProcRmdir:       new(WccRes),
	ProcRename:      new(RenameRes),
	ProcLink:        new(LinkRes),
	ProcReaddir:     new(ReaddirRes),
	ProcReaddirplus: new(ReaddirplusRes),
	ProcFsstat:      new(FsstatRes),
	ProcFsinfo:      new(FsinfoRes),
	ProcPathconf:    new(PathconfRes),
	ProcCommit:      new(CommitRes),
}

// maxResults has the most octets of each.
var maxResults = func() (octets [len(results)]int) {
	for p, s := range results {
		if s != nil {
			octets[p] = bound(s)
		}
	}
	return octets
}()

// MaxResults returns the most octets that the results of p can have, without the
// path of READLINK, the data of READ with their roundup, and the entries of READDIR
// and READDIRPLUS. A server asks [oncrpc.Request.Accept] for as many.
func (p Proc) MaxResults() int {
	if int64(p) < int64(len(maxResults)) {
		return maxResults[p]
	}
	return 0
}

// WalkArgs has w go through the arguments of p. It reports false for a procedure
// that there is not.
func (p Proc) WalkArgs(w Walker) bool {
	c := walkerBy(w)
	switch p {
	case ProcNull:
	case ProcGetattr, ProcReadlink, ProcFsstat, ProcFsinfo, ProcPathconf:
		new(GetattrArgs).fields(c)
	case ProcSetattr:
		new(SetattrArgs).fields(c)
	case ProcLookup, ProcRemove, ProcRmdir:
		new(DirOpArgs).fields(c)
	case ProcAccess:
		new(AccessArgs).fields(c)
	case ProcRead:
		new(ReadArgs).fields(c)
	case ProcWrite:
		new(WriteArgs).fields(c)
	case ProcCreate:
		new(CreateArgs).fields(c)
	case ProcMkdir:
		new(MkdirArgs).fields(c)
	case ProcSymlink:
		new(SymlinkArgs).fields(c)
	case ProcMknod:
		new(MknodArgs).fields(c)
	case ProcRename:
		new(RenameArgs).fields(c)
	case ProcLink:
		new(LinkArgs).fields(c)
	case ProcReaddir:
		new(ReaddirArgs).fields(c)
	case ProcReaddirplus:
		new(ReaddirplusArgs).fields(c)
	case ProcCommit:
		new(CommitArgs).fields(c)
	default:
		return false
	}
	return true
}
