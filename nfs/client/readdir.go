// This file lists directories.

package client

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-rdma/weft/nfs"
)

// ReadDir lists a directory, sorted by name and without "." and "..". It uses READDIRPLUS,
// or READDIR and LOOKUP if the server does not support that.
//
// The server may refuse to look up an entry, because another file system is mounted there
// or the directory may not be searched. Then the Info has only a name, and the mode
// [io/fs.ModeIrregular].
//
// If the server returns an invalid name, one that is empty or contains a slash, the error
// is ErrServer.
func (f *FS) ReadDir(ctx context.Context, name string) ([]*Info, error) {
	w, err := f.walk(ctx, name, true)
	if err != nil {
		return nil, err
	}
	if !w.here().IsDir() {
		return nil, failed(nfs.ProcReaddir, name, nfs.ErrNotDir)
	}
	l := listing{f: f, dir: w.here(), path: w.name(), size: f.listSize()}
	if err := l.read(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(l.found, func(a, b *Info) int { return strings.Compare(a.name, b.name) })
	return l.found, nil
}

// Sizes of a part of a listing, in octets.
const (
	minListing = 4 << 10
	maxListing = 128 << 10
)

func (f *FS) listSize() uint32 { return min(max(f.info.DirPref, minListing), maxListing) }

// maxRestarts is how often a listing begins again because the directory has changed.
const maxRestarts = 5

// A listing reads a directory in parts.
type listing struct {
	f       *FS
	dir     *Info
	path    string // of dir
	size    uint32 // octets of a part
	found   []*Info
	count   int  // entries so far, with "." and ".."
	bytes   int  // memory of found, in octets
	endless bool // no limits: the caller removes found after each part

	cookie uint64
	verf   nfs.Verifier
}

// read reads the whole directory. If a cookie has become invalid it begins again (RFC 1813
// §3.3.16).
func (l *listing) read(ctx context.Context) error {
	for restarts := 0; ; {
		eof, err := l.part(ctx)
		switch {
		case err == nil && eof:
			return nil
		case err == nil:
		case isStat(err, nfs.ErrBadCookie) && l.cookie != 0 && restarts < maxRestarts:
			restarts++
			l.cookie, l.verf, l.found, l.count, l.bytes = 0, nfs.Verifier{}, nil, 0, 0
		case !l.adapt(err):
			return err
		}
	}
}

// adapt changes how parts are requested, and reports whether the one that failed may
// succeed then.
func (l *listing) adapt(err error) bool {
	switch {
	case isStat(err, nfs.ErrTooSmall) && l.size < nfs.MaxListing:
		l.size = min(2*l.size, nfs.MaxListing)
	case isStat(err, nfs.ErrNotSupp) && !l.f.noReaddirplus.Load():
		l.f.noReaddirplus.Store(true)
	default:
		return false
	}
	return true
}

// part reads one part of the directory.
func (l *listing) part(ctx context.Context) (eof bool, err error) {
	if l.f.noReaddirplus.Load() {
		return l.readdir(ctx)
	}
	var res nfs.ReaddirplusRes
	var infos []*Info
	args := nfs.ReaddirplusArgs{Dir: l.dir.FH, Cookie: l.cookie, Verf: l.verf, DirCount: l.size, MaxCount: l.size}
	err = l.f.do(ctx, nfs.ProcReaddirplus, &args, &res, &res.Stat, func() {
		for i := range res.Entries {
			infos = append(infos, newInfo(res.Entries[i].Name, res.Entries[i].Object.FH, &res.Entries[i].Attr.Attr))
		}
	})
	if err != nil {
		return false, failed(nfs.ProcReaddirplus, l.path, err)
	}
	return res.EOF, l.add(ctx, nfs.ProcReaddirplus, &res.Listing, infos)
}

func (l *listing) readdir(ctx context.Context) (eof bool, err error) {
	var res nfs.ReaddirRes
	args := nfs.ReaddirArgs{Dir: l.dir.FH, Cookie: l.cookie, Verf: l.verf, Count: l.size}
	if err := l.f.do(ctx, nfs.ProcReaddir, &args, &res, &res.Stat, nil); err != nil {
		return false, failed(nfs.ProcReaddir, l.path, err)
	}
	return res.EOF, l.add(ctx, nfs.ProcReaddir, &res.Listing, make([]*Info, len(res.Entries)))
}

// add adds the entries of a part to found. Infos are the files of the entries.
func (l *listing) add(ctx context.Context, proc nfs.Proc, part *nfs.Listing, infos []*Info) error {
	if len(part.Entries) == 0 {
		if !part.EOF {
			return failed(proc, l.path, fmt.Errorf("%w: no entries, before the end of the directory", ErrServer))
		}
		return nil
	}
	if l.count += len(part.Entries); l.count > l.f.cfg.Entries && !l.endless {
		return failed(proc, l.path, fmt.Errorf("more than %d entries; Config.Entries allows no more", l.f.cfg.Entries))
	}
	next := part.Entries[len(part.Entries)-1].Cookie
	if next == l.cookie && !part.EOF {
		return failed(proc, l.path, fmt.Errorf("%w: the cookie does not advance", ErrServer))
	}
	l.verf, l.cookie = part.Verf, next
	for i := range part.Entries {
		n := &part.Entries[i]
		if n.Name == "." || n.Name == ".." {
			continue
		}
		if n.Name == "" || strings.ContainsAny(n.Name, "/\x00") {
			return failed(proc, l.path, fmt.Errorf("%w: a file cannot be named %q", ErrServer, n.Name))
		}
		info, err := l.info(ctx, n, infos[i])
		if isStat(err, nfs.ErrNoEnt) || isStat(err, nfs.ErrStale) {
			continue // removed meanwhile
		}
		if isStat(err, nfs.ErrAcces) || isStat(err, nfs.ErrPerm) {
			info, err = newInfo(n.Name, nil, &nfs.Attributes{FileID: n.FileID}), nil
		}
		if err != nil {
			return err
		}
		if l.bytes += entryOctets + len(n.Name); l.bytes/averageEntry > l.f.cfg.Entries && !l.endless {
			return failed(proc, l.path, fmt.Errorf("more than %d MiB of entries; Config.Entries allows no more", l.f.cfg.Entries*averageEntry>>20))
		}
		l.found = append(l.found, info)
	}
	return nil
}

// The memory of an entry in octets, without its name, and the limit of the average with its
// name. A server could return names that are much longer than those of files.
const (
	entryOctets  = 256
	averageEntry = 512
)

// info returns an entry's handle and attributes. It asks for those that are missing.
func (l *listing) info(ctx context.Context, n *nfs.Entry, info *Info) (*Info, error) {
	fullPath := strings.TrimSuffix(l.path, "/") + "/" + n.Name
	if !n.Object.Follows {
		return l.f.lookup(ctx, l.dir, n.Name, fullPath)
	}
	return l.f.withAttr(ctx, info, n.Attr.Follows, fullPath)
}
