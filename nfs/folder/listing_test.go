package folder

import (
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/weft-rdma/weft/nfs"
)

func (w *world) readdir(dir nfs.FH, cookie uint64, verf nfs.Verifier, count uint32) nfs.ReaddirRes {
	w.t.Helper()
	var res nfs.ReaddirRes
	w.call(nfs.ProcReaddir, &nfs.ReaddirArgs{Dir: dir, Cookie: cookie, Verf: verf, Count: count}, &res)
	return res
}

func (w *world) readdirplus(dir nfs.FH, cookie uint64, verf nfs.Verifier, dircount, maxcount uint32) nfs.ReaddirplusRes {
	w.t.Helper()
	var res nfs.ReaddirplusRes
	w.call(nfs.ProcReaddirplus, &nfs.ReaddirplusArgs{Dir: dir, Cookie: cookie, Verf: verf, DirCount: dircount, MaxCount: maxcount}, &res)
	return res
}

// list counts how often each name occurs in a listing with replies of count octets. Between
// two replies it calls f, if that is not nil, with the last name.
func (w *world) list(dir nfs.FH, count uint32, plus bool, f func(string)) map[string]int {
	w.t.Helper()
	names := make(map[string]int)
	var cookie uint64
	var verf nfs.Verifier
	for range 10_000 {
		var l nfs.Listing
		if plus {
			l = w.readdirplus(dir, cookie, verf, count, count).Listing
		} else {
			l = w.readdir(dir, cookie, verf, count).Listing
		}
		if l.Stat != nfs.OK {
			w.t.Fatalf("at cookie %d: %v", cookie, l.Stat)
		}
		for _, e := range l.Entries {
			names[e.Name]++
			cookie = e.Cookie
		}
		verf = l.Verf
		if l.EOF {
			return names
		}
		if len(l.Entries) == 0 {
			w.t.Fatal("an empty part of a listing that has not ended")
		}
		if f != nil {
			f(l.Entries[len(l.Entries)-1].Name)
		}
	}
	w.t.Fatal("a listing without end")
	return nil
}

func TestListingsHaveEveryNameOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		want := map[string]int{".": 1, "..": 1}
		for i := range 5000 {
			name := fmt.Sprintf("%d entry %0*d", i, i%200, i)
			want[name] = 1
			w.put("dir/"+name, "")
		}
		dir := w.fh("dir")
		for _, count := range []uint32{4096, math.MaxUint32} {
			for _, plus := range []bool{false, true} {
				if got := w.list(dir, count, plus, nil); !maps.Equal(got, want) {
					t.Errorf("count %d, plus %v: %d names, want %d", count, plus, len(got), len(want))
				}
			}
		}
	})
}

// After every third part of the listing, files of it are deleted and made, and the server is
// restarted.
func TestCookiesLastWhileADirectoryChanges(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		const n = 1000
		for i := range n {
			w.put(fmt.Sprintf("dir/%04d", i), "")
		}
		dir := w.fh("dir")
		parts, deleted := 0, 0
		seen := make(map[string]int)
		var cookie uint64
		var verf nfs.Verifier
		for end := false; !end; {
			l := w.readdir(dir, cookie, verf, 1024)
			if l.Stat != nfs.OK {
				t.Fatal(l.Stat)
			}
			for _, e := range l.Entries {
				seen[e.Name]++
				cookie = e.Cookie
			}
			verf, end = l.Verf, l.EOF
			switch parts++; parts % 3 {
			case 0:
				for _, e := range l.Entries {
					if e.Name != "." && e.Name != ".." {
						wants(t, "REMOVE", w.remove(dir, e.Name), nfs.OK)
						deleted++
					}
				}
			case 1:
				w.put(fmt.Sprintf("dir/new %d", parts), "")
			case 2:
				w.restart()
			}
		}
		for i := range n {
			if name := fmt.Sprintf("%04d", i); seen[name] != 1 {
				t.Errorf("%s was seen %d times", name, seen[name])
			}
		}
		if deleted == 0 || parts < 20 {
			t.Errorf("%d deleted in %d parts: not much of a test", deleted, parts)
		}
	})
}

