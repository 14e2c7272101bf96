package fileserver

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// Nobody can choose the port of the port mapper.
func TestAPortMapperThatCannotListenSaysWhatToDo(t *testing.T) {
	for err, want := range map[error]string{
		syscall.EADDRINUSE: "--portmap register",
		os.ErrPermission:   "without --portmap own",
		errors.New("why"):  "cannot listen on :111: why",
	} {
		if got := portMapError(":111", err).Error(); !strings.Contains(got, want) || strings.Contains(got, "choose") {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
