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

// resultsMax has for each procedure the most octets of its results without
// opaque data of variable length: the path of READLINK, the data of READ, and the
// entries of listings.
var resultsMax = [...]int{
	ProcNull:        0,
	ProcGetattr:     4 + fattrLen,
	ProcSetattr:     4 + wccLen,
	ProcLookup:      4 + 4 + MaxFH + 2*postOpLen,
	ProcAccess:      4 + postOpLen + 4,
	ProcReadlink:    4 + postOpLen + 4,
	ProcRead:        4 + postOpLen + 12,
	ProcWrite:       4 + wccLen + 16,
	ProcCreate:      createLen,
	ProcMkdir:       createLen,
	ProcSymlink:     createLen,
	ProcMknod:       createLen,
	ProcRemove:      4 + wccLen,
	ProcRmdir:       4 + wccLen,
	ProcRename:      4 + 2*wccLen,
	ProcLink:        4 + postOpLen + wccLen,
	ProcReaddir:     4 + postOpLen + 8 + 8,
	ProcReaddirplus: 4 + postOpLen + 8 + 8,
	ProcFsstat:      4 + postOpLen + 6*8 + 4,
	ProcFsinfo:      4 + postOpLen + 7*4 + 8 + 8 + 4,
	ProcPathconf:    4 + postOpLen + 6*4,
	ProcCommit:      4 + wccLen + 8,
}

const (
	fattrLen  = 84
	postOpLen = 4 + fattrLen
	preOpLen  = 4 + 24
	wccLen    = preOpLen + postOpLen
	createLen = 4 + 4 + 4 + MaxFH + postOpLen + wccLen
)

// MaxResults is the most octets that the results of p can have, without what the
// path of READLINK, the data of READ with their roundup, and the entries of READDIR
// and READDIRPLUS take. It is what a server gives [oncrpc.Request.Accept].
func (p Proc) MaxResults() int {
	if int64(p) < int64(len(resultsMax)) {
		return resultsMax[p]
	}
	return 0
}
