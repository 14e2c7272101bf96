package probes

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestTheEngineEndsBeforeAnotherThreadEndsTheProcess(t *testing.T) {
	library := library(t)
	cmd := exec.Command(linked(t, library, "leaving"))
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+library, "WEFT_VERBOSE=1")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "queue pairs") != 1 {
		t.Errorf("%v, and the program said %q", err, out)
	}
}
