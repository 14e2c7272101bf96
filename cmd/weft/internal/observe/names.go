// The names of programs, procedures and statuses. Peers choose the numbers, so that every
// number without a name has the same one, and the labels of metrics are bounded.

package observe

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/nlm"
	"github.com/weft-rdma/weft/oncrpc"
)

// other names what has no name.
const other = "other"

// A procedure names what a call asks for.
type procedure struct{ program, version, name string }

var programs = map[uint32]struct {
	name      string
	low, high uint32
}{
	nfs.Program:      {"nfs", nfs.V2, nfs.V4},
	nfs.MountProgram: {"mount", 1, 3},
	nlm.Program:      {"nlm", 1, 4},
	oncrpc.PmapProg:  {"portmap", 2, 4},
}

var (
	nfs2Names  = []string{"NULL", "GETATTR", "SETATTR", "ROOT", "LOOKUP", "READLINK", "READ", "WRITECACHE", "WRITE", "CREATE", "REMOVE", "RENAME", "LINK", "SYMLINK", "MKDIR", "RMDIR", "READDIR", "STATFS"}
	nfs4Names  = []string{"NULL", "COMPOUND"}
	mountNames = []string{"NULL", "MNT", "DUMP", "UMNT", "UMNTALL", "EXPORT"}
	pmapNames  = []string{"NULL", "SET", "UNSET", "GETPORT", "DUMP", "CALLIT"}
	rpcbNames  = []string{"NULL", "SET", "UNSET", "GETADDR", "DUMP", "CALLIT", "GETTIME", "UADDR2TADDR", "TADDR2UADDR", "GETVERSADDR", "INDIRECT", "GETADDRLIST", "GETSTAT"}
)

// procedureOf names the procedure of a call.
func procedureOf(prog, vers, proc uint32) procedure {
	p, known := programs[prog]
	if !known || vers < p.low || vers > p.high {
		return procedure{other, other, other}
	}
	return procedure{p.name, strconv.Itoa(int(vers)), nameOf(prog, vers, proc)}
}

func nameOf(prog, vers, proc uint32) string {
	var names []string
	switch {
	case prog == nfs.Program && vers == nfs.V3:
		if proc <= uint32(nfs.ProcCommit) {
			return nfs.Proc(proc).String()
		}
	case prog == nfs.Program && vers == nfs.V2:
		names = nfs2Names
	case prog == nfs.Program:
		names = nfs4Names
	case prog == nfs.MountProgram:
		names = mountNames
	case prog == oncrpc.PmapProg && vers == 2:
		names = pmapNames
	case prog == oncrpc.PmapProg:
		names = rpcbNames
	case proc == 0:
		return "NULL"
	}
	if proc < uint32(len(names)) {
		return names[proc]
	}
	return other
}

// hasStatus reports whether the results of a call begin with a status.
func hasStatus(call *oncrpc.Call) bool {
	switch call.Prog {
	case nfs.Program:
		return call.Proc != 0
	case nfs.MountProgram:
		return call.Proc == 1
	}
	return false
}

// statusOf returns the status of a reply, or of the error that took its place; "OK" is
// success.
func statusOf(call *oncrpc.Call, reply []byte, err error) string {
	if err != nil {
		return errorStatus(err)
	}
	var h oncrpc.Reply
	at, err := h.Parse(reply)
	if err == nil {
		err = h.Err()
	}
	switch {
	case err != nil:
		return errorStatus(err)
	case !hasStatus(call) || len(reply) < at+4:
		return "OK"
	}
	return nfsStatus(call, nfs.Stat(binary.BigEndian.Uint32(reply[at:])))
}

// maxStatus is the largest status of NFS: those of version 4 end at 10096 (RFC 8276).
const maxStatus = 10096

func nfsStatus(call *oncrpc.Call, s nfs.Stat) string {
	switch {
	case s == nfs.OK:
		return "OK"
	case s > maxStatus:
		return other
	case call.Prog == nfs.Program && call.Vers == nfs.V4 && s > 10000:
		return "NFS4ERR_" + strconv.Itoa(int(s))
	}
	return named(s.String())
}

// named returns a name of the specification, and other for a number without one, which the
// packages write in words.
func named(s string) string {
	if strings.Contains(s, " ") {
		return other
	}
	return s
}

// errorStatus names an answer of RPC itself.
func errorStatus(err error) string {
	var accept *oncrpc.AcceptError
	var reject *oncrpc.RejectError
	switch {
	case errors.Is(err, oncrpc.ErrNoReply):
		return "NO_REPLY"
	case errors.As(err, &accept) && accept.Stat <= oncrpc.SystemErr:
		return accept.Stat.String()
	case errors.As(err, &reject) && reject.Stat == oncrpc.AuthError:
		return named(reject.Auth.String())
	case errors.As(err, &reject):
		return named(reject.Stat.String())
	}
	return oncrpc.SystemErr.String()
}