func TestListingsKeepToTheirCounts(t *testing.T) {
	w := serve(t, Config{})
	for i := range 100 {
		w.put(fmt.Sprintf("dir/%0*d", 1+i%20, i), "")
	}
	dir := w.fh("dir")
	for count := uint32(0); count < 1500; count += 4 {
		for _, plus := range []bool{false, true} {
			proc := nfs.ProcReaddir
			var args encoder = &nfs.ReaddirArgs{Dir: dir, Count: count}
			if plus {
				proc, args = nfs.ProcReaddirplus, &nfs.ReaddirplusArgs{Dir: dir, DirCount: count, MaxCount: count}
			}
			b, err := w.try(proc, args)
			must(t, err)
			var res nfs.ReaddirRes
			if plus {
				var p nfs.ReaddirplusRes
				w.results(b, &p)
				res.Listing = p.Listing
			} else {
				w.results(b, &res)
			}
			switch {
			case res.Stat == nfs.ErrTooSmall && count < 400:
			case res.Stat != nfs.OK:
				t.Fatalf("count %d: %v", count, res.Stat)
			case len(b)-24-4 > int(count): // without the reply's header and the status
				t.Fatalf("%v with count %d: %d octets", proc, count, len(b)-24-4)
			case len(res.Entries) == 0:
				t.Fatalf("%v with count %d: no entries", proc, count)
			}
		}
	}
	if l := w.readdirplus(dir, 0, nfs.Verifier{}, 100, 64<<10); l.Stat != nfs.OK || len(l.Entries) == 0 || len(l.Entries) > 3 {
		t.Errorf("dircount 100: %v, %d entries", l.Stat, len(l.Entries))
	}
}

func TestCookiesOfNoListingAreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("dir/file", "")
		dir := w.fh("dir")
		l := w.readdir(dir, 0, nfs.Verifier{}, 4096)
		last := l.Entries[len(l.Entries)-1].Cookie
		if l := w.readdir(dir, last, l.Verf, 4096); l.Stat != nfs.OK || len(l.Entries) != 0 || !l.EOF {
			t.Errorf("behind the end: %+v", l)
		}
		wants(t, "another verifier", w.readdir(dir, last, nfs.Verifier{1}, 4096).Stat, nfs.ErrBadCookie)
		if got := w.readdir(dir, math.MaxUint64, l.Verf, 4096); got.Stat != nfs.ErrBadCookie && len(got.Entries) != 0 {
			t.Errorf("a cookie that is none: %+v", got)
		}
		wants(t, "of a file", w.readdir(w.fh("dir", "file"), 0, nfs.Verifier{}, 4096).Stat, nfs.ErrNotDir)
	})
}

func TestListingsTellWhatLookupsWould(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("dir/file", "data")
		must(t, os.Symlink("file", w.path("dir", "link")))
		for _, names := range [][]string{nil, {"dir"}} {
			dir := w.fh(names...)
			ids := make(map[string]uint64)
			for _, e := range w.readdir(dir, 0, nfs.Verifier{}, 4096).Entries {
				ids[e.Name] = e.FileID
			}
			plus := w.readdirplus(dir, 0, nfs.Verifier{}, 4096, 4096).Entries
			if len(plus) != len(ids) {
				t.Errorf("%q: %d and %d entries", names, len(ids), len(plus))
			}
			for _, e := range plus {
				found := w.lookup(dir, e.Name)
				if !e.Attr.Follows || !e.Object.Follows || e.Object.FH.String() != found.Object.String() || e.Attr.Attr != found.Attr.Attr {
					t.Errorf("%q/%s: %+v, LOOKUP says %+v", names, e.Name, e, found)
				}
				if e.FileID != found.Attr.Attr.FileID || ids[e.Name] != e.FileID {
					t.Errorf("%q/%s: file ids %d, %d, %d", names, e.Name, ids[e.Name], e.FileID, found.Attr.Attr.FileID)
				}
			}
		}
	})
}

func TestNamesAreOctets(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("names are text here")
	}
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		names := []string{"\xff\xfe", "caf\xe9", "a\nb", " ", "...", "-rf *", "\x01"}
		for _, name := range names {
			wants(t, "CREATE", w.create(w.root(), name, 0o600).Stat, nfs.OK)
			if _, err := os.Lstat(w.path(name)); err != nil {
				t.Error(err)
			}
		}
		got := slices.Sorted(maps.Keys(w.list(w.root(), 4096, true, nil)))
		if want := slices.Sorted(slices.Values(append(names, ".", ".."))); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
