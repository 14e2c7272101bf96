package client

import (
	"context"
	"encoding/binary"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// A fakeServer is a server of NFS and MOUNT with files in memory, which can be made to
// misbehave.
type fakeServer struct {
	mu    sync.Mutex
	files map[uint64]*fakeFile // by file id, which is the handle
	last  uint64
	verf  nfs.Verifier
	calls map[nfs.Proc]int
	umnts int

	// How to misbehave. Before is called before each call of NFS; a status other than OK is
	// the reply.
	before    func(proc nfs.Proc, n int) nfs.Stat
	info      nfs.FsinfoRes
	exports   nfs.ExportList
	flavors   []oncrpc.Flavor
	noMount   bool                          // MOUNT is elsewhere
	readMost  int                           // octets of one READ; 0: what is asked
	writeMost int                           // octets of one WRITE; 0: what comes
	bare      bool                          // no attributes and handles but by GETATTR and LOOKUP
	noEOF     bool                          // READ shows the end only by returning no octets
	dropped   bool                          // unstable data are lost at each COMMIT
	names     func([]string) []string       // what listings say
	tamper    func(nfs.Proc, []byte) []byte // of results
	stable    map[nfs.StableHow]int         // WRITEs by what they ask
}

type fakeFile struct {
	nfs.Attributes
	data     []byte
	unstable map[int64][]byte // since the last COMMIT
	target   string
	entries  map[string]uint64
	verf     nfs.Verifier // of exclusive creation
}

func newFakeServer() *fakeServer {
	s := &fakeServer{
		files:   make(map[uint64]*fakeFile),
		calls:   make(map[nfs.Proc]int),
		stable:  make(map[nfs.StableHow]int),
		verf:    nfs.Verifier{1},
		info:    nfs.FsinfoRes{ReadMax: 4096, ReadPref: 4096, WriteMax: 4096, WritePref: 4096, DirPref: 4096, MaxFileSize: 1 << 40},
		exports: nfs.ExportList{{Path: "/"}},
	}
	s.add(nfs.TypeDir)
	return s
}

// add makes a file and returns its id.
func (s *fakeServer) add(t nfs.FileType) uint64 {
	s.last++
	s.files[s.last] = &fakeFile{
		Attributes: nfs.Attributes{Type: t, Mode: 0o644, NLink: 1, FileID: s.last, Mtime: nfs.Time{Sec: 1e9}},
		entries:    make(map[string]uint64),
		unstable:   make(map[int64][]byte),
	}
	return s.last
}

// put makes a file with content, or a symbolic link, and the directories above it.
func (s *fakeServer) put(t nfs.FileType, name string, content string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := s.files[1]
	elems := splitPath(path.Dir(name))
	for _, e := range elems {
		if dir.entries[e] == 0 {
			dir.entries[e] = s.add(nfs.TypeDir)
		}
		dir = s.files[dir.entries[e]]
	}
	id := s.add(t)
	f := s.files[id]
	if t == nfs.TypeLnk {
		f.target = content
	} else {
		f.data = []byte(content)
		f.Size = uint64(len(content))
	}
	dir.entries[path.Base(name)] = id
	return id
}

func splitPath(name string) []string {
	return slices.DeleteFunc(strings.Split(name, "/"), func(e string) bool { return e == "" || e == "." })
}

// content returns a file's content, and whether it is on stable storage.
func (s *fakeServer) content(name string) (data []byte, stable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[1]
	for _, e := range splitPath(name) {
		f = s.files[f.entries[e]]
		if f == nil {
			return nil, false
		}
	}
	return slices.Clone(f.data), len(f.unstable) == 0
}

func (s *fakeServer) called(p nfs.Proc) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[p]
}

// unmounted counts the calls of UMNT.
func (s *fakeServer) unmounted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.umnts
}

// forget restarts the server, which loses what was not committed.
func (s *fakeServer) forget() {
	s.verf[7]++
	for _, f := range s.files {
		for off, p := range f.unstable {
			clear(f.data[off : off+int64(len(p))])
		}
		clear(f.unstable)
	}
}

// mux returns the server as a handler.
func (s *fakeServer) mux() oncrpc.Mux {
	mux := oncrpc.Mux{{Prog: nfs.Program, Low: nfs.V3, High: nfs.V3, Handler: oncrpc.HandlerFunc(s.serve)}}
	if !s.noMount {
		mux = append(mux, s.mountProgram())
	}
	return mux
}

func (s *fakeServer) mountProgram() oncrpc.Program {
	return oncrpc.Program{Prog: nfs.MountProgram, Low: 1, High: nfs.MountV3, Handler: oncrpc.HandlerFunc(s.serveMount)}
}

