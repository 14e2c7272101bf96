package probes

import (
	"os"
	"os/exec"
	"testing"
)

func TestAnRCDeviceDoesWhatHardwareDoes(t *testing.T) {
	library := library(t)
	program := linked(t, library, "verbs")
	for _, probe := range []string{"access", "rnr", "late", "null", "regions", "domains", "limit", "versions"} {
		t.Run(probe, func(t *testing.T) {
			cmd := exec.Command(program, probe)
			cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+library, "WEFT_PERSONA=rc")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
