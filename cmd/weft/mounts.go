package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/cmd/weft/internal/files"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/client"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpctcp"
)

// connectTime bounds how long a server may take to be mounted.
const connectTime = 30 * time.Second

// connectAttempts is how often a lost server over TCP is called again, about two
// minutes.
const connectAttempts = 14

// mounts holds the flags of the commands that use files on NFS servers, and the
// servers that they are connected to.
type mounts struct {
	options
	tcp       bool
	mountPort uint16
	export    string
	uid, gid  int64
	requests  int

	cmd     *cobra.Command
	log     *slog.Logger
	wrapper func(net.Conn) net.Conn
	callers map[string]oncrpc.Caller // by server
	trees   []*mounted
	stop    func() error
}

// A mounted export of a server.
type mounted struct {
	server string
	tree   *files.Remote
}

func (m *mounts) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&m.tcp, "tcp", false, "use NFS over TCP, on port 2049 if the URL has none")
	f.StringVar(&m.export, "export", "", "mount this `path` of the server and take the URL's path from there (default: the export that the path leads into)")
	f.Uint16Var(&m.mountPort, "mount-port", 0, "`port` of MOUNT over TCP (default: where the connection of NFS has it, or the port mapper says)")
	f.Int64Var(&m.uid, "uid", -1, "`user` to be on the server; -1 is this process's")
	f.Int64Var(&m.gid, "gid", -1, "`group` to be on the server; -1 is this process's")
	f.IntVar(&m.requests, "requests", client.DefaultRequests, "`requests` of a large file under way at a time, as the server's credits allow")
	m.options.register(cmd)
}

// open readies the connections, and checks the flags.
func (m *mounts) open(cmd *cobra.Command) (err error) {
	m.cmd = cmd
	switch {
	case m.uid < -1 || m.uid > 1<<32-1 || m.gid < -1 || m.gid > 1<<32-1:
		return usagef("--uid and --gid are 0 to %d", uint32(1<<32-1))
	case m.requests < 1 || m.requests > 4096:
		return usagef("--requests %d: it is 1 to 4096", m.requests)
	}
	if m.log, err = m.logger(cmd.ErrOrStderr()); err != nil {
		return err
	}
	m.callers = make(map[string]oncrpc.Caller)
	m.wrapper, m.stop, err = m.wrap()
	return err
}

// close unmounts everything and ends the connections.
func (m *mounts) close() error {
	for _, t := range m.trees {
		t.tree.FS.Close()
	}
	for _, c := range m.callers {
		c.Close()
	}
	return m.stop()
}

// place is what an argument names: a file on a server, or on this machine.
func (m *mounts) place(ctx context.Context, arg string) (files.Place, error) {
	if !files.IsURL(arg) {
		return files.Place{Tree: files.Local{}, Path: arg}, nil
	}
	u, err := files.ParseURL(arg)
	if err != nil {
		return files.Place{}, usagef("%v", err)
	}
	tree, path, err := m.mount(ctx, u)
	if err != nil {
		return files.Place{}, fmt.Errorf("%s: %w", arg, err)
	}
	return files.Place{Tree: tree, Path: path}, nil
}

// mount mounts the export that a URL leads into, once.
func (m *mounts) mount(ctx context.Context, u files.URL) (*files.Remote, string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTime, fmt.Errorf("the server did not answer for %v", connectTime))
	defer cancel()
	caller, err := m.caller(ctx, u)
	if err != nil {
		return nil, "", m.dialError(u, err)
	}
	cfg := client.Config{
		NFS:      caller,
		MountTCP: client.MountOverTCP(u.Host, m.mountPort, rpctcp.ClientConfig{Wrap: m.wrapper}),
		Export:   u.Path, Within: true,
		Requests: m.requests,
		Auth:     m.auth(),
	}
	if m.export != "" {
		cfg.Export, cfg.Within = m.export, false
	}
	fs, err := client.Dial(ctx, cfg)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
			err = cause
		}
		return nil, "", m.dialError(u, err)
	}
	path := fs.Prefix()
	if m.export != "" {
		path = u.Path
	} else if path != "/" && u.Path[len(u.Path)-1] == '/' {
		path += "/"
	}
	for _, old := range m.trees {
		if old.server == u.Server() && old.tree.FS.Export() == fs.Export() {
			return old.tree, path, fs.Close()
		}
	}
	tree := &files.Remote{FS: fs, Name: u.Server()}
	if m.export == "" {
		tree.Name += fs.Export()
	}
	m.trees = append(m.trees, &mounted{u.Server(), tree})
	return tree, path, nil
}

// caller connects to the server of a URL, once.
func (m *mounts) caller(ctx context.Context, u files.URL) (oncrpc.Caller, error) {
	if c := m.callers[u.Server()]; c != nil {
		return c, nil
	}
	var c oncrpc.Caller
	if m.tcp {
		tcp, err := rpctcp.NewClient(rpctcp.ClientConfig{
			Address:  m.address(u),
			Reserved: true, // Linux's server wants it, where that may be
			Calls:    m.requests,
			Attempts: connectAttempts,
			Wrap:     m.wrapper,
			Logger:   m.log,
		})
		if err != nil {
			return nil, err
		}
		// A server that is not there is told at once; one that goes is waited for.
		if err := tcp.Connect(ctx); err != nil {
			tcp.Close()
			return nil, err
		}
		c = tcp
	} else {
		rdma, err := rpcrdma.NewClient(rpcrdma.ClientConfig{
			Addr:       m.address(u),
			Bindings:   nfs.Bindings(),
			Connection: cm.Params{Wrap: m.wrapper},
			Logger:     m.log,
		})
		if err != nil {
			return nil, err
		}
		c = rdma
	}
	m.callers[u.Server()] = c
	return c, nil
}

// address is where a server has NFS.
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

// dialError says in plain words that there is no server of NFS. Other errors, also
// of connections to its MOUNT, speak for themselves.
func (m *mounts) dialError(u files.URL, err error) error {
	var op *net.OpError
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &op) || op.Addr == nil {
		return err
	}
	at := m.address(u)
	_, want, _ := net.SplitHostPort(at)
	if _, port, _ := net.SplitHostPort(op.Addr.String()); port != want {
		return err
	}
	if m.tcp {
		return fmt.Errorf("nothing listens on %s: start a server there, for example: weft serve DIR, which says where it has TCP", at)
	}
	return fmt.Errorf("nothing listens on %s: start a server there, for example: weft serve DIR; servers without RDMA take --tcp", at)
}

// auth is who is named by --uid and --gid; nil is this process.
func (m *mounts) auth() *oncrpc.AuthSys {
	if m.uid < 0 && m.gid < 0 {
		return nil
	}
	a := &oncrpc.AuthSys{UID: uint32(max(m.uid, 0)), GID: uint32(max(m.gid, 0))}
	if m.uid < 0 {
		a.UID = uint32(max(os.Getuid(), 0))
	}
	if m.gid < 0 {
		a.GID = uint32(max(os.Getgid(), 0))
	}
	return a
}

// tell writes an error of one of several files.
func (m *mounts) tell(err error) {
	fmt.Fprintf(m.cmd.ErrOrStderr(), "%s: %s\n", m.cmd.CommandPath(), plain(err.Error()))
}
