package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestProcessesDoNotWriteOverEachOthersRecordings(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	mine := fmt.Sprintf("%s.%d", name, os.Getpid())
	for _, c := range []struct{ before, file string }{{"", name}, {"what another process wrote", mine}} {
		if err := os.WriteFile(name, []byte(c.before), 0o644); err != nil {
			t.Fatal(err)
		}
		w, err := openRecording(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(c.file); err != nil || info.Size() < 28 { // a section header
			t.Errorf("%s: %v", c.file, err)
		}
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "what another process wrote" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestARecordingIsForItsUserAlone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	for _, file := range []string{name, fmt.Sprintf("%s.%d", name, os.Getpid())} { // the second as the first is in use
		w, err := openRecording(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
}

func TestARecordingFollowsNoLinkToAFileOfAnotherName(t *testing.T) {
	dir := t.TempDir()
	name, target := filepath.Join(dir, "file"), filepath.Join(dir, "target")
	for _, file := range []string{name, target} {
		if err := os.WriteFile(file, []byte("precious"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(target, fmt.Sprintf("%s.%d", name, os.Getpid())); err != nil {
		t.Fatal(err)
	}
	if _, err := openRecording(name); err == nil {
		t.Error("a link was followed")
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "precious" {
		t.Errorf("%q, %v", text, err)
	}
}
