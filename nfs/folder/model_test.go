//go:build linux

package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-rdma/weft/nfs"
)

// A twin is a directory on which the test makes the system calls that correspond to its calls.
type twin struct {
	w    *world
	dir  string
	rng  *rand.Rand
	log  []string
	dirs []string // those there may be
}

// Random calls change the export as the corresponding system calls change another directory, and
// return the same errors, also across restarts.
func TestAServedFolderIsLikeItsTwin(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		cfg.Async = true
		defer syscall.Umask(syscall.Umask(0))
		for seed := range uint64(8) {
			w := serveMore(t, cfg)
			m := &twin{w: w, dir: t.TempDir(), rng: rand.New(rand.NewPCG(seed, 1)), dirs: []string{"."}}
			for i := range 400 {
				m.step()
				if i%97 == 96 {
					w.restart()
				}
				if t.Failed() {
					t.Fatalf("seed %d:\n%s", seed, strings.Join(m.log, "\n"))
				}
			}
			m.compare()
			w.server.Close()
		}
	})
}

func (m *twin) name() string { return string(rune('a' + m.rng.IntN(5))) }

// pick chooses an existing directory.
func (m *twin) pick() string {
	for {
		d := m.dirs[m.rng.IntN(len(m.dirs))]
		if fi, err := os.Lstat(filepath.Join(m.dir, d)); err == nil && fi.IsDir() {
			return d
		}
	}
}

func (m *twin) at(dir, name string) string { return filepath.Join(m.dir, dir, name) }

func (m *twin) fh(dir string) nfs.FH {
	if dir == "." {
		return m.w.root()
	}
	return m.w.fh(strings.Split(dir, "/")...)
}

// same compares the server's status with the system's error.
func (m *twin) same(got nfs.Stat, err error, format string, args ...any) bool {
	m.log = append(m.log, fmt.Sprintf(format, args...)+": "+got.String())
	if want := statOf(err); got != want {
		m.w.t.Errorf(format+": %v, the system says %v", append(args, got, want)...)
	}
	return err == nil
}

func (m *twin) step() {
	dir, name := m.pick(), m.name()
	fh, p := m.fh(dir), m.at(dir, name)
	where := nfs.DirOpArgs{Dir: fh, Name: name}
	switch m.rng.IntN(12) {
	case 0:
		if m.same(m.w.mkdir(fh, name, 0o755).Stat, syscall.Mkdir(p, 0o755), "mkdir %s/%s", dir, name) {
			if d := filepath.Join(dir, name); strings.Count(d, "/") < 4 {
				m.dirs = append(m.dirs, d)
			}
		}
	case 1, 2:
		f, err := os.OpenFile(p, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err == nil {
			f.Close()
		}
		var res nfs.CreateRes
		m.w.call(nfs.ProcCreate, &nfs.CreateArgs{Where: where, Mode: nfs.Guarded, Attr: withMode(0o644)}, &res)
		m.same(res.Stat, err, "create %s/%s", dir, name)
	case 3:
		target := m.name()
		var res nfs.CreateRes
		m.w.call(nfs.ProcSymlink, &nfs.SymlinkArgs{Where: where, Path: target}, &res)
		m.same(res.Stat, syscall.Symlink(target, p), "symlink %s/%s to %s", dir, name, target)
	case 4:
		m.same(m.w.remove(fh, name), unlink(p), "remove %s/%s", dir, name)
	case 5:
		m.same(m.w.rmdir(fh, name), syscall.Rmdir(p), "rmdir %s/%s", dir, name)
	case 6, 7:
		to, toName := m.pick(), m.name()
		m.same(m.w.rename(fh, name, m.fh(to), toName), syscall.Rename(p, m.at(to, toName)), "rename %s/%s to %s/%s", dir, name, to, toName)
	case 8:
		to, toName := m.pick(), m.name()
		fi, err := os.Lstat(p)
		if err != nil || fi.IsDir() {
			return
		}
		var res nfs.LinkRes
		m.w.call(nfs.ProcLink, &nfs.LinkArgs{File: m.w.lookup(fh, name).Object, Link: nfs.DirOpArgs{Dir: m.fh(to), Name: toName}}, &res)
		m.same(res.Stat, os.Link(p, m.at(to, toName)), "link %s/%s as %s/%s", dir, name, to, toName)
	default:
		m.change(fh, p)
	}
}

// unlink is the system call for REMOVE. os.Root removes directories, too, which REMOVE
// refuses.
func unlink(p string) error {
	err := syscall.Unlink(p)
	if errors.Is(err, syscall.EPERM) {
		err = syscall.EISDIR
	}
	return err
}

// change writes to a file, truncates it or changes its mode.
func (m *twin) change(dir nfs.FH, p string) {
	fi, err := os.Lstat(p)
	if err != nil || !fi.Mode().IsRegular() {
		return
	}
	fh := m.w.lookup(dir, filepath.Base(p)).Object
	n := m.rng.Int64N(5000)
	switch m.rng.IntN(4) {
	case 0:
		m.same(m.w.setattr(fh, size(uint64(n))), os.Truncate(p, n), "cut %s at %d", p, n)
	case 1:
		mode := uint32(m.rng.IntN(0o1000) | 0o600)
		m.same(m.w.setattr(fh, withMode(mode)), os.Chmod(p, fs.FileMode(mode)), "chmod %o %s", mode, p)
	default:
		data := strings.Repeat(m.name(), m.rng.IntN(9000))
		f, err := os.OpenFile(p, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteAt([]byte(data), n)
			f.Close()
		}
		how := nfs.StableHow(m.rng.IntN(2)) // what FILE_SYNC adds is not to be seen here
		m.same(m.w.write(fh, uint64(n), data, how).Stat, err, "write %d octets to %s at %d", len(data), p, n)
	}
}

// compare compares all that the server returns of its export with the twin.
func (m *twin) compare() {
	t := m.w.t
	handles := make(map[string]fs.FileInfo)
	files := 0
	err := filepath.WalkDir(m.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		files++
		rel, _ := filepath.Rel(m.dir, p)
		fh := m.fh(rel)
		a := m.w.attr(fh)
		fi, err := d.Info()
		if err != nil {
			return err
		}
		if rel != "." && (a.FileMode() != fi.Mode() || !fi.IsDir() && a.Size != uint64(fi.Size()) || uint64(a.NLink) != uint64(fi.Sys().(*syscall.Stat_t).Nlink)) {
			t.Errorf("%s: %v, %d octets, %d links, the twin has %v, %d, %d", rel, a.FileMode(), a.Size, a.NLink, fi.Mode(), fi.Size(), fi.Sys().(*syscall.Stat_t).Nlink)
		}
		if other, ok := handles[fh.String()]; ok && !os.SameFile(other, fi) {
			t.Errorf("%s has the handle of %s", rel, other.Name())
		}
		handles[fh.String()] = fi
		switch {
		case fi.IsDir():
			entries, err := os.ReadDir(p)
			if got := m.w.list(fh, 1024, true, nil); err != nil || len(got) != len(entries)+2 {
				t.Errorf("%s has %v, the twin %v (%v)", rel, got, entries, err)
			}
		case fi.Mode().IsRegular():
			want, err := os.ReadFile(p)
			if res := m.w.read(fh, 0, 1<<20); err != nil || string(res.Data) != string(want) {
				t.Errorf("%s has %d octets, the twin %d, or others (%v)", rel, len(res.Data), len(want), err)
			}
		}
		return nil
	})
	must(t, err)
	if files < 3 {
		t.Errorf("%d files in the end: not much of a test", files)
	}
}
