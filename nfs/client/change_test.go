package client

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/weft-rdma/weft/nfs"
)

func TestFilesOfEveryKindAreMadeAndNamedAndRemoved(t *testing.T) {
	s := newFakeServer()
	f := dial(t, s, nil)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	made := func(info *Info, err error) *Info {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return info
	}

	if d := made(f.Mkdir(ctx, "d", Mode(0o750))); !d.IsDir() || d.Attr.Mode != 0o750 || d.Name() != "d" {
		t.Errorf("made %+v", d)
	}
	made(f.Mkdir(ctx, "d/e/", Mode(0o755)))
	if l := made(f.Symlink(ctx, "e\xff/x", "d/link")); l.Attr.Type != nfs.TypeLnk {
		t.Errorf("made %+v", l)
	}
	if target, err := f.Readlink(ctx, "d/link"); err != nil || target != "e\xff/x" {
		t.Errorf("the link holds %q, %v", target, err)
	}
	if dev := made(f.Mknod(ctx, "d/dev", nfs.TypeChr, nfs.Specdata{Major: 1, Minor: 3}, Mode(0o600))); dev.Attr.Rdev != (nfs.Specdata{Major: 1, Minor: 3}) {
		t.Errorf("made %+v", dev)
	}
	if _, err := f.Create(ctx, "d/file", nfs.Guarded, Mode(0o600)); err != nil {
		t.Error(err)
	}
	must(f.Link(ctx, "d/file", "d/e/second"))
	if i, err := f.Stat(ctx, "d/e/second"); err != nil || i.Attr.NLink != 2 {
		t.Errorf("linked %+v, %v", i, err)
	}
	must(f.Rename(ctx, "d/file", "d/e/first"))
	must(f.SetAttr(ctx, "d/e/first", Mode(0o4755)))
	must(f.Truncate(ctx, "d/e/first", 77))
	if i, err := f.Stat(ctx, "d/e/first"); err != nil || i.Size() != 77 || i.Mode() != 0o755|fs.ModeSetuid {
		t.Errorf("changed to %v, %v", i, err)
	}
	must(f.LsetAttr(ctx, "d/link", Mode(0o700)))
	if i, err := f.Lstat(ctx, "d/link"); err != nil || i.Attr.Mode != 0o700 {
		t.Errorf("changed to %v, %v", i, err)
	}
	if rights, err := f.Access(ctx, "d/e/first", nfs.AccessRead|nfs.AccessModify); err != nil || rights != nfs.AccessRead {
		t.Errorf("rights %#x, %v", rights, err)
	}
	if st, err := f.StatFS(ctx, "d"); err != nil || st.TotalBytes != 1<<50 {
		t.Errorf("%+v, %v", st, err)
	}
	if pc, err := f.PathConf(ctx, "d"); err != nil || pc.NameMax != 255 {
		t.Errorf("%+v, %v", pc, err)
	}
	for _, name := range []string{"d/e/first", "d/e/second", "d/link", "d/dev"} {
		must(f.Remove(ctx, name))
	}
	must(f.Rmdir(ctx, "d/e"))
	must(f.Rmdir(ctx, "d/"))
	if list, err := f.ReadDir(ctx, "/"); err != nil || len(list) != 0 {
		t.Errorf("left: %v, %v", namesOf(list), err)
	}
}

func TestChangesThatCannotBeSayWhy(t *testing.T) {
	s := newFakeServer()
	s.put(nfs.TypeReg, "/d/file", "")
	f := dial(t, s, nil)
	ctx := t.Context()
	_, mkdir := f.Mkdir(ctx, "d", Mode(0))
	_, above := f.Mkdir(ctx, "nowhere/x", Mode(0))
	_, inFile := f.Mkdir(ctx, "d/file/x", Mode(0))
	_, guarded := f.Create(ctx, "d/file", nfs.Guarded, Mode(0))
	_, exclusive := f.Create(ctx, "d/file", nfs.Exclusive, Mode(0))
	_, unchecked := f.Create(ctx, "d/file", nfs.Unchecked, Mode(0))
	_, openDir := f.Open(ctx, "d")
	_, access := f.Access(ctx, "x", nfs.AccessRead)
	_, statfs := f.StatFS(ctx, "x")
	_, pathconf := f.PathConf(ctx, "x")
	for name, tt := range map[string]struct{ got, want error }{
		"Mkdir over a directory":  {mkdir, fs.ErrExist},
		"Mkdir below nothing":     {above, fs.ErrNotExist},
		"Mkdir in a file":         {inFile, nfs.ErrNotDir},
		"Create guarded":          {guarded, fs.ErrExist},
		"Create exclusive":        {exclusive, fs.ErrExist},
		"Create unchecked":        {unchecked, nil},
		"Open of a directory":     {openDir, nfs.ErrIsDir},
		"Remove of nothing":       {f.Remove(ctx, "x"), fs.ErrNotExist},
		"Remove of a directory":   {f.Remove(ctx, "d"), nfs.ErrIsDir},
		"Remove of the root":      {f.Remove(ctx, "/"), fs.ErrInvalid},
		"Remove of a dot":         {f.Remove(ctx, "d/."), fs.ErrInvalid},
		"Remove of a parent":      {f.Remove(ctx, "d/.."), fs.ErrInvalid},
		"Rmdir of a full one":     {f.Rmdir(ctx, "d"), nfs.ErrNotEmpty},
		"Rename of nothing":       {f.Rename(ctx, "x", "y"), fs.ErrNotExist},
		"Rename to below nothing": {f.Rename(ctx, "d/file", "x/y"), fs.ErrNotExist},
		"Rename from below":       {f.Rename(ctx, "x/y", "z"), fs.ErrNotExist},
		"Link of nothing":         {f.Link(ctx, "x", "y"), fs.ErrNotExist},
		"Link below nothing":      {f.Link(ctx, "d/file", "x/y"), fs.ErrNotExist},
		"SetAttr of nothing":      {f.SetAttr(ctx, "x", Mode(0)), fs.ErrNotExist},
		"LsetAttr of nothing":     {f.LsetAttr(ctx, "x", Mode(0)), fs.ErrNotExist},
		"Access to nothing":       {access, fs.ErrNotExist},
		"StatFS of nothing":       {statfs, fs.ErrNotExist},
		"PathConf of nothing":     {pathconf, fs.ErrNotExist},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: %v, want %v", name, tt.got, tt.want)
		}
	}
}

// RFC 1813 §3.3.8: the attributes of a file that was made exclusively may hold the verifier
// until they are set.
func TestAnExclusiveFileHasItsAttributesSetAfterwards(t *testing.T) {
	s := newFakeServer()
	f := dial(t, s, nil)
	if _, err := f.Create(t.Context(), "file", nfs.Exclusive, Mode(0o640)); err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat(t.Context(), "file")
	if err != nil || info.Attr.Mode != 0o640 || s.called(nfs.ProcSetattr) != 1 {
		t.Errorf("%v, %v, after %d SETATTRs", info, err, s.called(nfs.ProcSetattr))
	}
	if made := s.files[info.Attr.FileID]; made.verf == (nfs.Verifier{}) {
		t.Error("the verifier is zeros")
	}
}
