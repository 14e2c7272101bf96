// This file holds the configuration of a client.

package client

import (
	"context"
	"fmt"
	"os"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// Defaults of a [Config].
const (
	DefaultRequests = 32
	DefaultMemory   = 32 << 20 // octets
	DefaultEntries  = 1 << 20
)

// A Config says what to mount, and how. NFS is required; zero values of the other fields
// stand for the defaults.
type Config struct {
	// NFS calls the server. It is not closed with the FS.
	NFS oncrpc.Caller

	// Root is the handle of the FS's root directory. If it is nil, Dial gets one by the
	// MOUNT protocol.
	Root nfs.FH

	// Mount calls the server's MOUNT program. The FS closes it. If it is nil, Dial tries
	// NFS, because Weft's server has MOUNT on the same connection, and then MountTCP.
	Mount oncrpc.Caller

	// MountTCP, if not nil, makes a Caller for the MOUNT program over TCP, where most
	// servers have it (RFC 8267 §5.1). [MountOverTCP] returns such a function.
	MountTCP func(ctx context.Context) (oncrpc.Caller, error)

	// Export is the path to mount, as the server names it; empty stands for "/". With
	// Within, the path may lead below an export: Dial asks for the list of exports,
	// mounts the longest that contains the path, and FS.Prefix returns the rest.
	Export string
	Within bool

	// Auth is the caller; nil stands for the user and the groups of this process.
	Auth *oncrpc.AuthSys

	// Requests bounds the READs or WRITEs that a transfer has in flight, and Memory the
	// octets of memory for them. The defaults are DefaultRequests and DefaultMemory. The
	// transport sends no more requests than the server's credits allow.
	Requests, Memory int

	// Entries bounds the entries of a directory that is listed at once. Their memory is
	// bounded to 512 octets for each. The default is DefaultEntries.
	Entries int
}

// withDefaults returns cfg with all fields set, or an error if it is not valid.
func (cfg Config) withDefaults() (Config, error) {
	if cfg.NFS == nil {
		return cfg, fmt.Errorf("nfs/client: Config.NFS is nil; it must be a Caller for the server")
	}
	if cfg.Auth == nil {
		cfg.Auth = processAuth()
	}
	if cfg.Export == "" {
		cfg.Export = "/"
	}
	for _, f := range []struct {
		field *int
		value int
	}{{&cfg.Requests, DefaultRequests}, {&cfg.Memory, DefaultMemory}, {&cfg.Entries, DefaultEntries}} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	return cfg, nil
}

// nobody is the caller's uid and gid on systems without numeric users.
const nobody = 65534

// processAuth returns the user and the groups of this process.
func processAuth() *oncrpc.AuthSys {
	a := &oncrpc.AuthSys{UID: nobody, GID: nobody}
	if name, err := os.Hostname(); err == nil {
		a.MachineName = name[:min(len(name), oncrpc.MaxMachineName)]
	}
	if uid := os.Getuid(); uid >= 0 {
		a.UID, a.GID = uint32(uid), uint32(os.Getgid())
		groups, _ := os.Getgroups()
		for _, g := range groups[:min(len(groups), oncrpc.MaxGIDs)] {
			a.GIDs = append(a.GIDs, uint32(g))
		}
	}
	return a
}
