package main

import (
	"io/fs"
	"testing"
)

func TestModesAreWrittenAsLsDoes(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{
		0:                                  "----------",
		0o644:                              "-rw-r--r--",
		fs.ModeDir | 0o755:                 "drwxr-xr-x",
		fs.ModeDir | fs.ModeSticky | 0o777: "drwxrwxrwt",
		fs.ModeDir | fs.ModeSticky | 0o776: "drwxrwxrwT",
		fs.ModeSymlink | 0o777:             "lrwxrwxrwx",
		fs.ModeNamedPipe | 0o600:           "prw-------",
		fs.ModeSocket | 0o755:              "srwxr-xr-x",
		fs.ModeDevice | 0o660:              "brw-rw----",
		fs.ModeDevice | fs.ModeCharDevice | 0o666: "crw-rw-rw-",
		fs.ModeSetuid | fs.ModeSetgid | 0o755:     "-rwsr-sr-x",
		fs.ModeSetuid | fs.ModeSetgid | 0o644:     "-rwSr-Sr--",
	} {
		if got := modeOf(mode); got != want {
			t.Errorf("%v: %s, want %s", mode, got, want)
		}
	}
}
