package folder

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
)

func TestTheKeyOfHandlesIsKeptForItsUserAlone(t *testing.T) {
	root, state := t.TempDir(), filepath.Join(t.TempDir(), "some", "state")
	first, err := loadSecret(state, root)
	must(t, err)
	if len(first) != secretLen || bytes.Equal(first, make([]byte, secretLen)) {
		t.Errorf("the key is % x", first)
	}
	again, err := loadSecret(state, root)
	if err != nil || !bytes.Equal(first, again) {
		t.Errorf("the second time: % x (%v), not % x", again, err, first)
	}
	entries, err := os.ReadDir(state)
	must(t, err)
	if len(entries) != 1 || entries[0].Name() != secretFile {
		t.Errorf("the directory has %v", entries)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for name, want := range map[string]os.FileMode{state: 0o700, filepath.Join(state, secretFile): 0o600} {
		fi, err := os.Stat(name)
		must(t, err)
		if fi.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v", name, fi.Mode(), want)
		}
	}
}

func TestServersThatStartAtOnceHaveOneKey(t *testing.T) {
	root := t.TempDir()
	for range 20 {
		state := filepath.Join(t.TempDir(), "state")
		keys := make([][]byte, 8)
		begin := make(chan struct{})
		var starting sync.WaitGroup
		for i := range keys {
			starting.Go(func() {
				<-begin
				var err error
				if keys[i], err = loadSecret(state, root); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		nettest.AwaitGroup(t, &starting)
		for _, k := range keys {
			if len(k) != secretLen || !bytes.Equal(k, keys[0]) {
				t.Fatalf("keys % x", keys)
			}
		}
	}
}

func TestAKeyThatOthersMayKnowIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes and owners there")
	}
	good := strings.Repeat("k", secretLen)
	for name, tc := range map[string]struct {
		make func(dir, key string) error
		want string
	}{
		"readable to others":   {func(dir, key string) error { return os.Chmod(key, 0o644) }, "mode is 0644"},
		"writable for a group": {func(dir, key string) error { return os.Chmod(key, 0o620) }, "mode is 0620"},
		"of another user": {func(dir, key string) error {
			if os.Geteuid() != 0 {
				return os.Chmod(key, 0o604) // only root can give files away
			}
			return os.Chown(key, 4711, 0)
		}, "it"},
		"a symbolic link": {func(dir, key string) error {
			must(t, os.Rename(key, filepath.Join(dir, "other")))
			return os.Symlink("other", key)
		}, "not a regular file"},
		"a directory":                           {func(dir, key string) error { must(t, os.Remove(key)); return os.Mkdir(key, 0o700) }, "not a regular file"},
		"too short":                             {func(dir, key string) error { return os.WriteFile(key, []byte("short"), 0o600) }, "not have the 32 octets"},
		"empty":                                 {func(dir, key string) error { return os.WriteFile(key, nil, 0o600) }, "not have the 32 octets"},
		"too long":                              {func(dir, key string) error { return os.WriteFile(key, []byte(good+"k"), 0o600) }, "not have the 32 octets"},
		"in a directory that others may change": {func(dir, key string) error { return os.Chmod(dir, 0o777) }, "mode is 0777"},
		"in a directory that is a symbolic link": {func(dir, key string) error {
			must(t, os.Rename(dir, dir+"2"))
			return os.Symlink(dir+"2", dir)
		}, "symbolic link"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			key := filepath.Join(dir, secretFile)
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.WriteFile(key, []byte(good), 0o600))
			root := t.TempDir()
			_, err := loadSecret(dir, root)
			must(t, err)
			must(t, tc.make(dir, key))
			s, err := New(Config{Root: root, StateDir: dir})
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// A server starts even if its key cannot be saved.
func TestWithoutAPlaceForItTheKeyLastsAsLongAsTheServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for name, tc := range map[string]struct {
		state func(root string) string
		why   string
	}{
		"nothing said":          {func(string) string { return "" }, "no directory is configured"},
		"below a file":          {func(string) string { return filepath.Join(file, "state") }, "not a directory"},
		"the export itself":     {func(root string) string { return root }, "in the served directory"},
		"in the export":         {func(root string) string { return filepath.Join(root, "a", "state") }, "in the served directory"},
		"in the export, really": {func(root string) string { return filepath.Join(link(t, root), "state") }, "in the served directory"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, dir: t.TempDir(), session: new(int)}
			w.cfg = Config{Root: w.dir, StateDir: tc.state(w.dir)}
			w.as(uint32(os.Getuid()), uint32(os.Getgid()))
			w.start()
			defer func() { w.server.Close() }()
			w.put("file", "data")
			fh := w.fh("file")
			w.attr(fh)
			w.restart()
			_, stat := w.getattr(fh)
			wants(t, "after a restart", stat, nfs.ErrStale)
			if lost := w.server.KeyLost(); lost == nil || !strings.Contains(lost.Error(), tc.why) {
				t.Errorf("the key is lost as %v, want %q", lost, tc.why)
			}
			if entries, _ := os.ReadDir(w.dir); len(entries) != 1 {
				t.Errorf("the directory has %v", entries)
			}
		})
	}
	if _, err := New(Config{Root: t.TempDir(), HandleKey: make([]byte, minSecret-1)}); err == nil {
		t.Error("a short key is taken")
	}
}

