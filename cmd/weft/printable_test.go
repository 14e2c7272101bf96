package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"testing"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/client"
)

func TestMessagesGiveNoOrdersToATerminal(t *testing.T) {
	for message, want := range map[string]string{
		"LOOKUP /caf\u00e9: no such file":     "LOOKUP /caf\u00e9: no such file",
		`"quoted" \ as it is`:                 `"quoted" \ as it is`,
		"READ /\x1b[2J\"a\": I/O error\nthen": `READ /\x1b[2J"a": I/O error` + "\nthen",
		"/caf\xe9 -> \u009b2J\u202e":          `/caf\xe9 -> \u009b2J\u202e`,
		"":                                    "",
	} {
		if got := plain(message); got != want {
			t.Errorf("%q is shown as %q, want %q", message, got, want)
		}
	}
}

// A name that a server has chosen makes no line of its own, wherever an error has it.
func TestNamesInMessagesStayOnTheirLine(t *testing.T) {
	const name, shown = "out/a\nweft cp: all is well\x1b[2J", `'out/a'$'\n''weft cp: all is well'$'\033''[2J'`
	place := files.Place{Tree: files.Local{}, Path: name}
	denied := fs.ErrPermission
	for want, err := range map[string]error{
		"open " + shown + ": permission denied":             &fs.PathError{Op: "open", Path: name, Err: denied},
		"rename " + shown + " out/b: permission denied":     &os.LinkError{Op: "rename", Old: name, New: "out/b", Err: denied},
		"LOOKUP " + shown + ": " + nfs.ErrAcces.Error():     &client.Error{Proc: "LOOKUP", Path: name, Err: nfs.ErrAcces},
		shown + ": permission denied":                       fmt.Errorf("%v: %w", place, denied),
		"a: remove " + shown + ": permission denied\nb: no": errors.Join(fmt.Errorf("a: %w", &fs.PathError{Op: "remove", Path: name, Err: denied}), errors.New("b: no")),
		"open my file: permission denied":                   &fs.PathError{Op: "open", Path: "my file", Err: denied},
		`nfs://h/a\nb: permission denied`:                   fmt.Errorf("%s: %w", "nfs://h/a\nb", denied),
		`x: dial: lookup a\nb: no such host`:                fmt.Errorf("x: %w", &net.OpError{Op: "dial", Err: &net.DNSError{Name: "a\nb", Err: "no such host"}}),
		"in: one\ntwo: done":                                fmt.Errorf("in: %w: done", errors.Join(errors.New("one"), errors.New("two"))),
	} {
		if got := message(err); got != want {
			t.Errorf("%q is shown as\n%s\nwant\n%s", err, got, want)
		}
	}
}
