package client

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

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

// list lists a directory; a cookie is an index of the sorted names.
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
