// The access log: a line for each call, with who, what, how long and the status.

package observe

import (
	"encoding/hex"
	"log/slog"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// attrs describes a call: who made it, what it asked for, how long it took, and its status.
func (s *served) attrs() []slog.Attr {
	all := []slog.Attr{slog.String("peer", s.Remote.String()), slog.String("transport", s.Network)}
	if who := s.Origin; who != nil {
		if who.User != nil {
			all = append(all, slog.Uint64("socket_uid", uint64(who.User.UID)))
		}
		if who.TLS != nil && len(who.TLS.PeerCertificates) > 0 {
			all = append(all, slog.String("identity", who.TLS.PeerCertificates[0].Subject.String()))
		}
	}
	if s.Cred.Flavor == oncrpc.FlavorSys {
		var sys oncrpc.AuthSys
		if sys.Parse(s.Cred.Body) == nil {
			all = append(all, slog.Uint64("uid", uint64(sys.UID)), slog.Uint64("gid", uint64(sys.GID)))
		}
	}
	all = append(all, slog.String("program", s.program), slog.String("version", s.version), slog.String("procedure", s.name))
	if s.export != "" {
		all = append(all, slog.String("export", s.export))
	}
	all = append(all, s.object()...)
	return append(all, slog.Uint64("xid", uint64(s.XID)), slog.Duration("took", s.took), slog.String("status", s.status),
		slog.Int("received", len(s.Message)), slog.Int("sent", s.replied))
}

const (
	maxHandle = 64   // octets (RFC 1813 §2.4)
	maxName   = 255  // octets of a name that are logged
	maxPath   = 1024 // of MOUNT (RFC 1813 §5.1.3)
)

// object describes what a call is about: a file handle of NFS version 3 and the name in
// that directory, if the procedure has one, or the path of MNT and UMNT.
func (s *served) object() (all []slog.Attr) {
	d := oncrpc.NewDecoder(s.Args, "arguments")
	switch {
	case s.Prog == nfs.MountProgram && (s.Proc == 1 || s.Proc == 3):
		if path := d.Opaque(maxPath); d.Err() == nil {
			all = append(all, slog.String("path", string(path)))
		}
	case s.Prog == nfs.Program && s.Vers == nfs.V3 && s.Proc != 0:
		if handle := d.Opaque(maxHandle); d.Err() == nil {
			all = append(all, slog.String("handle", hex.EncodeToString(handle)))
		}
		if !hasName[nfs.Proc(s.Proc)] {
			return all
		}
		if name := d.Opaque(maxName); d.Err() == nil {
			all = append(all, slog.String("name", string(name)))
		}
	}
	return all
}

// hasName are the procedures whose arguments begin with a directory and a name in it.
var hasName = map[nfs.Proc]bool{
	nfs.ProcLookup: true, nfs.ProcCreate: true, nfs.ProcMkdir: true, nfs.ProcSymlink: true, nfs.ProcMknod: true,
	nfs.ProcRemove: true, nfs.ProcRmdir: true, nfs.ProcRename: true,
}
