package files

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weft-rdma/weft/internal/rpctest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/client"
	"github.com/weft-rdma/weft/oncrpc"
)

// removeAll removes, and returns the names that were reported.
func removeAll(t *testing.T, r *Remover, from *Remote, names ...string) (removed []string, failed []error) {
	t.Helper()
	r.Removed = func(name string) { removed = append(removed, strings.TrimPrefix(name, from.Name)) }
	r.Failed = func(err error) { failed = append(failed, err) }
	for _, name := range names {
		if err := r.Remove(t.Context(), from, name); err != nil {
			t.Fatal(err)
		}
	}
	if r.Failures() != len(failed) {
		t.Errorf("%d failures counted, %d reported", r.Failures(), len(failed))
	}
	return removed, failed
}

func eachServer(t *testing.T, files map[string]string, test func(t *testing.T, dir string, r *Remote)) {
	for name, over := range rpctest.Transports {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, files)
			test(t, dir, serve(t, dir, everything, over, nil))
		})
	}
}

func TestFoldersAreRemovedWithAllThatIsInThem(t *testing.T) {
	files := map[string]string{"d/a": "1", "d/e/f/g": "2", "d/e/empty/": "", "d/link": "-> ../keep", "d/up": "-> ..", "keep/x": "3", "file": "4"}
	for i := range 200 { // more than one part of a listing
		files[fmt.Sprintf("d/many/%s%d", strings.Repeat("n", 50), i)] = ""
	}
	eachServer(t, files, func(t *testing.T, dir string, r *Remote) {
		removed, failed := removeAll(t, &Remover{Recursive: true}, r, "/d")
		if failed != nil || len(removed) != len(files)-2+4 {
			t.Errorf("removed %d, %v", len(removed), failed)
		}
		if got := listTree(t, dir); len(got) != 2 || got["keep/x"] != "3" || got["file"] != "4" {
			t.Errorf("left %q", got)
		}
		if removed[len(removed)-1] != "/d" {
			t.Errorf("%q was removed last", removed[len(removed)-1])
		}
	})
}

func TestWhatIsNotToBeRemovedStays(t *testing.T) {
	files := map[string]string{"d/a": "1", "link": "-> d", "file": "2"}
	eachServer(t, files, func(t *testing.T, dir string, r *Remote) {
		for _, tt := range []struct {
			remover *Remover
			name    string
			says    string // "" if it is no failure
		}{
			{&Remover{}, "/d", "-r removes it"},
			{&Remover{Recursive: true, Force: true}, "/", "the root of an export"},
			{&Remover{Recursive: true}, "/d/..", "the root of an export"},
			{&Remover{Recursive: true}, "//", "the root of an export"},
			{&Remover{}, "/none", "no such file"},
			{&Remover{Force: true}, "/none", ""},
			{&Remover{Force: true}, "/none/none", ""},
			{&Remover{Force: true}, "/file/none", ""},
			{&Remover{Recursive: true}, "/link/", "not a directory"},
			{&Remover{Recursive: true, Force: true}, "/file/", "not a directory"},
		} {
			removed, failed := removeAll(t, tt.remover, r, tt.name)
			if removed != nil || len(failed) > 1 || tt.says == "" && failed != nil || tt.says != "" && (failed == nil || !strings.Contains(failed[0].Error(), tt.says)) {
				t.Errorf("%s: removed %q, %v, want an error with %q", tt.name, removed, failed, tt.says)
			}
		}
		if got := listTree(t, dir); len(got) != 3 {
			t.Errorf("left %q", got)
		}
		// The link is one, and what it leads to is not removed.
		if removed, failed := removeAll(t, &Remover{Recursive: true}, r, "/link"); failed != nil || len(removed) != 1 {
			t.Errorf("%q, %v", removed, failed)
		}
		if _, err := os.Stat(filepath.Join(dir, "d/a")); err != nil {
			t.Error(err)
		}
	})
}

// A maze is a server of directories that are as the test has them.
type maze struct {
	list   func(fh nfs.FH, cookie uint64) []nfs.Entry // what a directory lists from a cookie on; none: its end
	remove func(name string, directory bool) nfs.Stat
	calls  int

	mu sync.Mutex // of all of it while a call is served
}

