// This file is weft serve.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cmd/weft/internal/confine"
	"github.com/weft-rdma/weft/cmd/weft/internal/fileserver"
	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/origin"
)

const (
	// serveAddr is the default address: the port of NFS over RDMA (RFC 8267 §4.2), for
	// this machine only.
	serveAddr = "127.0.0.1:20049"
	rdmaPort  = "20049"
	nfsPort   = "2049"
)

// serve holds the flags of `weft serve`.
type serve struct {
	options
	access
	observed        observation
	tls             encryption
	xprtsec         xprtsec
	managed         managed
	listen, tcp     string
	readOnly, async bool
	squash          []string
	state           string
	portMap         fileserver.PortMap
	verbose         bool
	file            serveConfig
	check           bool

	cmd     *cobra.Command
	log     *slog.Logger
	notable *slog.Logger // log, or what users see without one
}

func newServe() *cobra.Command {
	s := &serve{portMap: fileserver.PortMapAuto}
	cmd := &cobra.Command{
		Use:   "serve [DIR] [flags]",
		Short: "Serve a directory to NFS clients, over RDMA and TCP",
		Long: `Serve makes a directory available as an NFS server: version 3 over RDMA, and over TCP
for clients without RDMA. Linux can mount it; weft ls, cat, cp and the other file
commands use it without a mount. It needs no installation and no root.

By default it serves this machine only. --listen :20049 serves others, and --allow
says which. If root serves, --allow applies to the addresses of this machine, too.

If root serves, a caller on this machine acts as the user who owns its socket, with
the groups of that user, whatever the caller claims; only root may claim to be another
user. The identity of callers on other machines is not authenticated, as with every
NFS server without Kerberos. Over TCP they must call from a port below 1024, which
takes root there, unless --insecure is given. Over RDMA the port proves nothing,
because Linux's client uses any: restrict access with --allow, --squash and
--read-only. Root is mapped to nobody, even root of this machine, unless --squash none
is given. So is a caller without credentials. Files that nobody makes get no
set-user-ID and set-group-ID bits.

If another user serves, all callers act as that user. That user and root may call from
this machine. --allow-others admits the other users of this machine, and --allow other
machines; it never excludes this one. On systems other than Linux this holds for root,
too. They do not report who calls, so callers on this machine need --allow-others.

Clients see the directory and nothing else. A symbolic link that leads out of it is
resolved on the client.

Linux needs MOUNT beside NFS, and finds it by a port mapper on port 111. Serve is the
port mapper where it may be (--portmap own), or registers with one that is running
(register). If neither works, the mount command that serve prints has the port (off).

A write that was acknowledged as stable is on disk. --async gives that up for names
and attributes: a crash of the machine may undo changes that clients consider done.

Serve resets a connection from a host that --allow excludes before it reads anything.
It has at most 1024 connections over TCP and 256 over RDMA, with 256 MiB of messages
each, and fewer if a process may open fewer than 4096 files (ulimit -n). Hosts share
them fairly: a host that holds the most and leaves it idle loses some to others.

With --tls connections are encrypted by TLS 1.3: over RDMA below MPA, and over TCP as
RFC 9289 says, which Linux's client does with the mount option xprtsec. Plain calls of
NFS are refused; --xprtsec none:tls:mtls accepts them over TCP, too. MOUNT stays
accessible in the clear, because Linux's client calls it so. Clients need a certificate
of the authority in --tls-ca, so that who they are is authenticated, as far as a host is
(--xprtsec tls:mtls asks for none):
--allow dns:NAME, ip:ADDR or cn=NAME admits hosts by the names in their certificates.
weft cert makes certificates; changed files are used without a restart.

--config FILE serves several exports, each with rules of its own, as a file in TOML says;
packaging/etc/serve.toml is an example with every key, and docs/operate.md explains it.
SIGHUP applies a changed file without dropping anybody. --check only checks it.

File handles are sealed with a random key, so that nobody can forge them. The key is
kept in --state DIR (handles.key, for this user alone), so that clients carry on after
a restart of the server. Serve refuses a key that others can read or replace. DIR must
not lie below the directory that is served. If the key cannot be kept, clients have to
mount again after a restart.

On SIGINT and SIGTERM it drains: it accepts no more connections and calls, answers the
calls in progress, and exits with status 0. What --drain leaves no time for is ended;
then the status is 130 or 143. A second signal ends it at once.

Where Linux has landlock, it serves in a process of its own that can use the exported
directory and the few other files that it needs, and no others (--landlock). It notifies
systemd and uses its sockets; docs/operate.md has the names, and there are units in
packaging/systemd.`,
		Example: `  weft serve .                                     this directory, to this machine
  weft serve . --listen :20049 --allow 192.0.2.7   to another machine, too
  weft serve /srv --listen :20049 --allow 192.0.2.0/24 --read-only
  weft serve . --tcp off --pcap nfs.pcapng         RDMA only, recorded for Wireshark
  weft cert && weft serve . --tls                  encrypted, for clients with certificates
  weft serve . --tls --xprtsec tls:mtls            encrypted, for clients without, too
  weft serve --config serve.toml --check           whether several exports can be served
  weft serve . --metrics :9469 --access-log -      observed by Prometheus and weft top :9469

  weft cp nfs://127.0.0.1/README.md /tmp/          in another terminal
  mount -t nfs -o vers=3,proto=rdma,port=20049,nolock 192.0.2.7:/ /mnt`,
		Args: arguments(0, 1, "a directory to serve, such as ."),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.cmd = cmd
			dir, err := s.file.directory(cmd, args)
			if err != nil {
				return err
			}
			return s.run(cmd.Context(), dir)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&s.file.name, "config", "", "serve the exports in `FILE` (TOML), which is read again on SIGHUP; what it says, no flag may say")
	f.BoolVar(&s.check, "check", false, "check the configuration, and exit")
	onceVar(f, &s.listen, "listen", "l", serveAddr, "`ADDR` (host:port) of NFS over RDMA; without a host, all addresses", "; --config takes several addresses")
	onceVar(f, &s.tcp, "tcp", "", "", "`ADDR` of NFS and MOUNT over TCP, or off (default: port 2049 of the same host, or any port if that is in use)", "; --config takes several addresses")
	f.BoolVarP(&s.readOnly, "read-only", "r", false, "refuse all changes")
	s.access.register(f)
	f.StringSliceVar(&s.squash, "squash", []string{"root"}, "if root serves, `WHO` is mapped to nobody: root, all or none; NAME=WHO is for callers whose certificate has this name, dns:NAME, ip:ADDR or cn=NAME; may be repeated")
	f.BoolVar(&s.async, "async", false, "answer before changes of names and attributes are on disk")
	f.StringVar(&s.state, "state", stateDir(), "`DIR` for the key of file handles, outside the served directory")
	f.Var(&s.portMap, "portmap", "`HOW` clients find MOUNT: own, register, auto or off")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "log connections")
	s.options.register(cmd)
	s.observed.registerCalls(cmd)
	s.managed.register(cmd, f)
	s.tls.register(cmd)
	s.xprtsec.register(f)
	return cmd
}

