package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A runner that cancels a job sends a signal to its script.
func TestAJobThatIsCancelledLeavesNothing(t *testing.T) {
	const shell = "sh"
	tmp, bin, script := t.TempDir(), t.TempDir(), filepath.Join("ci", "job.sh")
	pkg := filepath.Join(bin, "weft.deb")
	for name, text := range map[string]string{
		pkg: "",
		// Unpacks a weft that runs the command behind "run --".
		filepath.Join(bin, "dpkg-deb"): "#!/bin/sh\n" + `mkdir -p "$3/usr/bin" && printf '#!/bin/sh\nshift 2\nexec "$@"\n' >"$3/usr/bin/weft" && chmod +x "$3/usr/bin/weft"`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what, command string
		status        int
	}{{"ends", "exit 5", 5}, {"is cancelled", "kill -TERM $PPID", 143}, {"is interrupted", "kill -INT $PPID", 130}} {
		cmd := exec.Command(shell, script, pkg, shell, "-c", c.command)
		cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, _ := cmd.CombinedOutput() // it fails by intention
		if got := cmd.ProcessState.ExitCode(); got != c.status {
			t.Errorf("a job that %s: status %d, expected %d: %s", c.what, got, c.status, out)
		}
		if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) > 0 {
			t.Errorf("a job that %s leaves %v", c.what, left)
			os.RemoveAll(left[0])
		}
	}
}
