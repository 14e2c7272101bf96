//go:build unix

package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/nfs"
)

func TestHardLinksStayThat(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		if err := errors.Join(os.MkdirAll(filepath.Join(w.src, "d", "e"), 0o755), os.Mkdir(filepath.Join(w.src, "f"), 0o755)); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(w.src, "d", "one"), "data", 0o644)
		write(t, filepath.Join(w.src, "d", "other"), "data", 0o644)
		for _, name := range []string{"d/e/two", "f/three"} {
			if err := os.Link(filepath.Join(w.src, "d/one"), filepath.Join(w.src, name)); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []*Copier{
			{Recursive: true, Preserve: true, HardLinks: true},
			{Recursive: true, Preserve: true, HardLinks: true}, // over the links of the first
			{Recursive: true, Preserve: true, HardLinks: true, Resume: true},
			{Recursive: true, HardLinks: true, Resume: true, Checksum: true},
		} {
			w.mustCopy(t, c, "d", "f")
			one, two, three, other := lstat(t, filepath.Join(w.dst, "d/one")), lstat(t, filepath.Join(w.dst, "d/e/two")), lstat(t, filepath.Join(w.dst, "f/three")), lstat(t, filepath.Join(w.dst, "d/other"))
			if !one.is(two) || !one.is(three) || one.is(other) || one.Links != 3 {
				t.Errorf("%v %v %v %v", one, two, three, other)
			}
			if c.Resume && c.Skipped() != 4 {
				t.Errorf("%d of 4 were skipped", c.Skipped())
			}
			if len(c.links.files) != 0 || c.links.bytes != 0 {
				t.Errorf("%d files are remembered that have no more names", len(c.links.files))
			}
			if left := parts(t, w.dst); len(left) > 0 {
				t.Errorf("left %q", left)
			}
		}
		if err := os.RemoveAll(filepath.Join(w.dst, "d")); err != nil {
			t.Fatal(err)
		}
		w.mustCopy(t, &Copier{Recursive: true}, "d")
		if one := lstat(t, filepath.Join(w.dst, "d/one")); one.Links != 1 {
			t.Errorf("%d links without being asked for", one.Links)
		}
	})
}

// parts are the files of a directory that were not finished.
func parts(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".part") {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A name whose first copy was replaced by a file of another source is no link to
// that.
func TestALinkIsNeverOneToAnotherFile(t *testing.T) {
	base, dst := t.TempDir(), t.TempDir()
	for _, dir := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(base, "a/x"), "right", 0o644)
	write(t, filepath.Join(base, "b/x"), "wrong", 0o644)
	if err := os.Link(filepath.Join(base, "a/x"), filepath.Join(base, "b/y")); err != nil {
		t.Fatal(err)
	}
	c := &Copier{Recursive: true, HardLinks: true}
	failed, err := run(t, c, Local{}, Local{}, dst, filepath.Join(base, "a")+"/.", filepath.Join(base, "b")+"/.")
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if got := listTree(t, dst); got["x"] != "wrong" || got["y"] != "right" {
		t.Errorf("%q", got)
	}
}

// A linkless tree has no hard links, as some file systems.
type linkless struct{ Local }

func (linkless) Link(context.Context, string, string) error { return nfs.ErrNotSupp }

func TestWhereThereAreNoHardLinksFilesAreCopied(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	write(t, filepath.Join(src, "a"), "data", 0o644)
	if err := os.Link(filepath.Join(src, "a"), filepath.Join(src, "b")); err != nil {
		t.Fatal(err)
	}
	var lost []error
	c := &Copier{Recursive: true, HardLinks: true, Lost: func(err error) { lost = append(lost, err) }}
	failed, err := run(t, c, Local{}, linkless{}, dst, src+"/.")
	if err != nil || failed != nil || len(lost) != 1 || !strings.Contains(lost[0].Error(), "not a hard link") {
		t.Errorf("%v, %v, %v", err, failed, lost)
	}
	if got := listTree(t, dst); got["a"] != "data" || got["b"] != "data" || len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// A server may say that every file has more names.
func TestWhatIsKeptOfHardLinksIsBounded(t *testing.T) {
	at := filepath.Join(t.TempDir(), "file")
	write(t, at, "", 0o644)
	var lost []error
	c := &Copier{HardLinks: true, Lost: func(err error) { lost = append(lost, err) }}
	const room = 100
	c.links.bytes = maxLinks - room*(linkSize+len(at))
	for i := range uint64(2 * room) {
		s := &step{from: Place{Local{}, at}, info: &Info{Links: 2, ID: ID{File: i}}}
		c.remember(t.Context(), s, Place{Local{}, at})
	}
	if len(c.links.files) != room || len(lost) != 1 {
		t.Errorf("%d files in room for %d, %v", len(c.links.files), room, lost)
	}
	for key := range c.links.files {
		c.links.forget(key)
	}
	if left := maxLinks - room*(linkSize+len(at)); c.links.bytes != left {
		t.Errorf("%d bytes are in use of none, want %d", c.links.bytes, left)
	}
}
