package client

import "github.com/weft-rdma/weft/nfs"

// lookupArgs and others give procedures with the same arguments different types.
type (
	lookupArgs   struct{ nfs.DirOpArgs }
	removeArgs   struct{ nfs.DirOpArgs }
	rmdirArgs    struct{ nfs.DirOpArgs }
	readlinkArgs struct{ nfs.ReadlinkArgs }
	fsstatArgs   struct{ nfs.FsstatArgs }
	fsinfoArgs   struct{ nfs.FsinfoArgs }
	pathconfArgs struct{ nfs.PathconfArgs }
)

func (s *fakeServer) messages(p nfs.Proc) (args, res message) {
	switch p {
	case nfs.ProcGetattr:
		return new(nfs.GetattrArgs), new(nfs.GetattrRes)
	case nfs.ProcSetattr:
		return new(nfs.SetattrArgs), new(nfs.WccRes)
	case nfs.ProcLookup:
		return new(lookupArgs), new(nfs.LookupRes)
	case nfs.ProcAccess:
		return new(nfs.AccessArgs), new(nfs.AccessRes)
	case nfs.ProcReadlink:
		return new(readlinkArgs), new(nfs.ReadlinkRes)
	case nfs.ProcRead:
		return new(nfs.ReadArgs), new(nfs.ReadRes)
	case nfs.ProcWrite:
		return new(nfs.WriteArgs), new(nfs.WriteRes)
	case nfs.ProcCreate:
		return new(nfs.CreateArgs), new(nfs.CreateRes)
	case nfs.ProcMkdir:
		return new(nfs.MkdirArgs), new(nfs.CreateRes)
	case nfs.ProcSymlink:
		return new(nfs.SymlinkArgs), new(nfs.CreateRes)
	case nfs.ProcMknod:
		return new(nfs.MknodArgs), new(nfs.CreateRes)
	case nfs.ProcRemove:
		return new(removeArgs), new(nfs.WccRes)
	case nfs.ProcRmdir:
		return new(rmdirArgs), new(nfs.WccRes)
	case nfs.ProcRename:
		return new(nfs.RenameArgs), new(nfs.RenameRes)
	case nfs.ProcLink:
		return new(nfs.LinkArgs), new(nfs.LinkRes)
	case nfs.ProcReaddir:
		return new(nfs.ReaddirArgs), new(nfs.ReaddirRes)
	case nfs.ProcReaddirplus:
		return new(nfs.ReaddirplusArgs), new(nfs.ReaddirplusRes)
	case nfs.ProcFsstat:
		return new(fsstatArgs), new(nfs.FsstatRes)
	case nfs.ProcFsinfo:
		return new(fsinfoArgs), new(nfs.FsinfoRes)
	case nfs.ProcPathconf:
		return new(pathconfArgs), new(nfs.PathconfRes)
	case nfs.ProcCommit:
		return new(nfs.CommitArgs), new(nfs.CommitRes)
	}
	return nil, nil
}

func setStat(res message, stat nfs.Stat) {
	switch r := res.(type) {
	case *nfs.GetattrRes:
		r.Stat = stat
	case *nfs.WccRes:
		r.Stat = stat
	case *nfs.LookupRes:
		r.Stat = stat
	case *nfs.AccessRes:
		r.Stat = stat
	case *nfs.ReadlinkRes:
		r.Stat = stat
	case *nfs.ReadRes:
		r.Stat = stat
	case *nfs.WriteRes:
		r.Stat = stat
	case *nfs.CreateRes:
		r.Stat = stat
	case *nfs.RenameRes:
		r.Stat = stat
	case *nfs.LinkRes:
		r.Stat = stat
	case *nfs.ReaddirRes:
		r.Stat = stat
	case *nfs.ReaddirplusRes:
		r.Stat = stat
	case *nfs.FsstatRes:
		r.Stat = stat
	case *nfs.FsinfoRes:
		r.Stat = stat
	case *nfs.PathconfRes:
		r.Stat = stat
	case *nfs.CommitRes:
		r.Stat = stat
	}
}
