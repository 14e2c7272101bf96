package probes

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestWhatIsRefusedHasAReason(t *testing.T) {
	library := library(t)
	program := linked(t, library, "refused")
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+library, "WEFT_PERSONA=rc", "WEFT_DEBUG=1", "WEFT_VERBOSE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	text := string(out)
	for _, call := range []string{
		"create_qp", "alloc_dm", "open_xrcd", "create_wq", "create_counters", "create_ah_from_wc", "import_dm", "import_device", "modify_cq",
	} {
		if strings.Count(text, "weft: ibv_"+call+": ") != 1 {
			t.Errorf("there is no reason for ibv_%s:\n%s", call, text)
		}
	}
	if !strings.Contains(text, "9 verbs were refused") {
		t.Error(text)
	}
}