func link(t *testing.T, to string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(to, name); err != nil {
		t.Skip("no symbolic links for this user:", err)
	}
	return name
}

func TestServersOfOneKeyKnowTheirOwnHandles(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	onBoth(t, func(t *testing.T, cfg Config) {
		a, b := serve(t, Config{StateDir: state, portable: cfg.portable}), serveMore(t, Config{StateDir: state, portable: cfg.portable})
		for _, w := range []*world{a, b} {
			w.cfg.HandleKey = nil
			w.restart()
			w.put("file", "data")
			if err := w.server.KeyLost(); err != nil {
				t.Error(err)
			}
		}
		fh := append(nfs.FH(nil), a.fh("file")...)
		a.restart()
		if res := a.read(fh, 0, 4); string(res.Data) != "data" {
			t.Errorf("after a restart: %v %q", res.Stat, res.Data)
		}
		_, stat := b.getattr(fh)
		wants(t, "in another export", stat, nfs.ErrStale)
		a.cfg.StateDir = filepath.Join(t.TempDir(), "other")
		a.restart()
		_, stat = a.getattr(fh)
		wants(t, "with another key", stat, nfs.ErrStale)
	})
}

// The handle of the root, which all clients have, and the inode numbers and birth times, which
// all can find out, do not suffice to make a handle.
func TestForgedHandlesCostACheckAndNoSearch(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("a/file", "data")
		w.put("a/hidden", "data")
		fh := w.fh("a", "file")
		hidden := mustParse(t, w.fh("a", "hidden"))
		w.restart()
		root := mustParse(t, w.root())
		slow := &slowVolume{volume: w.server.vol, listed: make(chan struct{})}
		close(slow.listed)
		w.server.tree.vol = slow

		forge := func(k key, seal []byte) nfs.FH {
			return append(appendKey([]byte{handleVersion, 0, 0, 0}, k), seal...)
		}
		rootInfo, err := w.server.vol.stat(w.server.vol.root())
		must(t, err)
		known := newSealer(nil, &rootInfo, 0).seal(hidden)
		forged := []nfs.FH{known[:], forge(hidden, w.root()[sealAt:]), forge(hidden, fh[sealAt:]), forge(root, make([]byte, handleLen-sealAt))}
		for bit := range 8 * handleLen {
			bad := append(nfs.FH(nil), fh...)
			bad[bit/8] ^= 1 << (bit % 8)
			forged = append(forged, bad)
		}
		for i := range 5000 { // inodes that might be
			if h := forge(key{root.dev, hidden.ino + uint64(i), hidden.gen}, fh[sealAt:]); !bytes.Equal(h, fh) {
				forged = append(forged, h)
			}
		}
		for _, fh := range forged {
			if _, stat := w.getattr(fh); stat != nfs.ErrStale && stat != nfs.ErrBadHandle {
				t.Fatalf("% x: %v", fh, stat)
			}
		}
		if slow.lists != 0 {
			t.Errorf("%d directories were listed", slow.lists)
		}
		if s := &w.server.tree.search; len(s.wanted)+len(s.lost) != 0 || len(w.server.tree.nodes) != 1 {
			t.Errorf("kept: %d wanted, %d lost, %d nodes", len(s.wanted), len(s.lost), len(w.server.tree.nodes))
		}
		if res := w.read(fh, 0, 4); string(res.Data) != "data" || slow.lists == 0 {
			t.Errorf("the real one: %v %q, %d directories listed", res.Stat, res.Data, slow.lists)
		}
	})
}

// Authentic handles are found after a restart while other clients send forged ones without
// pause.
func TestHonestHandlesAreFoundInAStormOfForgedOnes(t *testing.T) {
	w := serve(t, Config{})
	var honest []nfs.FH
	for i := range 50 {
		w.put(fmt.Sprintf("d%d/e/file", i), "data")
		honest = append(honest, append(nfs.FH(nil), w.fh(fmt.Sprint("d", i), "e", "file")...))
	}
	w.restart()
	stop := make(chan struct{})
	var storm sync.WaitGroup
	for i := range 4 {
		storming := *w
		storm.Go(func() {
			fh := append(nfs.FH(nil), honest[i]...)
			fh[12] ^= 0xff // of the inode, which never is what it was
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				fh[13+n%7]++
				if _, stat := storming.getattr(fh); stat != nfs.ErrStale {
					t.Errorf("a forged handle: %v", stat)
					return
				}
			}
		})
	}
	for i, fh := range honest {
		res := w.read(fh, 0, 4)
		for range 100 {
			if res.Stat != nfs.ErrJukebox { // a slow machine may take longer than a call waits
				break
			}
			res = w.read(fh, 0, 4)
		}
		if string(res.Data) != "data" {
			t.Errorf("file %d: %v %q", i, res.Stat, res.Data)
		}
	}
	close(stop)
	nettest.AwaitGroup(t, &storm)
}
