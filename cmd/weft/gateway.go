// This file is weft gateway.

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/cmd/weft/internal/confine"
	"github.com/weft-rdma/weft/cmd/weft/internal/fileserver"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/gateway"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/verbs"
)

const (
	// answerTime is how long the gateway waits for the server at the start, before it
	// prints that there is no answer.
	answerTime = 2 * time.Second
	// backCalls is the number of outstanding callbacks to one client.
	backCalls = 16
)

// gatewayCmd holds the flags of `weft gateway`.
type gatewayCmd struct {
	options
	access
	observed               observation
	tls                    encryption
	xprtsec                xprtsec
	managed                managed
	anyALPN                bool
	listen, to, tcp, mount string
	portMap                fileserver.PortMap
	wait                   time.Duration
	verbose                bool

	front, back endpoint
	cmd         *cobra.Command
	log         *slog.Logger
	rnic        *verbs.RNIC
	wrapper     func(net.Conn) net.Conn
}

func newGateway() *cobra.Command {
	g := &gatewayCmd{portMap: fileserver.PortMapAuto}
	cmd := &cobra.Command{
		Use:   "gateway --to URL [flags]",
		Short: "Pass NFS between RDMA and TCP",
		Long: `Gateway stands between NFS clients and a server and passes calls on over the other
transport: it gives RDMA to a server that has TCP only, or TCP to clients of a server
with RDMA. It passes all versions of NFS, with the credentials of the calls, and the
callbacks of version 4.1 and later.

Each client has its own connection to the server. When the server restarts, clients
notice nothing but the delay: the gateway sends calls without a reply again, with
their old XIDs. When the server does not answer, the gateway says so and waits as long
as the clients do, or as --wait says.

To the server all clients come from this host. The host must be allowed to mount, and
mostly has to call from a port below 1024: run the gateway as root, or export with the
option insecure. A client that may use the gateway may do what the server allows this
host: --allow says who that is. A caller on this machine is passed on as the user who owns
its socket, whatever it claims, unless that user is root. If another user runs the
gateway, only that user and root may use it; --allow-others admits other users of this
machine, and --allow other machines. The identity of callers on other machines is not
authenticated. Over TCP they must call from ports below 1024, unless --insecure is
given; over RDMA the port proves nothing, because Linux's client uses any. A
connection from a host that may not use the gateway is reset at once.

Version 3 needs MOUNT, which clients find by a port mapper. Gateway has both. It
passes MOUNT on to the server's NFS port, where weft serve has it, or else to the port
that the server's port mapper gives (--mount auto); to HOST:PORT; or over the
connections of NFS only (--mount same). Locks of version 3 do not pass: mount with
nolock. Version 4 needs none of this.

With tcp+tls:// and rdma+tls:// a side is encrypted by TLS 1.3: TCP as RFC 9289 says,
which Linux's client does with the mount option xprtsec, and RDMA below MPA. The gateway
then refuses plain calls of NFS, over either transport (--xprtsec), and never calls an
encrypted server in the clear. MOUNT on a port of its own has no TLS with Linux.

A server of version 4.0 sends its callbacks to the client directly.

Gateway serves at most 384 clients if the server has TCP, because ports below 1024 are
few, and 192 if it has RDMA. If clients may use both transports, each has half. There
are fewer if a process may open fewer than 4096 files (ulimit -n). Hosts share them as
with weft serve.

On SIGINT and SIGTERM it drains as weft serve does (--drain).`,
		Example: `  weft gateway --listen rdma://:20049 --to tcp://nas:2049       NFS/TCP, mounted over RDMA
  weft gateway --listen tcp://:2049 --to rdma://nas:20049       NFS/RDMA, mounted over TCP
  weft gateway --listen tcp+tls://:2049 --to rdma://nas         the same, mounted encrypted
  weft gateway --listen tcp://127.0.0.1:2049 --to rdma+tls://nas       encrypted to the server
  weft gateway --to rdma://127.0.0.1:20050 --mount same --pcap gateway.pcapng

  mount -t nfs -o vers=4.1,proto=rdma,port=20049 192.0.2.7:/ /mnt
  mount -t nfs -o vers=3,proto=rdma,port=20049,nolock 192.0.2.7:/srv /mnt`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unexpected argument %q: give the server with --to", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			g.cmd = cmd
			return g.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	onceVar(f, &g.listen, "listen", "l", "rdma://"+serveAddr, "`URL` to serve at: rdma://HOST:PORT, tcp://HOST:PORT, or with +tls as in tcp+tls://HOST:PORT; without a host, all addresses", "; run a gateway for each")
	onceVar(f, &g.to, "to", "t", "", "`URL` of the server: tcp://HOST[:2049] or rdma://HOST[:20049], or with +tls as in tcp+tls://HOST", "; a gateway has one server")
	onceVar(f, &g.tcp, "tcp", "", "", "with --listen rdma://, the `ADDR` of MOUNT and NFS over TCP, or off (default: port 2049 of the same host, or any port if that is in use)", "; run a gateway for each")
	f.StringVar(&g.mount, "mount", "auto", "`WHERE` the server has MOUNT: auto, same or HOST:PORT")
	g.access.register(f)
	f.Var(&g.portMap, "portmap", "`HOW` clients find MOUNT: own, register, auto or off")
	f.DurationVar(&g.wait, "wait", 0, "let a call wait for the server for this `DURATION`, then leave the retry to the client; 0 waits as long as the client")
	f.BoolVarP(&g.verbose, "verbose", "v", false, "log connections")
	g.options.register(cmd)
	g.observed.registerCalls(cmd)
	g.managed.register(cmd, f)
	g.tls.register(cmd)
	g.xprtsec.register(f)
	registerAnyALPN(f, &g.anyALPN)
	return cmd
}

// An endpoint is one side of a gateway.
type endpoint struct {
	scheme     string // "tcp" or "rdma"
	tls        bool
	host, port string
}

func (e endpoint) address() string { return net.JoinHostPort(e.host, e.port) }
func (e endpoint) String() string {
	if e.tls {
		return e.scheme + "+tls://" + e.address()
	}
	return e.scheme + "://" + e.address()
}

// parseEndpoint reads the URL given by a flag.
func parseEndpoint(flag, url string) (e endpoint, err error) {
	scheme, address, ok := strings.Cut(url, "://")
	scheme, encrypted := strings.CutSuffix(scheme, "+tls")
	port := map[string]string{"tcp": nfsPort, "rdma": rdmaPort}[scheme]
	if !ok || port == "" {
		return e, usagef("%s %s: expected tcp://HOST:PORT or rdma://HOST:PORT", flag, url)
	}
	address = strings.TrimSuffix(address, "/")
	e = endpoint{scheme: scheme, tls: encrypted, port: port}
	if host, p, err := net.SplitHostPort(address); err == nil {
		e.host = host
		if p != "" {
			e.port = p
		}
	} else {
		e.host = strings.Trim(address, "[]")
	}
	if n, err := strconv.ParseUint(e.port, 10, 16); err != nil || strings.ContainsAny(e.host, "/ ") {
		return e, usagef("%s %s: expected tcp://HOST:PORT or rdma://HOST:PORT", flag, url)
	} else {
		e.port = strconv.FormatUint(n, 10)
	}
	return e, nil
}

// config makes the configuration of the file server from the flags.
func (g *gatewayCmd) config() (cfg fileserver.Config, err error) {
	if g.to == "" {
		return cfg, usagef("missing server: --to tcp://HOST:2049 or --to rdma://HOST:20049")
	}
	if g.back, err = parseEndpoint("--to", g.to); err != nil {
		return cfg, err
	}
	if g.back.host == "" || g.back.port == "0" {
		return cfg, usagef("--to %s: expected a host and a port", g.to)
	}
	if g.front, err = parseEndpoint("--listen", g.listen); err != nil {
		return cfg, err
	}
	switch encrypted := g.front.tls || g.back.tls; {
	case encrypted:
		g.tls.on = true
	case g.tls.wanted():
		return cfg, usagef("--tls: say which side is encrypted, by tcp+tls:// or rdma+tls:// in --listen or --to")
	}
	if g.wait < 0 {
		return cfg, usagef("--wait %v: expected 0 or more; 0 waits as long as the client", g.wait)
	}
	cfg = fileserver.Config{Low: nfs.V3, High: nfs.V4, PortMap: g.portMap, Reverse: backCalls}
	switch {
	case g.front.scheme == "tcp" && g.tcp != "":
		return cfg, usagef("--tcp %s: --listen %s gives the TCP address already", g.tcp, g.listen)
	case g.front.scheme == "tcp":
		cfg.TCP = g.front.address()
	case g.tcp == "off":
		cfg.RDMA = g.front.address()
	case g.tcp == "":
		cfg.RDMA, cfg.TCP, cfg.AnyTCP = g.front.address(), net.JoinHostPort(g.front.host, nfsPort), true
	default:
		if _, port, err := net.SplitHostPort(g.tcp); err != nil || port == "" {
			return cfg, usagef("--tcp %s: expected HOST:PORT or off", g.tcp)
		}
		cfg.RDMA, cfg.TCP = g.front.address(), g.tcp
	}
	if cfg.TCP == "" && (g.portMap == fileserver.PortMapOwn || g.portMap == fileserver.PortMapRegister) {
		return cfg, usagef("--portmap %s: there is no MOUNT without TCP", g.portMap)
	}
	return cfg, g.access.configure(&cfg)
}

// mountConfig makes the configuration of MOUNT from --mount. It is nil if MOUNT uses
// the connections of NFS.
func (g *gatewayCmd) mountConfig(b gateway.Backend) (*gateway.MountConfig, error) {
	cfg := &gateway.MountConfig{Host: g.back.host, Reserved: true, Wrap: g.wrapper}
	switch g.mount {
	case "same":
		return nil, nil
	case "auto":
		cfg.Backend = b
		return cfg, nil
	}
	host, port, err := net.SplitHostPort(g.mount)
	n, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil || host == "" || n == 0 {
		return nil, usagef("--mount %s: expected auto, same or HOST:PORT", g.mount)
	}
	cfg.Host, cfg.Port = host, int(n)
	return cfg, nil
}

const (
	// mostTCP is the most connections to a server over TCP. It leaves some ports below
	// 1024 for MOUNT, and for connections that are being closed.
	mostTCP = 384
	// mostRDMA is the most connections to a server over RDMA. It is below what servers
	// accept from one host.
	mostRDMA = 192
)

// most is the most connections of clients, and to the server. If the server refused
// some, one client could keep others out.
func (g *gatewayCmd) most() int {
	if g.back.scheme == "tcp" {
		return mostTCP
	}
	return mostRDMA
}

// backend returns the backend for the server. It reports a server that stops answering.
func (g *gatewayCmd) backend(log *slog.Logger) gateway.Backend {
	w := newWatch(g.back.String(), 0, 0, func(text string) {
		fmt.Fprintf(g.cmd.ErrOrStderr(), "%s: %s\n", g.cmd.CommandPath(), plain(text))
	})
	w.connected, w.answered = true, true // there may be an answer later
	retrying := func(err error) {
		g.observed.retried()
		w.retrying(err)
	}
	if g.back.scheme == "tcp" {
		return w.wrapBackend(gateway.TCP(gateway.TCPConfig{
			Address: g.back.address(), Reserved: true, TLS: g.backTLS(), AnyALPN: g.anyALPN,
			Wrap: g.wrapper, Logger: log, Retrying: retrying,
		}))
	}
	return w.wrapBackend(gateway.RDMA(gateway.RDMAConfig{
		Address: g.back.address(), RNIC: g.rnic, Connection: cm.Params{TLS: g.backTLS(), Wrap: g.wrapper}, Logger: log, Retrying: retrying,
	}))
}

// backTLS returns the configuration for connections to the server; nil is plain.
func (g *gatewayCmd) backTLS() *tls.Config {
	if !g.back.tls {
		return nil
	}
	return g.tls.client(g.back.host)
}

func (g *gatewayCmd) run(ctx context.Context) (err error) {
	cfg, err := g.config()
	if err != nil {
		return err
	}
	if _, err := g.mountConfig(gateway.Backend{}); err != nil {
		return err
	}
	if g.verbose && g.logLevel == "" {
		g.logLevel = "info"
	}
	if g.log, err = g.logger(g.cmd.ErrOrStderr()); err != nil {
		return err
	}
	if err := g.managed.open(ctx, &g.observed); err != nil {
		return err
	}
	defer g.managed.close()
	if done, err := g.managed.supervised(ctx, g.log, g.places); done {
		return err
	}
	wrap, stop, err := g.wrap()
	if err != nil {
		return err
	}
	g.wrapper = wrap
	defer func() { err = errors.Join(err, stop()) }()
	if err := g.observed.open(ctx, g.cmd, &g.options); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.observed.close()) }()
	notices := g.notices(g.cmd, g.log, slog.LevelWarn)
	if err := g.tls.open(notices); err != nil {
		return err
	}
	if g.front.tls {
		if err := g.tls.secure(&cfg, g.xprtsec); err != nil {
			return err
		}
	} else if g.xprtsec != "" {
		return usagef("--xprtsec %s: it takes tcp+tls:// or rdma+tls:// in --listen", g.xprtsec)
	}
	if err := g.tls.checkNames(cfg.Names); err != nil {
		return err
	}
	if g.back.scheme == "rdma" {
		if g.rnic, err = verbs.Open(verbs.Config{Logger: notices}); err != nil {
			return err
		}
		defer g.rnic.Close()
		g.observed.rnic(g.rnic)
	}

	cfg.Connections = min(g.most(), fileserver.Connections())
	pass := gateway.Config{Backend: g.backend(notices), Connections: cfg.Connections, Wait: g.wait, Logger: notices}
	m, err := g.mountService(pass.Backend)
	if err != nil {
		return err
	}
	if m != nil {
		defer m.Close()
		pass.Mount, cfg.Mount = m, m
	} else {
		// Datagrams belong to no connection that MOUNT could use.
		cfg.Mount = oncrpc.Mux(nil)
	}
	through, err := gateway.New(pass)
	if err != nil {
		return err
	}
	defer through.Close()
	var notes []string
	cfg.Handler, cfg.Wrap, cfg.Logger = through, wrap, notices
	cfg.Notice = func(text string) { notes = append(notes, text) }
	cfg.Observe = g.observed.handler()
	cfg.Sockets = &g.managed.manager.Sockets
	server, err := fileserver.Start(ctx, cfg)
	if err != nil {
		return err
	}
	g.greet(g.cmd.ErrOrStderr(), server, notes)
	tried := make(chan struct{})
	go func() {
		defer close(tried)
		g.try(ctx, pass.Backend)
	}()
	defer func() { <-tried }()
	return g.managed.serve(ctx, server, &g.observed, fmt.Sprintf("passing calls to %v", g.back), nil)
}

