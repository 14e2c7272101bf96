package client

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// A fakeServer is an NFS server whose files are in memory, and whose misdeeds are
// to order. It speaks NFS and MOUNT.
type fakeServer struct {
	mu    sync.Mutex
	files map[uint64]*fakeFile // by file id, which is the handle
	last  uint64
	verf  nfs.Verifier
	calls map[nfs.Proc]int
	umnts int

	// What is to order. Before is asked before each call of NFS, and answers it by
	// a status that is not OK.
	before    func(proc nfs.Proc, n int) nfs.Stat
	info      nfs.FsinfoRes
	exports   nfs.ExportList
	flavors   []oncrpc.Flavor
	noMount   bool                          // MOUNT is elsewhere
	readMost  int                           // octets of one READ; 0: what is asked
	writeMost int                           // octets of one WRITE; 0: what comes
	bare      bool                          // no attributes and handles but by GETATTR and LOOKUP
	noEOF     bool                          // READ does not tell the end but by no octets
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

// put makes a file with contents, or a symbolic link, and the directories above.
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

// content is what a file has, and whether it is on stable storage.
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

// unmounted is how often UMNT was called.
func (s *fakeServer) unmounted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.umnts
}

// forget is the server starting anew, without what was not committed.
func (s *fakeServer) forget() {
	s.verf[7]++
	for _, f := range s.files {
		for off, p := range f.unstable {
			clear(f.data[off : off+int64(len(p))])
		}
		clear(f.unstable)
	}
}

// mux is the server as a handler.
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

// lookupArgs and the like tell apart procedures whose arguments are alike.
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

func (s *fakeServer) post(id uint64) nfs.PostOpAttr {
	if s.bare {
		return nfs.PostOpAttr{}
	}
	return nfs.PostOpAttr{Follows: true, Attr: s.files[id].Attributes}
}

func (s *fakeServer) dir(fh nfs.FH) (*fakeFile, nfs.Stat) {
	f := s.file(fh)
	switch {
	case f == nil:
		return nil, nfs.ErrStale
	case f.Type != nfs.TypeDir:
		return nil, nfs.ErrNotDir
	}
	return f, nfs.OK
}

func (f *fakeFile) set(a *nfs.SetAttributes) {
	if a.Mode.Set {
		f.Mode = a.Mode.Value
	}
	if a.Size.Set {
		f.resize(int(a.Size.Value))
	}
	if a.Mtime.How == nfs.SetToClientTime {
		f.Mtime = a.Mtime.Time
	}
}

func (f *fakeFile) resize(n int) {
	if n > len(f.data) {
		f.data = append(f.data, make([]byte, n-len(f.data))...)
	}
	f.data = f.data[:n]
	f.Size = uint64(n)
}

func (s *fakeServer) read(a *nfs.ReadArgs, r *nfs.ReadRes) nfs.Stat {
	f := s.file(a.File)
	if f == nil {
		return nfs.ErrStale
	}
	n := int(a.Count)
	if s.readMost > 0 {
		n = min(n, s.readMost)
	}
	from := min(int(a.Offset), len(f.data))
	to := min(from+n, len(f.data))
	r.Data = slices.Clone(f.data[from:to])
	r.Count = uint32(len(r.Data))
	r.EOF = to == len(f.data) && (!s.noEOF || r.Count == 0)
	return nfs.OK
}

func (s *fakeServer) write(a *nfs.WriteArgs, r *nfs.WriteRes) nfs.Stat {
	f := s.file(a.File)
	if f == nil {
		return nfs.ErrStale
	}
	s.stable[a.Stable]++
	data := a.Data
	if s.writeMost > 0 {
		data = data[:min(len(data), s.writeMost)]
	}
	f.resize(max(len(f.data), int(a.Offset)+len(data)))
	copy(f.data[a.Offset:], data)
	if a.Stable == nfs.Unstable {
		f.unstable[int64(a.Offset)] = slices.Clone(data)
	}
	r.Count, r.Committed, r.Verf = uint32(len(data)), a.Stable, s.verf
	return nfs.OK
}

func (s *fakeServer) create(a *nfs.CreateArgs, r *nfs.CreateRes) nfs.Stat {
	dir, stat := s.dir(a.Where.Dir)
	if dir == nil {
		return stat
	}
	if id := dir.entries[a.Where.Name]; id != 0 {
		f := s.files[id]
		if a.Mode == nfs.Guarded || a.Mode == nfs.Exclusive && f.verf != a.Verf {
			return nfs.ErrExist
		}
		f.set(&a.Attr)
		r.Object, r.Attr = nfs.PostOpFH{Follows: !s.bare, FH: handle(id)}, s.post(id)
		return nfs.OK
	}
	return s.make(a.Where, nfs.TypeReg, &a.Attr, r, func(f *fakeFile) { f.verf = a.Verf })
}

func (s *fakeServer) make(where nfs.DirOpArgs, t nfs.FileType, attr *nfs.SetAttributes, r *nfs.CreateRes, rest func(*fakeFile)) nfs.Stat {
	dir, stat := s.dir(where.Dir)
	if dir == nil {
		return stat
	}
	if dir.entries[where.Name] != 0 {
		return nfs.ErrExist
	}
	id := s.add(t)
	s.files[id].set(attr)
	if rest != nil {
		rest(s.files[id])
	}
	dir.entries[where.Name] = id
	r.Object, r.Attr = nfs.PostOpFH{Follows: !s.bare, FH: handle(id)}, s.post(id)
	return nfs.OK
}

func (s *fakeServer) unlink(where nfs.DirOpArgs, isDir bool) nfs.Stat {
	dir, stat := s.dir(where.Dir)
	if dir == nil {
		return stat
	}
	f := s.files[dir.entries[where.Name]]
	switch {
	case f == nil:
		return nfs.ErrNoEnt
	case isDir && f.Type != nfs.TypeDir:
		return nfs.ErrNotDir
	case !isDir && f.Type == nfs.TypeDir:
		return nfs.ErrIsDir
	case len(f.entries) > 0:
		return nfs.ErrNotEmpty
	}
	delete(dir.entries, where.Name)
	return nfs.OK
}

// list lists a directory; cookies count entries of the sorted names.
func (s *fakeServer) list(fh nfs.FH, cookie uint64, verf nfs.Verifier, count uint32, l *nfs.Listing) nfs.Stat {
	dir, stat := s.dir(fh)
	if dir == nil {
		return stat
	}
	if cookie != 0 && verf != s.verf {
		return nfs.ErrBadCookie
	}
	names := append([]string{".", ".."}, slices.Sorted(maps.Keys(dir.entries))...)
	if s.names != nil {
		names = s.names(names)
	}
	l.Verf = s.verf
	w := nfs.NewReaddirplus(oncrpc.NewEncoder(nil), &l.DirAttr, l.Verf, 1<<30, count)
	i := int(cookie)
	for ; i < len(names); i++ {
		id := cmp.Or(dir.entries[names[i]], 1)
		n := nfs.Entry{FileID: id, Name: names[i], Cookie: uint64(i + 1), Attr: s.post(id), Object: nfs.PostOpFH{Follows: !s.bare, FH: handle(id)}}
		if !w.Add(&n) {
			break
		}
		l.Entries = append(l.Entries, n)
	}
	if !w.Fits() {
		return nfs.ErrTooSmall
	}
	l.EOF = i == len(names)
	return nfs.OK
}
