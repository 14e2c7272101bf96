//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAConfigurationIsARegularFile(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, dir} {
		if _, err := readServeFile(name); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