// places are what the gateway uses of the file system.
func (g *gatewayCmd) places() (*confine.Rules, error) {
	return placesOf(nil, g.options.places, g.observed.places, g.tls.places)
}

// mountService makes the MOUNT service that the flags ask for, nil for none.
func (g *gatewayCmd) mountService(back gateway.Backend) (*gateway.Mount, error) {
	where, err := g.mountConfig(back)
	if where == nil || err != nil {
		return nil, err
	}
	return gateway.NewMount(*where)
}

// try reports a server that does not answer yet.
func (g *gatewayCmd) try(ctx context.Context, b gateway.Backend) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	c, err := b.Open(gateway.Front{Reverse: oncrpc.Mux(nil)})
	if err == nil {
		defer c.Close()
		var reply *oncrpc.ClientReply
		null := oncrpc.Call{Prog: nfs.Program, Vers: nfs.V3}
		if reply, err = c.Call(ctx, &oncrpc.ClientCall{Call: null, Forward: true}); err == nil {
			reply.Release()
		}
	}
	// Trouble with TLS was reported by the caller.
	if err != nil && !errors.Is(err, context.Canceled) && rpcTLSTrouble(g.back.String(), err) == nil {
		fmt.Fprintf(g.cmd.ErrOrStderr(), "%s: %s\n", g.cmd.CommandPath(), notReached(g.back.String(), err))
	}
}

