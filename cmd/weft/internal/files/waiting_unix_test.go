//go:build unix

package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
)

// fifo makes a named pipe.
func fifo(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestWaitingForTheOtherEndOfAPipeEndsWithTheContext(t *testing.T) {
	for what, open := range map[string]func(context.Context, string) error{
		"to read": func(ctx context.Context, name string) error {
			_, err := Local{}.Open(ctx, name)
			return err
		},
		"to write": func(ctx context.Context, name string) error {
			_, err := Local{}.Write(ctx, name)
			return err
		},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		name, done := fifo(t), make(chan error)
		go func() { done <- open(ctx, name) }()
		select {
		case err := <-done:
			t.Fatalf("%s: there is no other end, but it ended with %v", what, err)
		default:
		}
		cancel()
		if err := nettest.Await(t, done); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the end of the context", what, err)
		}
	}
}

func TestAFullOrEmptyPipeIsWaitedForAsLongAsTheContextLasts(t *testing.T) {
	name := fifo(t)
	other, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, cancel := context.WithCancel(context.Background())
	in, err := Local{}.Open(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := Local{}.Write(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	if _, err := io.WriteString(out, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(in, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := in.Read(make([]byte, 1))
		ended <- err
	}()
	cancel()
	if err := nettest.Await(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("reading ended with %v", err)
	}

	ctx, cancel = context.WithCancel(context.Background())
	if out, err = (Local{}).Write(ctx, name); err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	go func() {
		_, err := out.ReadFrom(bytes.NewReader(make([]byte, 4<<20)))
		ended <- err
	}()
	cancel()
	if err := nettest.Await(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("writing ended with %v", err)
	}
}
