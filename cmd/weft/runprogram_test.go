package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestACongestionControlThatThereIsNotIsRefused(t *testing.T) {
	if err := checkCongestion("no-such"); err == nil || !strings.Contains(err.Error(), `"no-such"`) {
		t.Errorf("%v, expected an error that names it", err)
	}
}

func TestARecordingIsForItsUserAlone(t *testing.T) {
	var o runOptions
	o.PCAP = filepath.Join(t.TempDir(), "file")
	if err := o.startRecording(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(o.PCAP); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may use the file: %v, %v", info, err)
	}
}