// notReached says what becomes of calls to a server that was not reached.
func notReached(server string, err error) string {
	if why := rpcTLSTrouble(server, err); why != nil {
		return why.Error() + "; calls fail"
	}
	return server + " does not answer yet; calls wait for it"
}

// greet prints the addresses, the warnings and the mount commands.
func (g *gatewayCmd) greet(w io.Writer, server *fileserver.Server, notes []string) {
	at, proto := server.RDMA(), "rdma"
	if at == nil {
		at, proto = server.TCP(), "tcp"
	}
	fmt.Fprintf(w, "listening on %v\n", at)
	fmt.Fprintf(w, "passing calls to %v: NFS over %s", g.back, strings.ToUpper(proto))
	if tcp := server.TCP(); tcp != nil && proto == "rdma" {
		fmt.Fprintf(w, ", and over TCP on %v", tcp)
	}
	fmt.Fprintln(w)
	for _, text := range notes {
		fmt.Fprintln(w, text)
	}
	may := fmt.Sprintf("act as any user on %v, as far as it trusts this host", g.back)
	for _, line := range g.access.audience(server, may, may).warnings() {
		fmt.Fprintln(w, line)
	}
	host, port := reachedAt(at)
	secure := ""
	if g.front.tls && proto == "tcp" {
		secure = ",xprtsec=tls"
		if g.tls.authorityGiven {
			secure = ",xprtsec=mtls"
		}
	}
	fmt.Fprintf(w, "\n  mount -t nfs -o vers=4.1,proto=%s,port=%s%s %s:/ /mnt\n", proto, port, secure, host)
	if server.TCP() == nil {
		fmt.Fprintf(w, "\nNFS version 3 cannot be mounted: it needs MOUNT over TCP\n")
		return
	}
	options := "vers=3,proto=" + proto + ",port=" + port + ",nolock" + secure
	if !server.Mapped() {
		_, mountPort, _ := net.SplitHostPort(server.TCP().String())
		options += ",mountproto=tcp,mountport=" + mountPort
	}
	fmt.Fprintf(w, "  mount -t nfs -o %s %s:/EXPORT /mnt\n\n", options, host)
}
