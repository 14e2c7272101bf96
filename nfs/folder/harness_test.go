// This file calls a server as a transport does, with whole messages.

package folder

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

type encoder interface{ Encode(*oncrpc.Encoder) }
type decoder interface{ Decode(*oncrpc.Decoder) }

// A world is a served export and a caller.
type world struct {
	t      testing.TB
	dir    string
	cfg    Config
	server *Server

	xid     uint32
	cred    oncrpc.OpaqueAuth
	network string
	remote  net.Addr
	from    *origin.Origin // nil: as remote says
	session any
	wait    time.Duration // for a search, if it is to be longer than calls wait: machines may be slow
}

// testKey is the key of all servers of a test, so that handles survive restarts.
var testKey = []byte("a key that is known to everybody")

// serve serves a new export.
func serve(t testing.TB, cfg Config) *world {
	t.Helper()
	nettest.CheckLeaks(t)
	return serveMore(t, cfg)
}

// serveMore is serve for another server in the same test.
func serveMore(t testing.TB, cfg Config) *world {
	t.Helper()
	if cfg.Squash == SquashRoot {
		cfg.Squash = SquashNone // root is who most tests are made by
	}
	return serveAs(t, cfg)
}

// serveAs serves a new export with the configuration as it is.
func serveAs(t testing.TB, cfg Config) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), cfg: cfg, network: "tcp", session: new(int), wait: time.Minute}
	w.remote = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 800}
	w.cfg.Root = w.dir
	if w.cfg.HandleKey == nil {
		w.cfg.HandleKey = testKey
	}
	w.as(uint32(os.Getuid()), uint32(os.Getgid()))
	w.start()
	t.Cleanup(func() { w.server.Close() })
	return w
}

