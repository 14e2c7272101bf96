package probes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func withView(library, persona, folder string) []string {
	return append(os.Environ(), "LD_LIBRARY_PATH="+library, "LD_PRELOAD="+filepath.Join(library, "libweft-view.so"),
		"WEFT_PERSONA="+persona, "WEFT_VIEW="+folder, "WEFT_DEBUG=1")
}

func TestTheViewSaysWhatTheDeviceSays(t *testing.T) {
	library := library(t)
	for _, flags := range [][]string{{"-O0"}, {"-O2", "-D_FORTIFY_SOURCE=2"}} {
		program := linked(t, library, "view", flags...)
		for _, persona := range []string{"rnic", "rc"} {
			cmd := exec.Command(program)
			cmd.Env = withView(library, persona, t.TempDir())
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s, %s: %v\n%s", flags, persona, err, out)
			}
		}
	}
}

// list runs ls with a view in the folder.
func list(t *testing.T, library, folder, path string) string {
	t.Helper()
	cmd := exec.Command("ls", path)
	cmd.Env = withView(library, "rc", folder)
	out, _ := cmd.CombinedOutput() // what it says is looked at
	return string(out)
}

func TestAViewIsWrittenOnceAndAgainWhenItIsMissing(t *testing.T) {
	library := library(t)
	folder := t.TempDir()
	if out := list(t, library, folder, "/tmp"); strings.Contains(out, "weft:") {
		t.Error(out)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("nobody looked, and there is %v, %v", entries, err)
	}
	for range 2 {
		for range 2 {
			if out := list(t, library, folder, "/sys/class/infiniband"); out != "weft0\n" {
				t.Error(out)
			}
		}
		entries, err := os.ReadDir(folder)
		if err != nil || len(entries) != 1 {
			t.Fatalf("there are %v, %v", entries, err)
		}
		if err := os.RemoveAll(filepath.Join(folder, entries[0].Name())); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAViewIsNotKeptWhereOthersWrite(t *testing.T) {
	library := library(t)
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if out := list(t, library, folder, "/sys/class/infiniband"); !strings.Contains(out, "cannot be written into "+folder) {
		t.Error(out)
	}
}

func TestProcessesThatLookAtOnceShareAView(t *testing.T) {
	library := library(t)
	folder := t.TempDir()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if out := list(t, library, folder, "/sys/class/infiniband"); out != "weft0\n" {
				t.Error(out)
			}
		})
	}
	all.Wait()
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("there are %v, %v", entries, err)
	}
}
