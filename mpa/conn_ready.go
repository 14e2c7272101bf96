// What a Conn can do before Full Operation begins.

package mpa

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/weft-rdma/weft/mpa/internal/socket"
)

// StreamMessage writes b before anything else is sent: the last octets of the
// streaming mode that goes before MPA, if the consumers have not left it (Verbs
// §6.6.1.1). It takes no longer than ctx allows; the connection's deadlines are
// cleared. When it fails the peer may have got a part of b.
func (c *Conn) StreamMessage(ctx context.Context, b []byte) error {
	if c.batch.Appended() > 0 {
		return &Error{Code: CodeClosed, Detail: "a message in streaming mode", Err: errors.New("Full Operation has begun")}
	}
	w := begin(ctx, c.nc, -1, "")
	defer w.end()
	if _, err := c.nc.Write(b); err != nil {
		return w.fault(err)
	}
	return nil
}

// Established returns nil if the connection can carry octets in both directions,
// as far as that can be told without waiting. It cannot if it was closed or reset,
// or if the peer has ended its half. The connection's deadlines are cleared.
func (c *Conn) Established() error {
	if err := c.nc.SetDeadline(time.Time{}); errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	if c.tcp == nil {
		return nil
	}
	rc, err := c.tcp.SyscallConn()
	if err != nil {
		return err
	}
	if err := socket.Established(rc); err != nil {
		return fmt.Errorf("mpa: %w", err)
	}
	return nil
}
