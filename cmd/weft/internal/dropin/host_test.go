//go:build linux && (amd64 || arm64)

package dropin

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestTheHostsLibraryIsOneOfThisMachineAndNotOurs(t *testing.T) {
	ours, text, theirs := t.TempDir(), t.TempDir(), t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{ours, theirs} { // a program is as good as a library here
		in, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, Library), string(in))
	}
	write(t, filepath.Join(text, Library), "/* GNU ld script */")
	linked := t.TempDir()
	if err := os.Symlink(filepath.Join(ours, Library), filepath.Join(linked, Library)); err != nil {
		t.Fatal(err)
	}
	if got, err := hostLibrary(ours, []string{t.TempDir(), ours, linked, text, theirs}); err != nil || got != filepath.Join(theirs, Library) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := hostLibrary(ours, []string{ours, linked, text}); !errors.Is(err, ErrNoHostLibrary) {
		t.Errorf("%q, %v", got, err)
	}
}
