package dropin

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// FindProgram returns the file of a program, or why the library cannot be given to it.
func FindProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		return "", fmt.Errorf("%s is set-uid or set-gid: the system takes no library for it from a user", path)
	}
	f, err := elf.Open(path)
	if err != nil {
		return path, nil // a script: what it starts is given the library
	}
	defer f.Close()
	if !runsHere(f) {
		return "", fmt.Errorf("%s is for another processor (%v, %v): the library is built for %s", path, f.Class, f.Machine, runtime.GOARCH)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is linked statically: it loads no library", path)
}