// squashes are the choices of --squash.
var squashes = map[string]folder.Squash{"root": folder.SquashRoot, "all": folder.SquashAll, "none": folder.SquashNone}

// parseSquash returns the squash of most callers, and those of the callers with a name.
func parseSquash(values []string) (most folder.Squash, special []folder.SquashFor, err error) {
	for _, v := range values {
		who := v
		var name origin.Name
		if i := strings.LastIndexByte(v, '='); i >= 0 {
			if name, err = origin.ParseName(v[:i]); err != nil {
				return most, nil, usagef("--squash %s: %v", v, err)
			}
			who = v[i+1:]
		}
		squash, ok := squashes[who]
		switch {
		case !ok:
			return most, nil, usagef("--squash %s: expected root, all or none", v)
		case who == v:
			most = squash
		default:
			special = append(special, folder.SquashFor{Name: name, Squash: squash})
		}
	}
	return most, special, nil
}

// config makes the configurations of the exported directory and of the file server from
// the flags.
func (s *serve) config(dir string) (files folder.Config, server fileserver.Config, err error) {
	squash, special, err := parseSquash(s.squash)
	if err != nil {
		return files, server, err
	}
	if mount.Personal() && s.cmd.Flags().Changed("squash") && squash != folder.SquashNone {
		return files, server, usagef("--squash %v: all callers act as %s; mapping them to other users takes root, on Linux", s.squash, userName())
	}
	host, port, err := net.SplitHostPort(s.listen)
	if err != nil {
		return files, server, usagef("--listen %s: expected HOST:PORT, or :PORT for all addresses", s.listen)
	}
	if port == "" {
		return files, server, usagef("--listen %s: missing port; NFS over RDMA has %s", s.listen, rdmaPort)
	}
	server = fileserver.Config{RDMA: s.listen, TCP: s.tcp, PortMap: s.portMap}
	switch s.tcp {
	case "":
		server.TCP, server.AnyTCP = net.JoinHostPort(host, nfsPort), true
	case "off":
		server.TCP = ""
	default:
		if _, port, err := net.SplitHostPort(s.tcp); err != nil || port == "" {
			return files, server, usagef("--tcp %s: expected HOST:PORT or off", s.tcp)
		}
	}
	if server.TCP == "" && (s.portMap == fileserver.PortMapOwn || s.portMap == fileserver.PortMapRegister) {
		return files, server, usagef("--portmap %s: there is no MOUNT without TCP", s.portMap)
	}
	if err := s.access.configure(&server); err != nil {
		return files, server, err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return files, server, err
	}
	return folder.Config{Root: abs, ReadOnly: s.readOnly, Squash: squash, SquashFor: special, Async: s.async, StateDir: s.state}, server, nil
}

