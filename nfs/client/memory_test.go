//go:build unix

package client_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/pages/pagestest"
	"github.com/weft-rdma/weft/nfs/client"
)

// If the memory that a caller passes cannot be read or written, the call that uses it fails.
// Other calls, also those in flight, succeed.
func TestMemoryThatFaultsIsAnErrorOfItsCall(t *testing.T) {
	eachTransport(t, func(t *testing.T, dir string, f *client.FS) {
		page := pagestest.Page
		content := bytes.Repeat([]byte("Hello."), 1<<20/6)
		if err := os.WriteFile(filepath.Join(dir, "file"), content, 0o644); err != nil {
			t.Fatal(err)
		}
		file, err := f.Open(t.Context(), "file")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()

		others := make(chan error, 1)
		stop := make(chan struct{})
		go func() {
			others <- func() error {
				p := make([]byte, len(content))
				for {
					select {
					case <-stop:
						return nil
					default:
					}
					if _, err := file.ReadAt(ctx, p, 0); err != nil || !bytes.Equal(p, content) {
						return fmt.Errorf("another call was disturbed: %w", err)
					}
				}
			}()
		}()

		readOnly, none, cut := pagestest.ReadOnly(t, 100), pagestest.NoAccess(t, 100), pagestest.Truncated(t, 1, 100)
		w := file.NewWriter(ctx, 0)
		r := file.NewReader(ctx, 0)
		use := map[string]func(p []byte) error{
			"ReadAt":  func(p []byte) error { _, err := file.ReadAt(ctx, p, 0); return err },
			"WriteAt": func(p []byte) error { _, err := file.WriteAt(ctx, p, 0); return err },
			"Read":    func(p []byte) error { _, err := r.Read(p); return err },
			"Write":   func(p []byte) error { _, err := w.Write(p); return err },
		}
		for _, test := range []struct {
			name string
			p    []byte
			read bool
		}{
			{"read only", readOnly, true}, {"read only, little", readOnly[5:300], true}, {"no access", none, false},
			{"no access, little", none[page-7 : page+3], false}, {"truncated", cut, false}, {"truncated, a little", cut[page-100 : page+100], false},
		} {
			for name, do := range use {
				if strings.HasPrefix(name, "Write") && test.read {
					continue
				}
				if err := do(test.p); err == nil || !strings.Contains(err.Error(), "cannot be accessed") {
					t.Errorf("%s, %s: %v, expected that memory cannot be accessed", name, test.name, err)
				}
			}
		}
		w.Abort()
		r.Close()
		close(stop)
		if err := nettest.Await(t, others); err != nil {
			t.Error(err)
		}
	})
}
