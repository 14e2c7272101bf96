package dropin

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestTheHostsLibraryIsOneOfThisMachineAndNotOurs(t *testing.T) {
	if runtime.GOOS != "linux" || (runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64") {
		t.Skip("programs run on the drop-in library on Linux, on amd64 and arm64")
	}
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