// prepare makes the configuration of the file server, with all exports, from the flags or
// the configuration file.
func (s *serve) prepare(dir string) (cfg fileserver.Config, err error) {
	if s.file.name != "" {
		return s.file.prepare(s)
	}
	files, cfg, err := s.config(dir)
	if err != nil {
		return cfg, err
	}
	if err := s.tls.open(s.notable); err != nil {
		return cfg, err
	}
	if err := s.tls.secure(&cfg, s.xprtsec); err != nil {
		return cfg, err
	}
	if err := s.tls.checkNames(cfg.Names); err != nil {
		return cfg, err
	}
	cfg.Unmarked = true
	cfg.Exports = []fileserver.Export{{
		Name: filepath.ToSlash(files.Root), Files: files,
		Rules: fileserver.Rules{Allow: cfg.Allow, Names: cfg.Names, Insecure: cfg.Insecure, XprtSec: cfg.XprtSec},
	}}
	return cfg, nil
}

func (s *serve) run(ctx context.Context, dir string) (err error) {
	if s.verbose && s.logLevel == "" {
		s.logLevel = "info"
	}
	if s.log, err = s.logger(s.cmd.ErrOrStderr()); err != nil {
		return err
	}
	s.notable = s.notices(s.cmd, s.log, slog.LevelWarn)
	cfg, err := s.prepare(dir)
	if err != nil || s.check {
		return err
	}
	if err := s.managed.open(ctx, &s.observed); err != nil {
		return err
	}
	defer s.managed.close()
	if done, err := s.managed.supervised(ctx, s.log, func() (*confine.Rules, error) { return s.places(cfg.Exports) }); done {
		return err
	}
	wrap, stop, err := s.wrap()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := s.observed.open(ctx, s.cmd, &s.options); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.observed.close()) }()
	var notes []string
	cfg.Wrap, cfg.Logger = wrap, s.notable
	cfg.Notice = func(text string) { notes = append(notes, text) }
	cfg.Observe, cfg.Exported = s.observed.handler(), s.observed.exported()
	cfg.Sockets = &s.managed.manager.Sockets
	server, err := fileserver.Start(ctx, cfg)
	if err != nil {
		return err
	}
	for _, lost := range server.KeysLost() {
		notes = append(notes, fmt.Sprintf("clients have to mount again after a restart of this server, because the key of file handles is not kept: %v", lost))
	}
	s.greet(s.cmd.ErrOrStderr(), server, cfg.Exports, notes)
	return s.managed.serve(ctx, server, &s.observed, serving(cfg.Exports), s.file.reloading(s, server))
}

// serving says in one line what is served.
func serving(exports []fileserver.Export) string {
	if len(exports) == 1 {
		return "serving " + exports[0].Name
	}
	return fmt.Sprintf("serving %d exports", len(exports))
}

// places are what the server uses of the file system, by the configuration file as it is
// now.
func (s *serve) places(exports []fileserver.Export) (*confine.Rules, error) {
	var own []confine.Rule
	if s.file.name != "" {
		var err error
		if _, exports, err = s.file.again(s); err != nil {
			return nil, err
		}
		own = append(own, confine.Rule{Path: filepath.Dir(s.file.name)}) // editors replace it
	}
	for _, x := range exports {
		place := confine.Rule{Path: x.Files.Root, Access: confine.Change}
		if x.Files.ReadOnly {
			place.Access = confine.Read
		}
		own = append(own, append(statePlace(x.Files.StateDir, x.Files.Root), place)...)
	}
	return placesOf(own, s.options.places, s.observed.places, s.tls.places)
}

