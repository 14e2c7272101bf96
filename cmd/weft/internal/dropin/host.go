package dropin

import (
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// ErrNoHostLibrary is that the system has no libibverbs.
var ErrNoHostLibrary = errors.New("the system has no libibverbs.so.1, which knows its devices (on Debian: apt-get install libibverbs1 ibverbs-providers)")

// hostPlaces are where systems have their libraries.
var hostPlaces = []string{"/usr/lib/" + triplet(), "/lib/" + triplet(), "/usr/lib64", "/lib64", "/usr/lib", "/lib"}

// triplet is what Debian calls the architecture.
func triplet() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64-linux-gnu"
	case "arm64":
		return "aarch64-linux-gnu"
	}
	return runtime.GOARCH + "-linux-gnu"
}

// HostLibrary returns the file of the system's own libibverbs, which is not dir's.
func HostLibrary(dir string) (string, error) {
	return hostLibrary(dir, hostPlaces)
}

func hostLibrary(dir string, places []string) (string, error) {
	ours, err := os.Stat(filepath.Join(dir, Library))
	if err != nil {
		return "", err
	}
	for _, place := range places {
		name := filepath.Join(place, Library)
		info, err := os.Stat(name)
		if err != nil || os.SameFile(info, ours) || !fits(name) {
			continue
		}
		return name, nil
	}
	return "", ErrNoHostLibrary
}

// fits reports whether a library is of this machine's architecture.
func fits(name string) bool {
	f, err := elf.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return runsHere(f)
}

// runsHere reports whether a file is of this machine's architecture.
func runsHere(f *elf.File) bool {
	switch runtime.GOARCH {
	case "amd64":
		return f.Machine == elf.EM_X86_64
	case "arm64":
		return f.Machine == elf.EM_AARCH64
	}
	return false
}
