package folder

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/origin"
)

// A crowd is a volume with synthetic directories, whose order changes with each reading and
// whose positions are not stable.
type crowd struct {
	volume
	entries []string

	mu    sync.Mutex
	reads int
}

type crowdDir struct{ v *crowd }

func (v *crowd) stableCookies() bool               { return false }
func (v *crowd) readDir(object) (dirReader, error) { return crowdDir{v}, nil }
func (crowdDir) close()                            {}

func (d crowdDir) read(cookie uint64, f func(*dirent) bool) (bool, error) {
	v := d.v
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reads++
	n := len(v.entries)
	for i := range n {
		if !f(&dirent{name: v.entries[(i+v.reads*7919)%n], ino: 1}) {
			return false, nil
		}
	}
	return true, nil
}

// crowded serves a directory with a number of names.
func crowded(t *testing.T, n int) (*world, *crowd, nfs.FH) {
	t.Helper()
	w := serve(t, Config{MaxOpen: 1})
	must(t, os.Mkdir(w.path("dir"), 0o777))
	fh := append(nfs.FH(nil), w.fh("dir")...)
	v := &crowd{volume: w.server.vol, entries: []string{".", ".."}}
	for i := range n {
		v.entries = append(v.entries, fmt.Sprintf("the name of an entry %d", i))
	}
	w.server.vol, w.server.tree.vol = v, v
	t.Cleanup(func() { w.server.vol, w.server.tree.vol = v.volume, v.volume })
	return w, v, fh
}

func (v *crowd) all() map[string]int {
	all := make(map[string]int)
	for _, name := range v.entries {
		all[name] = 1
	}
	return all
}

func TestALargeDirectoryIsReadOnceForAListing(t *testing.T) {
	w, v, dir := crowded(t, 100_000)
	calls := 0
	if got := w.list(dir, 32<<10, false, func(string) { calls++ }); !maps.Equal(got, v.all()) {
		t.Errorf("%d names, want %d", len(got), len(v.entries))
	}
	if calls < 100 || v.reads != 1 {
		t.Errorf("read %d times for %d calls", v.reads, calls)
	}
	// Listings at the same time share the windows of a directory that does not change.
	must(t, os.Chtimes(w.path("dir"), time.Now(), time.Now().Add(-time.Hour)))
	v.reads = 0
	var listing sync.WaitGroup
	for i := range 3 {
		other := *w
		other.remote = &net.TCPAddr{IP: net.IPv4(192, 0, 2, byte(10+i)), Port: 800}
		listing.Go(func() {
			if got := other.list(dir, 64<<10, false, nil); len(got) != len(v.entries) {
				t.Errorf("%d names, want %d", len(got), len(v.entries))
			}
		})
	}
	nettest.AwaitGroup(t, &listing)
	if v.reads > 3 {
		t.Errorf("read %d times for three listings", v.reads)
	}
}

// A directory that exceeds the memory is read in parts.
func TestListingsAreBoundedInOctets(t *testing.T) {
	w, v, dir := crowded(t, 20_000)
	l := &w.server.tree.listings
	l.window, l.max = 100<<10, 250<<10
	if got := w.list(dir, 4096, false, func(string) {
		if l.size > l.max {
			t.Fatalf("%d octets are kept", l.size)
		}
	}); !maps.Equal(got, v.all()) {
		t.Errorf("%d names, want %d", len(got), len(v.entries))
	}
	var octets int64
	for _, name := range v.entries {
		octets += entrySize + int64(len(name))
	}
	if want := int(octets/l.window) + 2; v.reads > want {
		t.Errorf("read %d times, want %d at most", v.reads, want)
	}
	w.closeAll()
	if l.size != 0 || len(l.dirs)+len(l.shares) != 0 {
		t.Errorf("after a minute: %d octets, %d directories, %d shares", l.size, len(l.dirs), len(l.shares))
	}
}

// A client that lists many directories does not evict the windows of others.
func TestListingsAreSharedAmongHosts(t *testing.T) {
	w, v, dir := crowded(t, 1000)
	l := &w.server.tree.listings
	l.max = 5 * 100 << 10
	part := w.readdir(dir, 0, nfs.Verifier{}, 4096)
	cookie := part.Entries[len(part.Entries)-1].Cookie

	greedy := *w
	greedy.remote = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 66), Port: 800}
	for i := range 50 {
		name := fmt.Sprint("dir", i)
		must(t, os.Mkdir(w.path(name), 0o777))
		greedy.readdir(greedy.fh(name), 0, nfs.Verifier{}, 4096)
	}
	if l.size > l.max || l.size < l.max/2 {
		t.Errorf("%d octets are kept of %d", l.size, l.max)
	}
	v.reads = 0
	for range 10 {
		part := w.readdir(dir, cookie, part.Verf, 4096)
		cookie = part.Entries[len(part.Entries)-1].Cookie
	}
	if v.reads != 0 {
		t.Errorf("read %d times", v.reads)
	}
	var sum int64
	windows := 0
	for _, all := range l.dirs {
		for _, w := range all {
			sum += w.size
			windows++
		}
	}
	listed := 0
	for _, h := range l.shares {
		listed += h.order.Len()
	}
	if sum != l.size || listed != windows {
		t.Errorf("%d octets in %d windows, counted %d in %d", sum, windows, l.size, listed)
	}
}

// A new listing contains all that was made before it began, even if the directory was listed
// shortly before.
func TestAListingHasWhatWasMadeBeforeItBegan(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		must(t, os.Mkdir(w.path("dir"), 0o777))
		dir := w.fh("dir")
		w.server.tree.listings.window = 1 << 10
		for i := range 200 {
			name := fmt.Sprint("name", i)
			w.put("dir/"+name, "")
			if i%10 != 0 {
				continue
			}
			if got := w.list(dir, 512, false, nil); len(got) != i+3 || got[name] != 1 {
				t.Fatalf("%d entries after %d were made, %s %d times", len(got), i+1, name, got[name])
			}
		}
	})
}

// One host or local user that has many directories read does not make others wait for
// all of them.
func TestAGateLetsInOneOfEachHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		g.start(2)
		var mu sync.Mutex
		var order []string
		leave := make(chan func(), 100)
		shares := map[string]origin.Share{
			"a": of(2000, 2000).Share(), "b": of(2001, 2001).Share(), // users of this machine
			"c": elsewhere.Share(), "d": somebody.Share(),
		}
		enter := func(ctx context.Context, name string) {
			out, err := g.enter(ctx, shares[name])
			if err != nil {
				return
			}
			mu.Lock()
			order = append(order, name)
			mu.Unlock()
			leave <- out
		}
		for range 10 {
			go enter(t.Context(), "a")
		}
		synctest.Wait()
		go enter(t.Context(), "b")
		go enter(t.Context(), "c")
		synctest.Wait()
		if slices.Sort(order); len(order) != 2 || order[0] != "a" || order[1] == "a" {
			t.Errorf("let in at first: %v", order)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go enter(ctx, "d")
		synctest.Wait()
		cancel()
		for range 12 {
			(<-leave)()
		}
		synctest.Wait()
		if len(order) != 12 || len(g.turns) != 0 || len(g.slots) != 0 {
			t.Errorf("let in: %v; %d shares and %d slots are left", order, len(g.turns), len(g.slots))
		}
	})
}
