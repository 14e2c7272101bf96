package probes

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestAProgramSurvivesADefectOfTheEngine(t *testing.T) {
	library := library(t)
	shared := filepath.Join("testdata", "probe")
	program := compile(t, "-O1", filepath.Join("testdata", "defect.c"), filepath.Join(shared, "connect.c"), filepath.Join(shared, "work.c"),
		filepath.Join(library, "libibverbs.so.1"))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+library, "WEFT_PERSONA=rc")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !bytes.HasPrefix(out, []byte("weft: a defect of the engine: epoll_wait: ")) || bytes.Count(out, []byte("\n")) != 1 {
		t.Errorf("expected one line about the defect:\n%s", out)
	}
}