func (s *fakeServer) serveMount(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := oncrpc.NewDecoder(r.Args, "MOUNT arguments")
	var where nfs.MountPath
	var res message = new(nfs.MountList)
	switch nfs.MountProc(r.Proc) {
	case nfs.MountMnt:
		where.Decode(&d)
		mnt := &nfs.MountRes{Stat: nfs.MountErrNoEnt, FH: handle(1), Flavors: s.flavors}
		for _, e := range s.exports {
			if e.Path == where.Path && e.Groups == nil {
				mnt.Stat = nfs.MountOK
			} else if e.Path == where.Path {
				mnt.Stat = nfs.MountErrAcces
			}
		}
		res = mnt
	case nfs.MountUmnt:
		s.umnts++
		e := r.Accept(0)
		return e.Finish()
	case nfs.MountExport:
		res = &s.exports
	default:
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	e := r.Accept(1024)
	res.Encode(&e)
	return e.Finish()
}

func handle(id uint64) nfs.FH { return binary.BigEndian.AppendUint64(nil, id) }

func (s *fakeServer) file(fh nfs.FH) *fakeFile {
	if len(fh) != 8 {
		return nil
	}
	return s.files[binary.BigEndian.Uint64(fh)]
}

// serve executes a call of NFS.
func (s *fakeServer) serve(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	proc := nfs.Proc(r.Proc)
	s.calls[proc]++
	args, res := s.messages(proc)
	if args == nil {
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}
	}
	d := oncrpc.NewDecoder(r.Args, proc.String()+" arguments")
	args.Decode(&d)
	if err := d.End(); err != nil {
		return nil, err
	}
	stat := nfs.OK
	if s.before != nil {
		stat = s.before(proc, s.calls[proc])
	}
	if stat == nfs.OK {
		stat = s.execute(args, res)
	}
	if stat != nfs.OK {
		_, res = s.messages(proc)
		setStat(res, stat)
	}
	e := r.Accept(8192)
	head := e.Pos()
	res.Encode(&e)
	b, err := e.Finish()
	if err == nil && s.tamper != nil {
		b = append(b[:head:head], s.tamper(proc, slices.Clone(b[head:]))...)
	}
	return b, err
}

func (s *fakeServer) execute(args, res message) nfs.Stat {
	switch a := args.(type) {
	case *nfs.GetattrArgs:
		f := s.file(a.Object)
		if f == nil {
			return nfs.ErrStale
		}
		res.(*nfs.GetattrRes).Attr = f.Attributes
	case *nfs.SetattrArgs:
		f := s.file(a.Object)
		if f == nil {
			return nfs.ErrStale
		}
		f.set(&a.New)
	case *lookupArgs:
		dir, stat := s.dir(a.Dir)
		if dir == nil {
			return stat
		}
		id := dir.entries[a.Name]
		if id == 0 {
			return nfs.ErrNoEnt
		}
		r := res.(*nfs.LookupRes)
		r.Object = handle(id)
		r.Attr = s.post(id)
	case *nfs.AccessArgs:
		res.(*nfs.AccessRes).Access = nfs.AccessRead | nfs.AccessExecute
	case *readlinkArgs:
		f := s.file(a.Symlink)
		if f == nil || f.Type != nfs.TypeLnk {
			return nfs.ErrInval
		}
		res.(*nfs.ReadlinkRes).Path = f.target
	case *nfs.ReadArgs:
		return s.read(a, res.(*nfs.ReadRes))
	case *nfs.WriteArgs:
		return s.write(a, res.(*nfs.WriteRes))
	case *nfs.CommitArgs:
		f := s.file(a.File)
		if f == nil {
			return nfs.ErrStale
		}
		if s.dropped {
			s.forget()
		}
		clear(f.unstable)
		res.(*nfs.CommitRes).Verf = s.verf
	case *nfs.CreateArgs:
		return s.create(a, res.(*nfs.CreateRes))
	case *nfs.MkdirArgs:
		return s.make(a.Where, nfs.TypeDir, &a.Attr, res.(*nfs.CreateRes), nil)
	case *nfs.SymlinkArgs:
		return s.make(a.Where, nfs.TypeLnk, &a.Attr, res.(*nfs.CreateRes), func(f *fakeFile) { f.target = a.Path })
	case *nfs.MknodArgs:
		return s.make(a.Where, a.Type, &a.Attr, res.(*nfs.CreateRes), func(f *fakeFile) { f.Rdev = a.Spec })
	case *removeArgs:
		return s.unlink(a.DirOpArgs, false)
	case *rmdirArgs:
		return s.unlink(a.DirOpArgs, true)
	case *nfs.RenameArgs:
		from, _ := s.dir(a.From.Dir)
		to, _ := s.dir(a.To.Dir)
		if from == nil || to == nil || from.entries[a.From.Name] == 0 {
			return nfs.ErrNoEnt
		}
		to.entries[a.To.Name] = from.entries[a.From.Name]
		delete(from.entries, a.From.Name)
	case *nfs.LinkArgs:
		f := s.file(a.File)
		dir, _ := s.dir(a.Link.Dir)
		if f == nil || dir == nil {
			return nfs.ErrStale
		}
		f.NLink++
		dir.entries[a.Link.Name] = f.FileID
	case *nfs.ReaddirArgs:
		return s.list(a.Dir, a.Cookie, a.Verf, a.Count, &res.(*nfs.ReaddirRes).Listing)
	case *nfs.ReaddirplusArgs:
		return s.list(a.Dir, a.Cookie, a.Verf, a.MaxCount, &res.(*nfs.ReaddirplusRes).Listing)
	case *fsstatArgs:
		res.(*nfs.FsstatRes).TotalBytes = 1 << 50
	case *fsinfoArgs:
		*res.(*nfs.FsinfoRes) = s.info
	case *pathconfArgs:
		res.(*nfs.PathconfRes).NameMax = 255
	}
	return nfs.OK
}
