// This file says what a client is to do.

package client

import (
	"context"
	"fmt"
	"os"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// What a client does where its [Config] says nothing.
const (
	DefaultRequests = 32
	DefaultMemory   = 32 << 20 // octets
	DefaultEntries  = 1 << 20
)

// A Config says what to mount, and how. NFS is needed; zero values of the others
// are the defaults.
type Config struct {
	// NFS calls the server. It is not closed with the FS.
	NFS oncrpc.Caller

	// Root is the handle of the directory that becomes the FS's root. If there is
	// none, the MOUNT protocol is asked for it.
	Root nfs.FH

	// Mount calls the server's MOUNT program. It is closed when the root is
	// mounted. Nil tries NFS, as Weft's server has MOUNT on the same connection,
	// and then MountTCP.
	Mount oncrpc.Caller

	// MountTCP, if not nil, makes a Caller for the MOUNT program over TCP, where
	// others have it (RFC 8267 §5.1). [MountOverTCP] returns one.
	MountTCP func(ctx context.Context) (oncrpc.Caller, error)

	// Export is the path to mount as the server names it, "/" if empty. With
	// Within it is a path that may lead on below an export: what the server exports
	// is asked for, the longest fitting export mounted, and the rest of the path is
	// what FS.Prefix returns.
	Export string
	Within bool

	// Auth is who calls: this process's user and groups if nil.
	Auth *oncrpc.AuthSys

	// Requests bounds the READs and WRITEs that a large transfer has under way,
	// DefaultRequests, and Memory the octets that it keeps for them. A transport
	// sends no more than the server's credits allow.
	Requests, Memory int

	// Entries bounds what one directory that is listed whole may have,
	// DefaultEntries, and 512 octets for each the memory for that.
	Entries int
}

// withDefaults is cfg with a value in every field, or what is wrong with it.
func (cfg Config) withDefaults() (Config, error) {
	if cfg.NFS == nil {
		return cfg, fmt.Errorf("nfs/client: Config.NFS is nil; it has to call the server")
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

// nobody is who calls where there are no numbers for users.
const nobody = 65534

// processAuth is the user of this process.
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
