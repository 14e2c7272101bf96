package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestStateLiesInTheFolderOfTheUser(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("this system has a directory of its own for it")
	}
	home, state := t.TempDir(), t.TempDir()
	want := map[string]string{
		state:        filepath.Join(state, "weft"),
		"":           filepath.Join(home, ".local", "state", "weft"),
		"not/rooted": filepath.Join(home, ".local", "state", "weft"),
	}
	t.Setenv("HOME", home)
	t.Setenv("STATE_DIRECTORY", "")
	for xdg, dir := range want {
		if os.Geteuid() == 0 {
			dir = "/var/lib/weft"
		}
		t.Setenv("XDG_STATE_HOME", xdg)
		if got := stateDir(); got != dir {
			t.Errorf("with XDG_STATE_HOME=%q: %s, want %s", xdg, got, dir)
		}
	}
	if runtime.GOOS == "linux" {
		t.Setenv("STATE_DIRECTORY", "/var/lib/service:/var/lib/more")
		if got := stateDir(); got != "/var/lib/service" {
			t.Errorf("as a service of systemd: %s", got)
		}
	}
}
