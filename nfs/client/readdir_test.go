package client

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/nfs"
)

// fill makes n files in a directory and returns their names in order.
func (s *fakeServer) fill(dir string, n int) (names []string) {
	for i := range n {
		name := fmt.Sprintf("file %04d%s", i, strings.Repeat("x", i%50))
		s.put(nfs.TypeReg, dir+"/"+name, "")
		names = append(names, name)
	}
	return names
}

func namesOf(list []*Info) (names []string) {
	for _, i := range list {
		names = append(names, i.Name())
	}
	return names
}

func TestADirectoryIsListedWhole(t *testing.T) {
	for name, tt := range map[string]struct {
		files  int
		server func(*fakeServer)
		plus   bool
	}{
		"empty":                      {files: 0, plus: true},
		"in one part":                {files: 3, plus: true},
		"in many parts":              {files: 1000, plus: true},
		"without READDIRPLUS":        {files: 1000, server: func(s *fakeServer) { s.before = noPlus }},
		"without attributes":         {files: 20, server: func(s *fakeServer) { s.bare = true }, plus: true},
		"without either":             {files: 20, server: func(s *fakeServer) { s.bare, s.before = true, noPlus }},
		"in parts of a strange size": {files: 300, server: func(s *fakeServer) { s.info.DirPref = 1<<32 - 1 }, plus: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer()
			want := s.fill("/d", tt.files)
			s.put(nfs.TypeDir, "/d/z", "")
			want = append(want, "z")
			if tt.server != nil {
				tt.server(s)
			}
			f := dial(t, s, nil)
			list, err := f.ReadDir(t.Context(), "d")
			if err != nil {
				t.Fatal(err)
			}
			if got := namesOf(list); !slices.Equal(got, want) {
				t.Errorf("got %d names, want %d: %q", len(got), len(want), got)
			}
			for _, info := range list {
				if again, err := f.Lstat(t.Context(), "d/"+info.Name()); err != nil || again.Attr != info.Attr || again.FH.String() != info.FH.String() {
					t.Errorf("listed as %+v, looked up as %+v, %v", info, again, err)
				}
			}
			if plain := s.called(nfs.ProcReaddir); (plain == 0) != tt.plus {
				t.Errorf("READDIR was called %d times", plain)
			}
		})
	}
}

func noPlus(p nfs.Proc, _ int) nfs.Stat {
	if p == nfs.ProcReaddirplus {
		return nfs.ErrNotSupp
	}
	return nfs.OK
}

func TestAServerIsAskedOnceWhetherItHasREADDIRPLUS(t *testing.T) {
	s := newFakeServer()
	s.before = noPlus
	f := dial(t, s, nil)
	for range 3 {
		if _, err := f.ReadDir(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.called(nfs.ProcReaddirplus); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestAListingBeginsAgainWhereItsCookieIsNotTakenAnyMore(t *testing.T) {
	s := newFakeServer()
	want := s.fill("/d", 100)
	f := dial(t, s, nil)
	s.before = func(p nfs.Proc, n int) nfs.Stat {
		if p == nfs.ProcReaddirplus && n < 4 {
			s.verf[0]++ // the directory has changed
		}
		return nfs.OK
	}
	list, err := f.ReadDir(t.Context(), "d")
	if err != nil || !slices.Equal(namesOf(list), want) {
		t.Errorf("%v, got %q", err, namesOf(list))
	}

	s.before = func(nfs.Proc, int) nfs.Stat { s.verf[0]++; return nfs.OK }
	if _, err := f.ReadDir(t.Context(), "d"); !errors.Is(err, nfs.ErrBadCookie) {
		t.Errorf("a directory that changes for ever: %v", err)
	}
}

func TestAListingAsksForLargerPartsWhereTheyAreTooSmall(t *testing.T) {
	s := newFakeServer()
	s.info.DirPref = 1 // which is raised to a sensible size
	long := strings.Repeat("n", nfs.MaxName)
	s.put(nfs.TypeReg, "/d/"+long, "")
	f := dial(t, s, nil)
	if list, err := f.ReadDir(t.Context(), "d"); err != nil || len(list) != 1 || list[0].Name() != long {
		t.Errorf("%v, %d entries", err, len(list))
	}
	s.before = func(p nfs.Proc, _ int) nfs.Stat {
		if p == nfs.ProcReaddirplus {
			return nfs.ErrTooSmall
		}
		return nfs.OK
	}
	if _, err := f.ReadDir(t.Context(), "d"); !errors.Is(err, nfs.ErrTooSmall) {
		t.Errorf("nothing is large enough: %v", err)
	}
}

func TestAListingThatMakesNoSenseIsAnError(t *testing.T) {
	for name, tt := range map[string]struct {
		names   func([]string) []string
		entries int
		stuck   bool
	}{
		"a name with a slash":  {names: func([]string) []string { return []string{"../../etc/passwd"} }},
		"an absolute name":     {names: func([]string) []string { return []string{"/etc"} }},
		"an empty name":        {names: func([]string) []string { return []string{""} }},
		"a name with a NUL":    {names: func([]string) []string { return []string{"a\x00b"} }},
		"without end":          {stuck: true},
		"more than is allowed": {entries: 10},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer()
			s.fill("/d", 20)
			s.names = tt.names
			f := dial(t, s, func(cfg *Config) { cfg.Entries = tt.entries })
			if tt.stuck {
				s.tamper = func(p nfs.Proc, b []byte) []byte {
					if p != nfs.ProcReaddirplus {
						return b
					}
					return make([]byte, 4+4+8+4+4) // NFS3_OK, no attributes, a verifier, no entry, not the end
				}
			}
			_, err := f.ReadDir(t.Context(), "d")
			if err == nil || tt.entries == 0 && !errors.Is(err, ErrServer) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOnlyDirectoriesAreListed(t *testing.T) {
	s := newFakeServer()
	s.put(nfs.TypeReg, "/file", "")
	f := dial(t, s, nil)
	if _, err := f.ReadDir(t.Context(), "file"); !errors.Is(err, nfs.ErrNotDir) {
		t.Errorf("got %v", err)
	}
}

func TestFilesThatAreRemovedDuringAListingAreLeftOut(t *testing.T) {
	s := newFakeServer()
	s.fill("/d", 3)
	s.bare = true // so that each is looked up
	f := dial(t, s, nil)
	s.before = func(p nfs.Proc, n int) nfs.Stat {
		if p == nfs.ProcLookup && n == 3 {
			return nfs.ErrNoEnt
		}
		return nfs.OK
	}
	if list, err := f.ReadDir(t.Context(), "d"); err != nil || len(list) != 2 {
		t.Errorf("%v, %q", err, namesOf(list))
	}
}

func TestWhatCannotBeLookedAtIsListedByItsName(t *testing.T) {
	s := newFakeServer()
	names := s.fill("/d", 3)
	s.bare = true
	f := dial(t, s, nil)
	s.before = func(p nfs.Proc, n int) nfs.Stat {
		if p == nfs.ProcLookup && n == 3 {
			return nfs.ErrAcces
		}
		return nfs.OK
	}
	list, err := f.ReadDir(t.Context(), "d")
	if err != nil || !slices.Equal(namesOf(list), names) {
		t.Fatalf("%v, %q", err, namesOf(list))
	}
	for _, i := range list {
		if hidden := i.Mode() == fs.ModeIrregular; hidden != (i.FH == nil) || hidden != (i.Name() == names[1]) {
			t.Errorf("%s: %v, handle %v", i.Name(), i.Mode(), i.FH)
		}
	}
}
