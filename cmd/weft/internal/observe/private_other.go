//go:build !unix

package observe

import (
	"context"
	"net"
)

// listenPrivate listens on a socket of Unix, which the directory's rights protect.
func listenPrivate(ctx context.Context, path string) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "unix", path)
}
