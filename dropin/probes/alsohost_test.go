package probes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestDevicesOfTheHostAreBehindWefts(t *testing.T) {
	library := library(t)
	program := linked(t, library, "alsohost")
	host := linked(t, library, "host", "-shared", "-fPIC", "-Wl,-soname,libibverbs.so.1", "-Wl,--as-needed")
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+library, "WEFT_ALSO_HOST="+host)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAHostWithoutALibraryIsSaid(t *testing.T) {
	library := library(t)
	program := linked(t, library, "alsohost")
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+library, "WEFT_ALSO_HOST="+filepath.Join(t.TempDir(), "none.so"))
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "weft: the devices of the host are left out: ") {
		t.Errorf("%v\n%s", err, out)
	}
}