// served waits for calls under way, after which the test may look.
func (m *maze) served() {
	m.mu.Lock()
	defer m.mu.Unlock()
}

func mazeHandle(n uint64) nfs.FH { return binary.BigEndian.AppendUint64(nil, n) }

func mazeEntry(name string, n, cookie uint64, kind nfs.FileType) nfs.Entry {
	return nfs.Entry{
		Name: name, FileID: n, Cookie: cookie,
		Attr:   nfs.PostOpAttr{Follows: true, Attr: nfs.Attributes{Type: kind, Mode: 0o755, NLink: 2, FileID: n}},
		Object: nfs.PostOpFH{Follows: true, FH: mazeHandle(n)},
	}
}

func (m *maze) ServeRPC(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	d := oncrpc.NewDecoder(r.Args, "arguments")
	e := r.Accept(1 << 17)
	dir := nfs.Attributes{Type: nfs.TypeDir, Mode: 0o755, NLink: 2}
	switch nfs.Proc(r.Proc) {
	case nfs.ProcGetattr:
		(&nfs.GetattrRes{Attr: dir}).Encode(&e)
	case nfs.ProcFsinfo:
		(&nfs.FsinfoRes{ReadMax: 4096, WriteMax: 4096, DirPref: 4096}).Encode(&e)
	case nfs.ProcLookup:
		(&nfs.LookupRes{Object: mazeHandle(1), Attr: nfs.PostOpAttr{Follows: true, Attr: dir}}).Encode(&e)
	case nfs.ProcReaddirplus:
		var args nfs.ReaddirplusArgs
		args.Decode(&d)
		res := new(nfs.ReaddirplusRes)
		res.Entries = m.list(args.Dir, args.Cookie)
		res.EOF = len(res.Entries) == 0
		res.Encode(&e)
	case nfs.ProcRemove, nfs.ProcRmdir:
		var args nfs.DirOpArgs
		args.Decode(&d)
		(&nfs.WccRes{Stat: m.remove(args.Name, nfs.Proc(r.Proc) == nfs.ProcRmdir)}).Encode(&e)
	default:
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}
	}
	return e.Finish()
}

func (m *maze) mount(t *testing.T) *Remote {
	t.Helper()
	mux := oncrpc.Mux{{Prog: nfs.Program, Low: nfs.V3, High: nfs.V3, Handler: m}}
	f, err := client.Dial(t.Context(), client.Config{NFS: rpctest.OverTCP(t, mux), Root: mazeHandle(0)})
	if err != nil {
		t.Fatal(err)
	}
	return &Remote{FS: f, Name: "nfs://maze"}
}

func TestFoldersThatAreInThemselvesAreNotGoneThroughForEver(t *testing.T) {
	var next uint64 = 1
	for name, tt := range map[string]struct {
		list func(fh nfs.FH, cookie uint64) []nfs.Entry
		says string
		most int // calls
	}{
		"the same again": {func(_ nfs.FH, cookie uint64) []nfs.Entry {
			return []nfs.Entry{mazeEntry("again", 1, cookie+1, nfs.TypeDir)}[:1-min(cookie, 1)]
		}, "contains itself", 20},
		"one of those above": {func(fh nfs.FH, cookie uint64) []nfs.Entry {
			return []nfs.Entry{mazeEntry("d", 1+binary.BigEndian.Uint64(fh)%5, cookie+1, nfs.TypeDir)}[:1-min(cookie, 1)]
		}, "contains itself", 40},
		"always another": {func(_ nfs.FH, cookie uint64) []nfs.Entry {
			next++
			return []nfs.Entry{mazeEntry("d", next, cookie+1, nfs.TypeDir)}[:1-min(cookie, 1)]
		}, "deep", 5 * maxDepth},
		"a name with a slash": {func(_ nfs.FH, cookie uint64) []nfs.Entry {
			return []nfs.Entry{mazeEntry("../etc", 7, cookie+1, nfs.TypeReg)}[:1-min(cookie, 1)]
		}, "cannot be named", 20},
		"an empty name": {func(_ nfs.FH, cookie uint64) []nfs.Entry {
			return []nfs.Entry{mazeEntry("", 7, cookie+1, nfs.TypeReg)}[:1-min(cookie, 1)]
		}, "cannot be named", 20},
	} {
		t.Run(name, func(t *testing.T) {
			var gone []string
			m := &maze{list: tt.list, remove: func(name string, _ bool) nfs.Stat {
				gone = append(gone, name)
				return nfs.OK
			}}
			_, failed := removeAll(t, &Remover{Recursive: true}, m.mount(t), "/d")
			m.served()
			if len(failed) != 1 || !strings.Contains(failed[0].Error(), tt.says) || m.calls > tt.most {
				t.Errorf("%d calls, %v, want an error with %q", m.calls, failed, tt.says)
			}
			if len(gone) > 0 {
				t.Errorf("removed %q", gone)
			}
		})
	}
}

