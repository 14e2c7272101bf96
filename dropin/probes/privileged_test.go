package probes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A program that has more rights than who starts it takes nothing from the environment: the
// recording would be a file of its starter's choice.
func TestASetUIDProgramIgnoresTheEnvironment(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a program to another user")
	}
	library := library(t)
	program := linked(t, library, "privileged", "-Wl,-rpath,"+library)
	if err := os.Chmod(program, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	recording := filepath.Join(filepath.Dir(program), "recording")
	run := func(credential *syscall.Credential) string {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), "WEFT_DEVICE=chosen0", "WEFT_PCAP="+recording)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for dir := filepath.Dir(program); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if name := run(&syscall.Credential{Uid: 65534, Gid: 65534}); name != "weft0" {
		t.Errorf("the device is called %q", name)
	}
	if _, err := os.Stat(recording); err == nil {
		t.Error("it has recorded")
	}
	if name := run(nil); name != "chosen0" {
		t.Errorf("without set-uid the device is called %q", name)
	}
}
