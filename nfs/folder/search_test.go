package folder

import (
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/nfs"
)

// A slowVolume delays listings until the test allows them.
type slowVolume struct {
	volume
	mu     sync.Mutex
	lists  int
	listed chan struct{}
}

func (v *slowVolume) readDir(o object) (dirReader, error) {
	v.mu.Lock()
	v.lists++
	v.mu.Unlock()
	<-v.listed
	return v.volume.readDir(o)
}

func TestClientsComeAgainWhileASearchLasts(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, dir: dir, cfg: Config{Root: dir, HandleKey: testKey, Squash: SquashNone}, session: new(int)}
		w.as(uint32(os.Getuid()), uint32(os.Getgid()))
		w.start()
		w.put("a/b/file", "data")
		fh := w.fh("a", "b", "file")
		w.put("gone", "")
		gone := w.fh("gone")
		w.restart()
		defer w.server.Close()
		must(t, os.Remove(w.path("gone")))
		slow := &slowVolume{volume: w.server.vol, listed: make(chan struct{})}
		w.server.tree.vol = slow

		start := time.Now()
		wants(t, "READ", w.read(fh, 0, 9).Stat, nfs.ErrJukebox)
		if waited := time.Since(start); waited != patience {
			t.Errorf("answered after %v, want %v", waited, patience)
		}
		close(slow.listed)
		synctest.Wait()
		if res := w.read(fh, 0, 9); string(res.Data) != "data" {
			t.Errorf("READ again: %v %q", res.Stat, res.Data)
		}

		_, stat := w.getattr(gone)
		wants(t, "what is not there", stat, nfs.ErrStale)
		lists := slow.lists
		for range 5 {
			_, stat = w.getattr(gone)
			wants(t, "what is not there", stat, nfs.ErrStale)
		}
		if slow.lists != lists {
			t.Error("what was not found is looked for again at once")
		}
		time.Sleep(lostFor)
		must(t, os.WriteFile(w.path("gone"), nil, 0o666))
		if _, stat = w.getattr(gone); stat != nfs.ErrStale || slow.lists == lists {
			t.Errorf("later: %v, %d directories listed, %d before", stat, slow.lists, lists)
		}
	})
}

func TestASearchEndsWithTheServer(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, dir: dir, cfg: Config{Root: dir, HandleKey: testKey, Squash: SquashNone}, session: new(int)}
		w.as(uint32(os.Getuid()), uint32(os.Getgid()))
		w.start()
		w.put("a/file", "data")
		fh := w.fh("a", "file")
		w.restart()
		slow := &slowVolume{volume: w.server.vol, listed: make(chan struct{})}
		w.server.tree.vol = slow
		done := make(chan nfs.Stat)
		go func() { done <- w.read(fh, 0, 9).Stat }()
		synctest.Wait()
		w.server.tree.search.cancel()
		wants(t, "READ", <-done, nfs.ErrJukebox)
		close(slow.listed)
		w.server.Close()
	})
}