// greet prints what is served, how to reach it, and the warnings.
func (s *serve) greet(w io.Writer, server *fileserver.Server, exports []fileserver.Export, notes []string) {
	for _, a := range server.Listening() {
		fmt.Fprintf(w, "listening on %v\n", a)
	}
	for _, x := range exports {
		what := "reading and writing"
		if x.Files.ReadOnly {
			what = "reading only"
		}
		fmt.Fprintf(w, "serving %s for %s: NFS version 3 over RDMA", x.Files.Root, what)
		if tcp := server.TCP(); tcp != nil {
			fmt.Fprintf(w, ", and over TCP on %v", tcp)
		}
		fmt.Fprintln(w)
	}
	for _, text := range notes {
		fmt.Fprintln(w, text)
	}
	host, port := reachedAt(server.RDMA())
	switch tcp := server.TCP(); {
	case tcp != nil && s.tls.opened != nil:
		fmt.Fprintf(w, "\n  %s\n", s.encryptedMount(server, s.mounted(exports)))
	case tcp != nil:
		fmt.Fprintf(w, "\n  %s\n", mountCommand(host, port, s.mounted(exports), server))
	default:
		fmt.Fprintf(w, "Linux cannot mount it: that needs MOUNT over TCP\n\n")
	}
	url := "nfs://" + host
	if port != rdmaPort {
		url += ":" + port
	}
	if s.tls.opened != nil {
		url = "--tls " + url
	}
	if s.file.name != "" {
		fmt.Fprintf(w, "  weft cp %s%s/FILE .\n\n", url, exports[0].Name)
		return // the file says who may do what
	}
	fmt.Fprintf(w, "  weft cp %s/FILE .\n\n", url)
	if squash, _, _ := parseSquash(s.squash); squash == folder.SquashRoot && !mount.Personal() {
		fmt.Fprintln(w, "root is mapped to nobody, even on this machine: --squash none prevents that")
	}
	for _, line := range s.access.audience(server, s.mayAsServer(), s.mayAsClaims()).warnings() {
		fmt.Fprintln(w, line)
	}
}

// verb says what callers may do with files.
func (s *serve) verb() string {
	if s.readOnly {
		return "read"
	}
	return "read and change"
}

// mayAsServer says what callers may do who act as the user of this process.
func (s *serve) mayAsServer() string {
	return fmt.Sprintf("%s every file as %s", s.verb(), userName())
}

// mayAsClaims says what callers may do who are not authenticated.
func (s *serve) mayAsClaims() string {
	const locks = "restrict that with --allow, --squash all or --read-only"
	switch squash, _, _ := parseSquash(s.squash); squash {
	case folder.SquashNone:
		return s.verb() + " every file as root, by claiming to be root: " + locks
	case folder.SquashAll:
		return s.verb() + " what the user nobody may: restrict that with --allow"
	}
	return s.verb() + " the files of every user but root, by claiming to be that user: " + locks
}

// encryptedMount returns the command that mounts the server on Linux with TLS, which it
// has over TCP only.
func (s *serve) encryptedMount(server *fileserver.Server, export string) string {
	host, port := reachedAt(server.TCP())
	security := "tls"
	if s.tls.authorityGiven {
		security = "mtls"
	}
	options := "vers=3,proto=tcp,port=" + port + ",nolock,xprtsec=" + security
	if !server.Mapped() {
		options += ",mountproto=tcp,mountport=" + port
	}
	return fmt.Sprintf("mount -t nfs -o %s %s:%s /mnt", options, host, export)
}

// mounted is the path of the export that the greeting shows.
func (s *serve) mounted(exports []fileserver.Export) string {
	if s.file.name == "" {
		return "/"
	}
	return exports[0].Name
}

// mountCommand returns the command that mounts the server on Linux. Without a port
// mapper it has the port of MOUNT.
func mountCommand(host, port, export string, server *fileserver.Server) string {
	options := "vers=3,proto=rdma,port=" + port + ",nolock"
	if !server.Mapped() {
		_, mountPort, _ := net.SplitHostPort(server.TCP().String())
		options += ",mountproto=tcp,mountport=" + mountPort
	}
	return fmt.Sprintf("mount -t nfs -o %s %s:%s /mnt", options, host, export)
}

// reachedAt returns the host and port that clients use: the name of the host for an
// unspecified address.
func reachedAt(a net.Addr) (host, port string) {
	host, port, _ = net.SplitHostPort(a.String())
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host, port
}

// exposed reports whether other hosts reach an address.
func exposed(a net.Addr) bool {
	if a == nil {
		return false
	}
	ap, err := netip.ParseAddrPort(a.String())
	return err == nil && !ap.Addr().IsLoopback()
}
