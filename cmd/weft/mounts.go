// This file holds the exports that a command mounts, and the flags for them.

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
	"github.com/weft-rdma/weft/nfs/client"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// reconnectTime is the longest backoff between attempts to reconnect.
const reconnectTime = 3 * time.Second

// mounts holds the flags of commands that use files on NFS servers, and their
// connections.
type mounts struct {
	options
	tcp       bool
	mountPort uint16
	export    string
	uid, gid  int64
	requests  int
	timeout   timeout

	cmd     *cobra.Command
	log     *slog.Logger
	wrapper func(net.Conn) net.Conn
	tls     encryption
	anyALPN bool
	callers map[string]*watch // by server
	trees   []*mounted
	stop    func() error

	stderrMu sync.Mutex   // protects standard error and shown
	shown    *transferBar // nil without one
}

// A mounted is a mounted export of a server.
type mounted struct {
	server string
	tree   *files.Remote
}

func (m *mounts) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&m.tcp, "tcp", false, "use NFS over TCP, by default on port 2049")
	f.StringVar(&m.export, "export", "", "mount this `PATH` of the server; the path of the URL starts there (default: the export that the path leads into)")
	f.Uint16Var(&m.mountPort, "mount-port", 0, "TCP `PORT` of MOUNT (default: the NFS port if it has MOUNT, or as the port mapper says)")
	f.Int64Var(&m.uid, "uid", -1, "claim to be the user `UID`; -1 is this process's user")
	f.Int64Var(&m.gid, "gid", -1, "claim to be in the group `GID`; -1 is this process's group")
	f.IntVar(&m.requests, "requests", client.DefaultRequests, "keep `N` requests for a large file in flight, as far as the server grants credits")
	m.timeout.register(f, "10s for the first answer, then none")
	m.options.register(cmd)
	m.tls.register(cmd)
	registerAnyALPN(f, &m.anyALPN)
}

// open checks the flags and prepares for connections.
func (m *mounts) open(cmd *cobra.Command) (err error) {
	m.cmd = cmd
	switch {
	case m.uid < -1 || m.uid > 1<<32-1 || m.gid < -1 || m.gid > 1<<32-1:
		return usagef("--uid and --gid: expected 0 to %d", uint32(1<<32-1))
	case m.requests < 1 || m.requests > 4096:
		return usagef("--requests %d: expected 1 to 4096", m.requests)
	}
	if m.log, err = m.logger(cmd.ErrOrStderr()); err != nil {
		return err
	}
	if err := m.tls.open(m.log); err != nil {
		return err
	}
	m.callers = make(map[string]*watch)
	m.wrapper, m.stop, err = m.wrap()
	return err
}

// close unmounts everything and closes the connections, within a time limit.
func (m *mounts) close() error {
	limit := closeTime
	if m.cmd.Context().Err() != nil {
		limit = hurriedTime
	}
	for _, w := range m.callers {
		if w.givenUp() {
			limit = hurriedTime
		}
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for _, t := range m.trees {
			t.tree.FS.Close()
		}
		for _, c := range m.callers {
			c.Close()
		}
	}()
	select {
	case <-closed:
	case <-late.C: // the server does not answer; the connection ends with the process
	}
	return m.stop()
}

// place returns the place of an argument: on a server, or on this machine.
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

// remote returns the tree and path of a URL.
func (m *mounts) remote(ctx context.Context, arg string) (*files.Remote, string, error) {
	p, err := m.place(ctx, arg)
	if err != nil {
		return nil, "", err
	}
	return p.Tree.(*files.Remote), p.Path, nil
}

// each calls do for each argument. It reports errors and continues.
func (m *mounts) each(args []string, done string, do func(ctx context.Context, arg string) error) error {
	failed := 0
	for _, arg := range args {
		err := do(m.cmd.Context(), arg)
		if err == nil {
			continue
		}
		if len(args) == 1 || m.cmd.Context().Err() != nil || files.Fatal(err) {
			return err
		}
		m.report(err)
		failed++
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d could not be %s", failed, len(args), done)
	}
	return nil
}

// items begins a sentence about n files or directories.
func items(n int) string {
	if n == 1 {
		return "1 item was"
	}
	return fmt.Sprintf("%d items were", n)
}

// mount mounts the export that a URL leads into, once.
func (m *mounts) mount(ctx context.Context, u files.URL) (*files.Remote, string, error) {
	caller, err := m.caller(ctx, u)
	if err != nil {
		return nil, "", m.dialError(u, err)
	}
	cfg := client.Config{
		NFS:      caller,
		MountTCP: m.mountTCP(u),
		Export:   u.Path, Within: true,
		Requests: m.requests,
		Auth:     m.auth(),
	}
	if m.export != "" {
		cfg.Export, cfg.Within = m.export, false
	}
	fs, err := client.Dial(ctx, cfg)
	if err != nil {
		return nil, "", m.refusedError(ctx, u, m.dialError(u, err))
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
	tree := &files.Remote{FS: fs, Name: u.Server(), Server: u.Server()}
	if m.export == "" {
		tree.Name += fs.Export()
	}
	m.trees = append(m.trees, &mounted{u.Server(), tree})
	return tree, path, nil
}

// refusedError adds advice if the server has refused the caller.
func (m *mounts) refusedError(ctx context.Context, u files.URL, err error) error {
	if !errors.Is(err, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}) {
		return err
	}
	advice := refusal(m.tcp, isHere(ctx, u.Host))
	if m.tcp && !m.tls.wanted() {
		advice += "; if it requires TLS, try --tls"
	}
	return fmt.Errorf("%w; %s", err, advice)
}

// refusal returns the advice, which depends on where the server is.
func refusal(tcp, here bool) string {
	switch {
	case here:
		return "if the server runs as another user of this machine, weft serve --allow-others admits you"
	case tcp:
		return "over TCP servers expect calls from ports below 1024, which take root; weft serve --insecure accepts any port"
	}
	return "the server does not admit this user or this machine"
}

// isHere reports whether a host is this machine.
func isHere(ctx context.Context, host string) bool {
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return err == nil && slices.ContainsFunc(all, func(a netip.Addr) bool {
		here, err := origin.Here(a)
		return here && err == nil
	})
}

// auth returns the credentials of --uid and --gid; nil is those of this process.
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

// report prints an error about one of several files.
func (m *mounts) report(err error) { m.notice(message(err)) }

// notice prints a line, above the progress bar if there is one.
func (m *mounts) notice(text string) {
	m.stderrMu.Lock()
	defer m.stderrMu.Unlock()
	if m.shown != nil {
		m.shown.clear()
	}
	fmt.Fprintf(m.cmd.ErrOrStderr(), "%s: %s\n", m.cmd.CommandPath(), plain(text))
}
