package confine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// tryVariable makes the test binary try what is confined, in the directory that it names.
const tryVariable = "CONFINE_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(tryVariable); dir != "" {
		try(dir)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// try prints what may be done, and what not. It does so in many goroutines, which are in
// many threads.
func try(dir string) {
	results := make(chan string)
	n := 0
	do := func(what string, f func() error) {
		n++
		go func() { results <- fmt.Sprintf("%s: %s", what, outcome(f())) }()
	}
	for _, where := range []string{"changed", "read", "closed"} {
		at := filepath.Join(dir, where)
		do(where+" list", func() error { _, err := os.ReadDir(at); return err })
		do(where+" read", func() error { _, err := os.ReadFile(filepath.Join(at, "file")); return err })
		do(where+" write", func() error { f, err := os.OpenFile(filepath.Join(at, "file"), os.O_WRONLY, 0); f.Close(); return err })
		do(where+" truncate", func() error { return os.Truncate(filepath.Join(at, "long"), 1) })
		do(where+" create", func() error { return os.WriteFile(filepath.Join(at, "new"), nil, 0o600) })
		do(where+" mkdir", func() error { return os.Mkdir(filepath.Join(at, "newdir"), 0o700) })
		do(where+" symlink", func() error { return os.Symlink("x", filepath.Join(at, "newlink")) })
		do(where+" move", func() error { return os.Rename(filepath.Join(at, "mine"), filepath.Join(at, "sub", "mine")) })
		do(where+" execute", func() error { return exec.Command(filepath.Join(at, "program")).Run() })
	}
	do("reopen", func() error { return reopen(filepath.Join(dir, "changed", "file")) })
	do("signal", func() error { return syscall.Kill(os.Getppid(), 0) })
	for range n {
		fmt.Println(<-results)
	}
}

// reopen opens a file by the name of its descriptor, as package folder does.
func reopen(path string) error {
	fd, err := unix.Open(path, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDWR, 0)
	f.Close()
	return err
}

func outcome(err error) string {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EXDEV) {
		return "denied"
	}
	if err != nil {
		return err.Error()
	}
	return "done"
}

func TestAConfinedProcessUsesWhatIsPermitted(t *testing.T) {
	version, err := Version()
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	for _, where := range []string{"changed", "read", "closed"} {
		mkdir(t, dir, where, "sub")
		for _, name := range []string{"file", "mine", "long"} {
			if err := os.WriteFile(filepath.Join(dir, where, name), []byte("text"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, where, "program"), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rules := look(t, Rule{filepath.Join(dir, "changed"), Change}, Rule{filepath.Join(dir, "read"), Read},
		Rule{self, Execute}, Rule{"/usr", Execute}, Rule{"/lib", Execute}, Rule{"/lib64", Execute}, Rule{"/proc", Read}, Rule{"/dev/null", Change})
	cmd := exec.Command(self)
	var out bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), tryVariable+"="+dir), &out, &out
	if err := Start(cmd, rules); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err, &out)
	}
	want := map[string]string{"reopen": "done", "signal": "done"}
	if version >= 6 {
		want["signal"] = "denied"
	}
	for where, allowed := range map[string]string{"changed": "list read write truncate create mkdir symlink move", "read": "list read", "closed": ""} {
		for _, what := range strings.Fields("list read write truncate create mkdir symlink move execute") {
			want[where+" "+what] = "denied"
			if version < 3 && what == "truncate" || strings.Contains(allowed, what) {
				want[where+" "+what] = "done"
			}
		}
	}
	for line := range strings.Lines(out.String()) {
		what, got, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if want[what] != got {
			t.Errorf("%s: %s, want %s", what, got, want[what])
		}
		delete(want, what)
	}
	if len(want) > 0 {
		t.Errorf("nothing is known of %v", want)
	}
}

func TestTheProcessThatStartsAConfinedOneIsFree(t *testing.T) {
	if _, err := Version(); err != nil {
		t.Skip(err)
	}
	for range 20 { // in many threads
		cmd := exec.Command("/bin/true")
		if err := Start(cmd, look(t, Rule{"/usr", Execute}, Rule{"/bin", Execute}, Rule{"/lib", Execute}, Rule{"/lib64", Execute}, Rule{"/dev/null", Change})); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(t.TempDir(), "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOldVersionsOfLandlockHandleLess(t *testing.T) {
	for version, want := range map[int]struct{ handled, scoped uint64 }{
		2: {0x3fff, 0}, 3: {0x7fff, 0}, 4: {0x7fff, 0}, 5: {0xffff, 0}, 6: {0xffff, 3}, 9: {0xffff, 3},
	} {
		if h, s := handled(version), scoped(version); h != want.handled || s != want.scoped {
			t.Errorf("version %d: %x, %x, want %+v", version, h, s, want)
		}
		for _, a := range []Access{Read, Execute, Change} {
			if m := a.mask(fs.ModeDir, version); m&^want.handled != 0 {
				t.Errorf("version %d, %d: %x", version, a, m)
			}
			if m := a.mask(0, version); m&^fileAccess != 0 {
				t.Errorf("version %d, %d: %x for a file", version, a, m)
			}
		}
	}
}