// A directory that does not become empty is gone through again while that helps, and not
// forever.
func TestAFolderThatStaysFullEnds(t *testing.T) {
	left := []string{"a", "b", "c"}
	m := &maze{
		list: func(_ nfs.FH, cookie uint64) []nfs.Entry {
			if cookie > 0 || len(left) == 0 {
				return nil
			}
			return []nfs.Entry{mazeEntry(left[0], 9, 1, nfs.TypeReg)} // and hides the rest
		},
		remove: func(name string, directory bool) nfs.Stat {
			if directory {
				if len(left) > 0 {
					return nfs.ErrNotEmpty
				}
				return nfs.OK
			}
			left = slices.DeleteFunc(left, func(s string) bool { return s == name })
			return nfs.OK
		},
	}
	if removed, failed := removeAll(t, &Remover{Recursive: true}, m.mount(t), "/d"); failed != nil || len(removed) != 4 {
		t.Errorf("%q, %v", removed, failed)
	}
	m.served()
	m.remove = func(string, bool) nfs.Stat { return nfs.ErrNotEmpty }
	if removed, failed := removeAll(t, &Remover{Recursive: true}, m.mount(t), "/d"); len(failed) != 1 || removed != nil {
		t.Errorf("%q, %v", removed, failed)
	}
}

// A directory without an end is read until the context ends.
func TestAnEndlessFolderEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	gone := 0
	m := &maze{
		list: func(_ nfs.FH, cookie uint64) []nfs.Entry {
			var part []nfs.Entry
			for i := range uint64(50) {
				part = append(part, mazeEntry(fmt.Sprint(cookie+i), 9, cookie+i+1, nfs.TypeReg))
			}
			return part
		},
		remove: func(string, bool) nfs.Stat {
			if gone++; gone == 1000 {
				cancel()
			}
			return nfs.OK
		},
	}
	if err := (&Remover{Recursive: true}).Remove(ctx, m.mount(t), "/d"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	m.served()
	if gone > 1001 {
		t.Errorf("removed %d", gone)
	}
}

func TestWhatCannotBeRemovedIsToldOnceAndTheRestRemoved(t *testing.T) {
	names := []string{"a", "stays", "z"}
	m := &maze{
		list: func(fh nfs.FH, cookie uint64) []nfs.Entry {
			var part []nfs.Entry
			for i, name := range names[min(cookie, 3):] {
				part = append(part, mazeEntry(name, 9, cookie+uint64(i)+1, nfs.TypeReg))
			}
			return part
		},
		remove: func(name string, directory bool) nfs.Stat {
			if name == "stays" || directory {
				return nfs.ErrAcces
			}
			return nfs.OK
		},
	}
	removed, failed := removeAll(t, &Remover{Recursive: true, Force: true}, m.mount(t), "/d")
	if len(failed) != 1 || !strings.Contains(failed[0].Error(), "nfs://maze/d/stays") || len(removed) != 2 {
		t.Errorf("%q, %v", removed, failed)
	}
}

func TestURLsOfFilesNameThemAgain(t *testing.T) {
	for _, name := range []string{"/a", "/a b/c%d", "/caf\xe9/\n\"\\", "/ä/?#&+;", "/"} {
		r := &Remote{Name: "nfs://[::1]:7/srv", Server: "nfs://[::1]:7"}
		u, err := ParseURL(r.URL(name))
		if want := strings.TrimSuffix("/srv"+name, "/"); err != nil || u.Path != want || u.Server() != r.Server {
			t.Errorf("%q: %s is %+v, %v", name, r.URL(name), u, err)
		}
	}
}
