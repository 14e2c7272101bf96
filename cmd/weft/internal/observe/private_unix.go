//go:build unix

// Sockets of Unix that only this user may connect to.

package observe

import (
	"context"
	"net"
	"os"
	"path/filepath"
)

// listenPrivate listens on a socket with mode 0600 from the first moment on: it is made in
// a directory for this user alone, and renamed.
func listenPrivate(ctx context.Context, path string) (net.Listener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".weft-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	at := filepath.Join(dir, "s")
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "unix", at)
	if err != nil {
		return nil, err
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	if err = os.Chmod(at, 0o600); err == nil {
		err = os.Link(at, path) // fails if there is anything, as rename does not
	}
	if err != nil {
		ln.Close()
		return nil, err
	}
	return &private{ln, path}, nil
}
