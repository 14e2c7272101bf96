// This file mounts an export (RFC 1813 §5).

package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpctcp"
)

// Dial mounts an export. The context is for mounting only.
func Dial(ctx context.Context, cfg Config) (*FS, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	f := &FS{cfg: cfg, export: cfg.Export}
	if f.cred, err = credential(cfg.Auth); err != nil {
		return nil, err
	}
	root := cfg.Root
	if root == nil {
		if root, err = f.mount(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.start(ctx, root); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func credential(a *oncrpc.AuthSys) (oncrpc.OpaqueAuth, error) {
	body, err := a.Append(nil)
	if err != nil {
		return oncrpc.OpaqueAuth{}, fmt.Errorf("nfs/client: Config.Auth: %w", err)
	}
	return oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorSys, Body: body}, nil
}

// start gets the attributes of the root and the FSINFO of its file system.
func (f *FS) start(ctx context.Context, root nfs.FH) error {
	attr, err := f.getattr(ctx, root, "/")
	if err != nil {
		return err
	}
	f.root = newInfo("/", root, attr)
	err = f.do(ctx, nfs.ProcFsinfo, &nfs.FsinfoArgs{Object: root}, &f.info, &f.info.Stat, nil)
	return failed(nfs.ProcFsinfo, "/", err)
}

// mount gets the handle of the root from the MOUNT program.
func (f *FS) mount(ctx context.Context) (nfs.FH, error) {
	if f.cfg.Mount != nil {
		return f.mountBy(ctx, f.cfg.Mount, true)
	}
	fh, err := f.mountBy(ctx, f.cfg.NFS, false)
	if f.cfg.MountTCP == nil || !errors.Is(err, &oncrpc.AcceptError{Stat: oncrpc.ProgUnavail}) {
		return fh, err
	}
	caller, err := f.cfg.MountTCP(ctx)
	if err != nil {
		return nil, err
	}
	return f.mountBy(ctx, caller, true)
}

// mountBy mounts by the MOUNT program of caller. If own is set, the FS closes the caller.
func (f *FS) mountBy(ctx context.Context, caller oncrpc.Caller, own bool) (nfs.FH, error) {
	m := mounter{caller, f.cred}
	where, fh, err := m.find(ctx, f.cfg.Export, f.cfg.Within)
	if err != nil {
		if own {
			caller.Close()
		}
		return nil, err
	}
	f.export = where
	if f.cfg.Within {
		f.prefix = below(path.Clean("/"+f.cfg.Export), where)
	}
	f.unmount = func(ctx context.Context) {
		// The server's list of mounts is for information only (RFC 1813 §5.2.3).
		m.call(ctx, nfs.MountUmnt, &nfs.MountPath{Path: where}, nil)
		if own {
			caller.Close()
		}
	}
	return fh, nil
}

// A mounter calls a MOUNT program.
type mounter struct {
	caller oncrpc.Caller
	cred   oncrpc.OpaqueAuth
}

// find mounts the export at name, or with within the export that contains name. It
// returns the export's path, too.
func (m mounter) find(ctx context.Context, name string, within bool) (export string, fh nfs.FH, err error) {
	if !within {
		fh, err = m.mount(ctx, name)
		return name, fh, err
	}
	exports, err := m.exports(ctx)
	if err != nil {
		return "", nil, err
	}
	for _, export = range candidates(exports, name) {
		fh, mountErr := m.mount(ctx, export)
		if mountErr == nil {
			return export, fh, nil
		}
		err = cmp.Or(err, mountErr)
		var stat nfs.MountStat
		if !errors.As(mountErr, &stat) {
			break // the MOUNT program cannot be called
		}
	}
	return "", nil, fmt.Errorf("%w; the server exports %s", err, listed(exports))
}

// candidates are the exports that contain name, the longest first, and at last "/", which
// a server may export without listing it.
func candidates(exports nfs.ExportList, name string) []string {
	name = path.Clean("/" + name)
	var fit []string
	for _, e := range exports {
		if e.Path != "/" && strings.HasPrefix(e.Path, "/") && inside(name, path.Clean(e.Path)) {
			fit = append(fit, e.Path)
		}
	}
	slices.SortStableFunc(fit, func(a, b string) int { return len(b) - len(a) })
	return append(slices.Compact(fit), "/")
}

// inside reports whether the clean path name is dir or below it.
func inside(name, dir string) bool {
	return name == dir || dir == "/" || strings.HasPrefix(name, dir+"/")
}

// below is the clean path name relative to dir, which contains it.
func below(name, dir string) string {
	return path.Join("/", strings.TrimPrefix(name, path.Clean(dir)))
}

func listed(exports nfs.ExportList) string {
	if len(exports) == 0 {
		return "nothing"
	}
	var names []string
	for _, e := range exports[:min(len(exports), 16)] {
		names = append(names, e.Path)
	}
	if len(exports) > len(names) {
		names = append(names, "...")
	}
	return strings.Join(names, " ")
}

// mount calls MNT.
func (m mounter) mount(ctx context.Context, name string) (nfs.FH, error) {
	var res nfs.MountRes
	err := m.call(ctx, nfs.MountMnt, &nfs.MountPath{Path: name}, &res)
	switch {
	case err != nil:
		return nil, &Error{Proc: nfs.MountMnt.String(), Path: name, Err: err}
	case res.Stat != nfs.MountOK:
		return nil, &Error{Proc: nfs.MountMnt.String(), Path: name, Err: res.Stat}
	case len(res.Flavors) > 0 && !slices.Contains(res.Flavors, oncrpc.FlavorSys) && !slices.Contains(res.Flavors, oncrpc.FlavorNone):
		return nil, &Error{Proc: nfs.MountMnt.String(), Path: name, Err: fmt.Errorf("the server requires %v; this client supports AUTH_SYS only", res.Flavors)}
	}
	return res.FH, nil
}

// exports calls EXPORT.
func (m mounter) exports(ctx context.Context) (nfs.ExportList, error) {
	var list nfs.ExportList
	if err := m.call(ctx, nfs.MountExport, nil, &list); err != nil {
		return nil, &Error{Proc: nfs.MountExport.String(), Err: err}
	}
	return list, nil
}

// maxExports bounds the result of EXPORT, in octets.
const maxExports = 64 << 10

// call makes a call and decodes its results, from memory that res may refer to.
func (m mounter) call(ctx context.Context, proc nfs.MountProc, args, res message) error {
	e := oncrpc.NewEncoder(nil)
	if args != nil {
		args.Encode(&e)
	}
	b, err := e.Finish()
	if err != nil {
		return err
	}
	c := &oncrpc.ClientCall{
		Call: oncrpc.Call{Prog: nfs.MountProgram, Vers: nfs.MountV3, Proc: uint32(proc), Cred: m.cred},
		Args: [][]byte{b},
		// MOUNT has no upper-layer binding that gives the length of replies.
		MaxReply: 1024,
	}
	if proc == nfs.MountExport {
		c.MaxReply = maxExports
	}
	reply, err := m.caller.Call(ctx, c)
	if err != nil || res == nil {
		return err
	}
	defer reply.Release()
	d := oncrpc.NewDecoder(slices.Clone(reply.Results), "MOUNT "+proc.String()+" results")
	res.Decode(&d)
	if err := d.End(); err != nil {
		return fmt.Errorf("%w: %w", ErrServer, err)
	}
	return nil
}

// MountOverTCP returns a Config.MountTCP for the MOUNT program of a host, at the
// given port or, if that is 0, where the host's port mapper says. Base says how
// to connect; its Network, Address and Reserved are not used.
func MountOverTCP(host string, port uint16, base rpctcp.ClientConfig) func(context.Context) (oncrpc.Caller, error) {
	dial := func(port uint16) (*rpctcp.Client, error) {
		cfg := base
		cfg.Network, cfg.Address = "tcp", net.JoinHostPort(host, strconv.Itoa(int(port)))
		cfg.Reserved = true // Linux's mountd refuses other ports unless told not to
		if cfg.Attempts == 0 {
			cfg.Attempts = 1
		}
		return rpctcp.NewClient(cfg)
	}
	return func(ctx context.Context) (oncrpc.Caller, error) {
		port := port
		if port == 0 {
			mapper, err := dial(oncrpc.PmapPort)
			if err != nil {
				return nil, err
			}
			defer mapper.Close()
			if port, err = getPort(ctx, mapper, oncrpc.Mapping{Prog: nfs.MountProgram, Vers: nfs.MountV3, Prot: oncrpc.ProtTCP}); err != nil {
				return nil, fmt.Errorf("asking the port mapper of %s for MOUNT: %w", host, err)
			}
			if port == 0 {
				return nil, fmt.Errorf("the port mapper of %s does not know MOUNT version 3 over TCP", host)
			}
		}
		return dial(port)
	}
}

// getPort calls GETPORT of a port mapper.
func getPort(ctx context.Context, mapper oncrpc.Caller, m oncrpc.Mapping) (uint16, error) {
	e := oncrpc.NewEncoder(nil)
	m.Encode(&e)
	b, err := e.Finish()
	if err != nil {
		return 0, err
	}
	reply, err := mapper.Call(ctx, &oncrpc.ClientCall{
		Call: oncrpc.Call{Prog: oncrpc.PmapProg, Vers: oncrpc.PmapVers, Proc: oncrpc.PmapGetPort},
		Args: [][]byte{b},
	})
	if err != nil {
		return 0, err
	}
	defer reply.Release()
	return oncrpc.ParsePort(reply.Results)
}
