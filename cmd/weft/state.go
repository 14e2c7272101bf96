// This file chooses the directory for state that outlives the command.

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// stateDir returns the directory for state of this user, "" if there is none. For a
// systemd service it is that of StateDirectory=.
func stateDir() string {
	service, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":")
	switch {
	case filepath.IsAbs(service):
		if real, err := filepath.EvalSymlinks(service); err == nil {
			return real // with DynamicUser= it is a link
		}
		return service
	case runtime.GOOS == "windows":
		return below(os.UserCacheDir()) // %LocalAppData%
	case runtime.GOOS == "darwin" && os.Geteuid() == 0:
		return "/var/db/weft"
	case runtime.GOOS == "darwin":
		return below(os.UserConfigDir()) // ~/Library/Application Support
	case os.Geteuid() == 0:
		return "/var/lib/weft"
	}
	// The XDG Base Directory Specification ignores what is not absolute.
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "weft")
	}
	home, err := os.UserHomeDir()
	return below(filepath.Join(home, ".local", "state"), err)
}

func below(dir string, err error) string {
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "weft")
}