func (w *world) start() {
	w.t.Helper()
	s, err := New(w.cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.server = s
	if w.wait > 0 {
		s.tree.search.wait = w.wait
	}
}

// restart starts another server on the same export, and calls it over another connection.
func (w *world) restart() {
	w.t.Helper()
	w.server.Close()
	w.session = new(int)
	w.start()
}

func (w *world) as(uid, gid uint32, gids ...uint32) {
	sys := oncrpc.AuthSys{MachineName: "client", UID: uid, GID: gid, GIDs: gids}
	body, err := sys.Append(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.cred = oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorSys, Body: body}
}

// try makes a call and returns the results of ServeRPC.
func (w *world) try(proc nfs.Proc, args encoder) ([]byte, error) {
	w.xid++
	return w.send(w.xid, proc, args)
}

func (w *world) send(xid uint32, proc nfs.Proc, args encoder) ([]byte, error) {
	e := oncrpc.NewEncoder(nil)
	c := oncrpc.Call{XID: xid, Prog: nfs.Program, Vers: nfs.V3, Proc: uint32(proc), Cred: w.cred}
	c.Encode(&e)
	if args != nil {
		args.Encode(&e)
	}
	msg, err := e.Finish()
	if err != nil {
		w.t.Fatal(err)
	}
	return w.message(msg)
}

func (w *world) message(msg []byte) ([]byte, error) {
	r := oncrpc.Request{Message: msg, Network: w.network, Remote: w.remote, Origin: w.from, Session: w.session}
	at, err := r.Call.Parse(msg)
	if err != nil {
		return nil, err
	}
	r.Args = msg[at:]
	return w.server.ServeRPC(context.Background(), &r)
}

// call makes a call and decodes its results. RPC has to accept it.
func (w *world) call(proc nfs.Proc, args encoder, res decoder) {
	w.t.Helper()
	b, err := w.try(proc, args)
	if err != nil {
		w.t.Fatalf("%v: %v", proc, err)
	}
	w.results(b, res)
}

func (w *world) results(b []byte, res decoder) {
	w.t.Helper()
	var reply oncrpc.Reply
	at, err := reply.Parse(b)
	if err != nil {
		w.t.Fatal(err)
	}
	d := oncrpc.NewDecoder(b[at:], "results")
	res.Decode(&d)
	if err := d.End(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) root() nfs.FH {
	w.t.Helper()
	fh, err := w.server.Handle(context.Background(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return fh
}

func (w *world) path(name ...string) string {
	return filepath.Join(append([]string{w.dir}, name...)...)
}

func (w *world) lookup(dir nfs.FH, name string) nfs.LookupRes {
	w.t.Helper()
	var res nfs.LookupRes
	w.call(nfs.ProcLookup, &nfs.DirOpArgs{Dir: dir, Name: name}, &res)
	return res
}

// fh returns the handle of the object at a path of names below the root.
func (w *world) fh(names ...string) nfs.FH {
	w.t.Helper()
	fh := w.root()
	for _, name := range names {
		res := w.lookup(fh, name)
		if res.Stat != nfs.OK {
			w.t.Fatalf("LOOKUP of %q in %q: %v", name, names, res.Stat)
		}
		fh = res.Object
	}
	return fh
}

func (w *world) getattr(fh nfs.FH) (nfs.Attributes, nfs.Stat) {
	w.t.Helper()
	var res nfs.GetattrRes
	w.call(nfs.ProcGetattr, &nfs.GetattrArgs{Object: fh}, &res)
	return res.Attr, res.Stat
}

func (w *world) attr(fh nfs.FH) nfs.Attributes {
	w.t.Helper()
	a, stat := w.getattr(fh)
	if stat != nfs.OK {
		w.t.Fatalf("GETATTR: %v", stat)
	}
	return a
}

func (w *world) write(fh nfs.FH, off uint64, data string, how nfs.StableHow) nfs.WriteRes {
	w.t.Helper()
	var res nfs.WriteRes
	w.call(nfs.ProcWrite, &nfs.WriteArgs{File: fh, Offset: off, Count: uint32(len(data)), Stable: how, Data: []byte(data)}, &res)
	return res
}

func (w *world) read(fh nfs.FH, off uint64, count uint32) nfs.ReadRes {
	w.t.Helper()
	var res nfs.ReadRes
	w.call(nfs.ProcRead, &nfs.ReadArgs{File: fh, Offset: off, Count: count}, &res)
	return res
}

func (w *world) setattr(fh nfs.FH, to nfs.SetAttributes) nfs.Stat {
	w.t.Helper()
	var res nfs.WccRes
	w.call(nfs.ProcSetattr, &nfs.SetattrArgs{Object: fh, New: to}, &res)
	return res.Stat
}

func (w *world) remove(dir nfs.FH, name string) nfs.Stat {
	w.t.Helper()
	var res nfs.WccRes
	w.call(nfs.ProcRemove, &nfs.DirOpArgs{Dir: dir, Name: name}, &res)
	return res.Stat
}

func (w *world) rename(from nfs.FH, name string, to nfs.FH, toName string) nfs.Stat {
	w.t.Helper()
	var res nfs.RenameRes
	w.call(nfs.ProcRename, &nfs.RenameArgs{From: nfs.DirOpArgs{Dir: from, Name: name}, To: nfs.DirOpArgs{Dir: to, Name: toName}}, &res)
	return res.Stat
}

func (w *world) create(dir nfs.FH, name string, mode uint32) nfs.CreateRes {
	w.t.Helper()
	var res nfs.CreateRes
	w.call(nfs.ProcCreate, &nfs.CreateArgs{Where: nfs.DirOpArgs{Dir: dir, Name: name}, Attr: withMode(mode)}, &res)
	return res
}

func (w *world) mkdir(dir nfs.FH, name string, mode uint32) nfs.CreateRes {
	w.t.Helper()
	var res nfs.CreateRes
	w.call(nfs.ProcMkdir, &nfs.MkdirArgs{Where: nfs.DirOpArgs{Dir: dir, Name: name}, Attr: withMode(mode)}, &res)
	return res
}

func withMode(mode uint32) nfs.SetAttributes {
	return nfs.SetAttributes{Mode: nfs.SetUint32{Set: true, Value: mode}}
}

// put makes a file without the server.
func (w *world) put(name, data string) {
	w.t.Helper()
	must(w.t, os.MkdirAll(filepath.Dir(w.path(name)), 0o777))
	must(w.t, os.WriteFile(w.path(name), []byte(data), 0o666))
}

func (w *world) has(name, data string) {
	w.t.Helper()
	b, err := os.ReadFile(w.path(name))
	if err != nil {
		w.t.Error(err)
	} else if string(b) != data {
		w.t.Errorf("%s has %q, want %q", name, b, data)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t testing.TB, what string, got, want nfs.Stat) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// needRoot skips a test that needs root.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: the server acts as itself for everybody")
	}
}

// onBoth runs a test on this system's backend and on the portable one.
func onBoth(t *testing.T, f func(t *testing.T, cfg Config)) {
	t.Run("system", func(t *testing.T) { f(t, Config{}) })
	t.Run("portable", func(t *testing.T) { f(t, Config{portable: true}) })
}

func asError[E error](err error) (e E, ok bool) { return e, errors.As(err, &e) }
