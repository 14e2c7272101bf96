// This file connects to servers, and explains why the first call failed: no server, or
// one of another protocol.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/cmd/weft/internal/files"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/binding"
	"github.com/weft-rdma/weft/nfs/client"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpctcp"
)

// caller returns the caller for the server of a URL. It connects once per server.
func (m *mounts) caller(ctx context.Context, u files.URL) (oncrpc.Caller, error) {
	if c := m.callers[u.Server()]; c != nil {
		return c, nil
	}
	connect := m.overRDMA
	if m.tcp {
		connect = m.overTCP
	}
	w, err := connect(ctx, u)
	if err != nil {
		return nil, err
	}
	m.callers[u.Server()] = w
	return w, nil
}

// overRDMA makes a caller that connects with its first call. If the first connection
// fails, so does the call; a later one is waited for.
func (m *mounts) overRDMA(_ context.Context, u files.URL) (*watch, error) {
	address := m.address(u)
	w := newWatch(address, m.timeout.contact(), m.timeout.or(0), m.notice)
	c, err := rpcrdma.NewClient(rpcrdma.ClientConfig{
		Address:     address,
		Bindings:    binding.NFS(),
		Connection:  cm.Params{TLS: m.tls.client(u.Host), Wrap: m.wrapper},
		DialTimeout: m.timeout.contact(), MaxBackoff: reconnectTime,
		Timeout: -1, RetryRejected: true, // the watch says for how long
		Retrying: w.retrying,
		Logger:   m.log,
	})
	if err != nil {
		return nil, err
	}
	w.caller = &connecting{Client: c, contact: w.contact}
	return w, nil
}

// connecting is a client that makes its first connection by one attempt for each
// call.
type connecting struct {
	*rpcrdma.Client
	contact func() // is called when there is a connection
	once    atomic.Bool
}

// Call connects first if there has been no connection yet.
func (c *connecting) Call(ctx context.Context, call *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	if !c.once.Load() {
		if err := c.Connect(ctx); err != nil {
			return nil, err
		}
		c.once.Store(true)
		c.contact()
	}
	return c.Client.Call(ctx, call)
}

// overTCP makes a caller and connects it.
func (m *mounts) overTCP(ctx context.Context, u files.URL) (*watch, error) {
	address := m.address(u)
	w := newWatch(address, m.timeout.contact(), m.timeout.or(0), m.notice)
	w.failOnDisconnect = true
	c, err := rpctcp.NewClient(rpctcp.ClientConfig{
		Address:  address,
		Reserved: true, // Linux's server wants it, where that may be
		TLS:      m.tls.client(u.Host), AnyALPN: m.anyALPN, Prog: nfs.Program, Vers: nfs.V3,
		Calls:       m.requests,
		Wrap:        m.wrapper,
		DialTimeout: m.timeout.contact(), MaxBackoff: reconnectTime,
		Retrying: w.retrying,
		Logger:   m.log,
	})
	if err != nil {
		return nil, err
	}
	if err := c.Connect(ctx); err != nil {
		c.Close()
		return nil, err
	}
	w.contact()
	w.caller = c
	return w, nil
}

// mountTCP returns a function that makes callers of MOUNT over TCP.
func (m *mounts) mountTCP(u files.URL) func(context.Context) (oncrpc.Caller, error) {
	dial := client.MountOverTCP(u.Host, m.mountPort, rpctcp.ClientConfig{Wrap: m.wrapper, DialTimeout: m.timeout.contact()})
	return func(ctx context.Context) (oncrpc.Caller, error) {
		ctx, cancel := context.WithTimeout(ctx, m.timeout.contact())
		defer cancel()
		c, err := dial(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w; give the port of MOUNT with --mount-port", err)
		}
		if m.tls.wanted() {
			m.notice("MOUNT of " + u.Host + " has a port of its own, without encryption; what it says of the export is not protected")
		}
		w := newWatch("MOUNT of "+u.Host, m.timeout.contact(), m.timeout.or(0), m.notice)
		w.caller = c
		w.contact()
		return w, nil
	}
}

// address returns the address of NFS for a URL.
func (m *mounts) address(u files.URL) string {
	port := u.Port
	switch {
	case port == 0 && m.tcp:
		port = nfs.Port
	case port == 0:
		port = nfs.PortRDMA
	}
	return net.JoinHostPort(u.Host, strconv.Itoa(int(port)))
}

// dialError explains that there is no NFS server, or one over another transport. It
// returns other errors, also about MOUNT, as they are.
func (m *mounts) dialError(u files.URL, err error) error {
	at := m.address(u)
	if err := tlsTrouble(at, err); err != nil {
		return err
	}
	var silent *silentError
	if errors.As(err, &silent) && silent.first && silent.server == at {
		return m.otherProtocol(at, err)
	}
	if !m.tcp && (errors.Is(err, mpa.ErrUnanswered) || errors.Is(err, &mpa.Error{Code: mpa.CodeStartup}) || errors.Is(err, &mpa.Error{Code: mpa.CodeClosed})) {
		return m.otherProtocol(at, err)
	}
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" || op.Addr == nil {
		return err
	}
	_, want, _ := net.SplitHostPort(at)
	if _, port, _ := net.SplitHostPort(op.Addr.String()); port != want {
		return err
	}
	switch {
	case op.Timeout():
		return fmt.Errorf("%s cannot be reached: is the host up, and does a firewall let the port through? %w", at, err)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return err
	case m.tcp:
		return fmt.Errorf("nothing listens on %s: start a server there, for example with weft serve DIR, which prints its TCP address", at)
	}
	return fmt.Errorf("nothing listens on %s: start a server there, for example with weft serve DIR, or use --tcp for a server without RDMA", at)
}

// otherProtocol explains that a peer does not answer as expected, and what to try.
func (m *mounts) otherProtocol(at string, err error) error {
	expected, try := "NFS over RDMA", "--tcp for NFS over TCP"
	if m.tcp {
		expected, try = "NFS over TCP", "NFS over RDMA, without --tcp"
	}
	return fmt.Errorf("%s accepts connections but does not answer as %s: %w; try %s, or another port: nfs://HOST:PORT/PATH", at, expected, err, try)
}
