package client

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// entries lists a directory, up to its end or an error.
func entries(t *testing.T, d *Dir) (names []string, err error) {
	t.Helper()
	for info, err := range d.Entries(t.Context()) {
		if err != nil {
			return names, err
		}
		names = append(names, info.Name())
	}
	return names, nil
}

func openDir(t *testing.T, f *FS, name string) *Dir {
	t.Helper()
	d, err := f.OpenDir(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestADirectoryIsListedAPartAtATime(t *testing.T) {
	for name, server := range map[string]func(*fakeServer){
		"READDIRPLUS": func(*fakeServer) {},
		"READDIR":     func(s *fakeServer) { s.before = noPlus },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer()
			want := s.fill("/d", 1000)
			server(s)
			f := dial(t, s, func(cfg *Config) { cfg.Entries = 10 }) // which limits ReadDir, not Entries
			got, err := entries(t, openDir(t, f, "d"))
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d names, want %d: %v", len(got), len(want), err)
			}
		})
	}
}

// A listing may be ended early. If the directory has changed, the error tells the caller to
// list it again.
func TestAListingCanBeLeftAndTellsOfALostCookie(t *testing.T) {
	s := newFakeServer()
	s.fill("/d", 1000)
	f := dial(t, s, nil)
	d := openDir(t, f, "d")
	for range d.Entries(t.Context()) {
		break
	}
	if n := s.called(nfs.ProcReaddirplus); n != 1 {
		t.Errorf("one name took %d READDIRPLUS", n)
	}
	s.before = func(p nfs.Proc, n int) nfs.Stat {
		if p == nfs.ProcReaddirplus && n == 3 {
			return nfs.ErrBadCookie
		}
		return nfs.OK
	}
	if got, err := entries(t, d); !errors.Is(err, nfs.ErrBadCookie) || len(got) == 0 {
		t.Errorf("%d names, %v", len(got), err)
	}
}

// circle makes each part of a listing end with the cookie that it began with.
func circle(p nfs.Proc, b []byte) []byte {
	if p != nfs.ProcReaddirplus {
		return b
	}
	var res nfs.ReaddirplusRes
	d := oncrpc.NewDecoder(b, "results")
	res.Decode(&d)
	e := oncrpc.NewEncoder(nil)
	for i := range res.Entries {
		res.Entries[i].Cookie = 7
	}
	res.EOF = false
	res.Encode(&e)
	out, _ := e.Finish()
	return out
}

func TestAListingThatGoesRoundInACircleEnds(t *testing.T) {
	s := newFakeServer()
	s.fill("/d", 10)
	f := dial(t, s, nil)
	d := openDir(t, f, "d")
	s.tamper = circle
	if got, err := entries(t, d); !errors.Is(err, ErrServer) || len(got) > 20 {
		t.Errorf("%d names, %v", len(got), err)
	}
	if list, err := f.ReadDir(t.Context(), "d"); !errors.Is(err, ErrServer) {
		t.Errorf("%d names, %v", len(list), err)
	}
}

func TestNamesOfADirectoryAreBoundedInOctets(t *testing.T) {
	s := newFakeServer()
	for i := range 8 {
		s.put(nfs.TypeReg, fmt.Sprintf("/d/%d%s", i, strings.Repeat("x", 2000)), "")
	}
	f := dial(t, s, func(cfg *Config) { cfg.Entries = 20 })
	if list, err := f.ReadDir(t.Context(), "d"); err == nil {
		t.Errorf("%d names of 2 KB, in memory for 20 of 512 octets", len(list))
	}
}

func TestFilesAreRemovedFromADirectoryByTheirNames(t *testing.T) {
	s := newFakeServer()
	s.put(nfs.TypeReg, "/d/file", "")
	s.put(nfs.TypeDir, "/d/sub", "")
	s.put(nfs.TypeReg, "/d/sub/inner", "")
	s.put(nfs.TypeLnk, "/d/link", "sub")
	f := dial(t, s, nil)
	d := openDir(t, f, "d/link/..")
	if d.Path() != "/d" || !d.Info().IsDir() {
		t.Errorf("%s, %v", d.Path(), d.Info())
	}
	for name, want := range map[string]error{"sub": nfs.ErrIsDir, "none": fs.ErrNotExist, "sub/inner": fs.ErrInvalid, "..": fs.ErrInvalid, "": fs.ErrInvalid} {
		if err := d.Remove(t.Context(), name); !errors.Is(err, want) {
			t.Errorf("Remove %q: %v, want %v", name, err, want)
		}
	}
	link, err := d.Lookup(t.Context(), "link")
	if err != nil || link.Attr.Type != nfs.TypeLnk {
		t.Errorf("%v, %v", link, err)
	}
	sub, err := d.Lookup(t.Context(), "sub")
	if err != nil {
		t.Fatal(err)
	}
	// Another directory gets its name; its handle still leads to the first one.
	if err := f.Rename(t.Context(), "d/sub", "d/moved"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Sub(sub).Remove(t.Context(), "inner"), d.Remove(t.Context(), "file"), d.Remove(t.Context(), "link"), d.Rmdir(t.Context(), "moved")); err != nil {
		t.Error(err)
	}
	if got, err := entries(t, d); err != nil || len(got) != 0 {
		t.Errorf("left %q, %v", got, err)
	}
	if _, err := f.OpenDir(t.Context(), "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	s.put(nfs.TypeReg, "/file", "")
	if _, err := f.OpenDir(t.Context(), "file"); !errors.Is(err, nfs.ErrNotDir) {
		t.Error(err)
	}
}
