package files

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/rpctest"
)

func TestAnInterruptedCopyGoesOn(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		fill := func(dir string, files map[string]string) {
			for name, data := range files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := map[string]string{"d/a": "first", "d/b": "second", "d/e/c": "third", "d/empty": ""}
		fill(w.src, want)
		when := time.Date(2011, 2, 3, 4, 5, 6, 123456789, time.UTC)
		for name := range want {
			if err := os.Chtimes(filepath.Join(w.src, name), when, when); err != nil {
				t.Fatal(err)
			}
		}
		check := func(what string, c *Copier, skipped int) {
			t.Helper()
			copied := 0
			c.Copied = func(_, _ fmt.Stringer) { copied++ }
			w.mustCopy(t, c, "d")
			if c.Skipped() != skipped || copied != len(want)-skipped {
				t.Errorf("%s: %d were skipped and %d copied, want %d of %d skipped", what, c.Skipped(), copied, skipped, len(want))
			}
			got := listTree(t, w.dst)
			for name, data := range want {
				if got[name] != data {
					t.Errorf("%s: %s is %q", what, name, got[name])
				}
			}
		}
		resume := func() *Copier { return &Copier{Recursive: true, Resume: true} }
		check("at first", resume(), 0)
		check("again", resume(), 4)

		fill(w.dst, map[string]string{"d/a": "other", "d/b": "secon"}) // another time, another size
		if err := os.Chtimes(filepath.Join(w.dst, "d/b"), when, when); err != nil {
			t.Fatal(err)
		}
		check("with two that are not right", resume(), 2)

		fill(w.dst, map[string]string{"d/a": "wrong"})
		if err := os.Chtimes(filepath.Join(w.dst, "d/a"), when, when); err != nil {
			t.Fatal(err)
		}
		check("by content", &Copier{Recursive: true, Resume: true, Checksum: true}, 3)
		for name := range want { // as a copy without -p leaves them
			if err := os.Chtimes(filepath.Join(w.dst, name), time.Now(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		check("by content, of other times", &Copier{Recursive: true, Resume: true, Checksum: true}, 4)
		check("by time, of other times", resume(), 0)
		check("not at all", &Copier{Recursive: true}, 0)
	})
}

func TestTimesAreTheSameAsFarAsTheyAreKept(t *testing.T) {
	at := time.Date(2011, 2, 3, 4, 5, 6, 123456789, time.UTC)
	for _, tt := range []struct {
		other time.Time
		same  bool
	}{
		{at, true},
		{at.Truncate(time.Microsecond), true},
		{at.Truncate(time.Second), true},
		{at.Add(time.Microsecond), false},
		{at.Add(time.Second), false},
		{at.Truncate(time.Second).Add(time.Second), false},
		{at.Truncate(time.Millisecond), false},
		{time.Time{}, false},
	} {
		if got := sameTime(at, tt.other); got != tt.same || sameTime(tt.other, at) != got {
			t.Errorf("%v and %v: %v", at, tt.other, got)
		}
	}
}

func TestStandardInputBecomesAFile(t *testing.T) {
	data := bytes.Repeat([]byte("stream"), 200_000)
	for name, tt := range map[string]struct {
		preserve bool
		there    string
	}{"a new one": {}, "one with -p": {preserve: true}, "in place of another": {there: "old"}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			to := serve(t, dir, everything, rpctest.OverRDMA, nil)
			if tt.there != "" {
				if err := os.WriteFile(filepath.Join(dir, "file"), []byte(tt.there), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			in := &Stdin{R: bytes.NewReader(data)}
			if failed, err := run(t, &Copier{Preserve: tt.preserve, Umask: Umask()}, in, to, "file", "-"); err != nil || failed != nil {
				t.Fatal(err, failed)
			}
			got, err := os.ReadFile(filepath.Join(dir, "file"))
			info, _ := os.Stat(filepath.Join(dir, "file"))
			if err != nil || !bytes.Equal(got, data) || info.Mode() != 0o666&^Umask() {
				t.Errorf("%d bytes, %v, %v", len(got), info.Mode(), err)
			}
		})
	}
	dir := t.TempDir()
	failed, err := run(t, new(Copier), &Stdin{R: strings.NewReader("data")}, Local{}, dir, "-")
	if err != nil || len(failed) != 1 || !strings.Contains(failed[0].Error(), "is a directory") {
		t.Errorf("into a directory: %v, %v", err, failed)
	}
}

func TestAFileGoesToStandardOutput(t *testing.T) {
	dir := tree(t, map[string]string{"file": strings.Repeat("data", 100_000), "d/a": "1"})
	from := serve(t, dir, everything, rpctest.OverTCP, nil)
	var out bytes.Buffer
	if failed, err := run(t, new(Copier), from, &Stdout{W: &out}, "-", "/file"); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if out.String() != strings.Repeat("data", 100_000) {
		t.Errorf("%d bytes", out.Len())
	}
	// A directory is none, and there is nothing else in it.
	if failed, err := run(t, &Copier{Recursive: true}, from, &Stdout{W: &out}, "-", "/d"); err != nil || len(failed) == 0 {
		t.Errorf("%v, %v", err, failed)
	}
	if out.Len() != 400_000 {
		t.Errorf("%d bytes", out.Len())
	}
}

// Nobody waits for standard input after an interrupt, and no part stays.
func TestAnInterruptEndsStandardInput(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, feed := io.Pipe()
	defer feed.Close()
	dst := t.TempDir()
	c := new(Copier)
	plan, err := c.Plan(ctx, []Place{{&Stdin{R: in}, "-"}}, Place{Local{}, filepath.Join(dst, "file")})
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	c.Progress = func(n int64) {
		if n > 0 {
			close(read)
		}
	}
	done := make(chan error)
	go func() { done <- c.Run(ctx, plan) }()
	if _, err := feed.Write([]byte("the beginning")); err != nil {
		t.Fatal(err)
	}
	nettest.Await(t, read) // and there is no more
	cancel()
	if err := nettest.Await(t, done); err == nil {
		t.Error("it came to an end")
	}
	if got := listTree(t, dst); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}

// A sized tree has a file for each size.
type sized struct {
	Local
	sizes map[string]int64
}

func (s *sized) Lstat(_ context.Context, name string) (*Info, error) {
	return &Info{Name: name, Size: s.sizes[name]}, nil
}

// Sizes are what a server says.
func TestSizesThatCannotBeDoNotOverflow(t *testing.T) {
	for _, verify := range []bool{false, true} {
		c := &Copier{Verify: verify}
		from := &sized{sizes: map[string]int64{"a": math.MaxInt64, "b": math.MaxInt64, "c": -5, "d": 1}}
		var sources []Place
		for name := range from.sizes {
			sources = append(sources, Place{from, name})
		}
		p, err := c.Plan(t.Context(), sources, Place{Local{}, t.TempDir()})
		if err != nil || p.Bytes != math.MaxInt64 || c.Work(p) < math.MaxInt64/3*3 {
			t.Errorf("%+v, %d of work, %v", p, c.Work(p), err)
		}
	}
}

// A directory that could not be made is tried again for another source.
func TestEachSourceHasItsOwnFailure(t *testing.T) {
	base := tree(t, map[string]string{"one/d/a": "1", "two/d/b": "2"})
	dst := t.TempDir()
	tries := 0
	to := &flawed{fail: func(op, name string) error {
		if op == "mkdir" && name == "d" {
			if tries++; tries == 1 {
				return os.ErrPermission
			}
		}
		return nil
	}}
	failed, err := run(t, &Copier{Recursive: true}, Local{}, to, dst, filepath.Join(base, "one/d"), filepath.Join(base, "two/d"))
	if err != nil || len(failed) != 1 {
		t.Errorf("%v, %v", err, failed)
	}
	if got := listTree(t, dst); got["d/b"] != "2" || len(got) != 1 {
		t.Errorf("%q", got)
	}
}
