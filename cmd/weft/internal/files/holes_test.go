//go:build unix

package files

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// holey makes a file of 8 MiB with data in two places, and says whether the file
// system has holes at all.
func holey(t *testing.T, name string, end bool) (content []byte, ok bool) {
	t.Helper()
	content = make([]byte, 8<<20+777)
	copy(content[1<<20+5:], "data")
	copy(content[5<<20:], bytes.Repeat([]byte("more"), 30_000))
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err1 := f.WriteAt([]byte("data"), 1<<20+5)
	_, err2 := f.WriteAt(bytes.Repeat([]byte("more"), 30_000), 5<<20)
	if end {
		copy(content[len(content)-3:], "end")
		_, err = f.WriteAt([]byte("end"), int64(len(content)-3))
	} else {
		err = f.Truncate(int64(len(content)))
	}
	if err := errors.Join(err1, err2, err, f.Sync()); err != nil {
		t.Fatal(err)
	}
	return content, lstat(t, name).Used < 1<<20
}

func TestHolesStayThat(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		for _, end := range []bool{false, true} {
			content, ok := holey(t, filepath.Join(w.src, "file"), end)
			w.mustCopy(t, &Copier{Verify: true}, "file")
			got, err := os.ReadFile(filepath.Join(w.dst, "file"))
			if err != nil || !bytes.Equal(got, content) {
				t.Fatalf("%d bytes, want %d: %v", len(got), len(content), err)
			}
			if used := lstat(t, filepath.Join(w.dst, "file")).Used; ok && used > 1<<20 {
				t.Errorf("the copy takes %d bytes", used)
			}
		}
		// Nothing but a hole, and what has none.
		for _, size := range []int64{1 << 20, 1, 0} {
			name := fmt.Sprint("empty", size)
			write(t, filepath.Join(w.src, name), "", 0o644)
			if err := os.Truncate(filepath.Join(w.src, name), size); err != nil {
				t.Fatal(err)
			}
			w.mustCopy(t, new(Copier), name)
			if got := lstat(t, filepath.Join(w.dst, name)); got.Size != size || got.Used > 8192 {
				t.Errorf("%d bytes on %d, want %d on 0", got.Size, got.Used, size)
			}
		}
	})
}
