// This file holds an export: a directory, who may use it, and how much.

package fileserver

import (
	"crypto/sha256"
	"fmt"

	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// Rules say who may use a file server or an export: see [mount.Access].
type Rules struct {
	Allow    mount.Allow
	Names    []origin.Name
	Insecure bool
	XprtSec  mount.XprtSec
}

// RulesOf returns the rules for calls that are of no export: what one of the exports
// accepts is accepted. personal is Config.Personal.
func RulesOf(exports []Export, personal bool) (all Rules) {
	var everybody, everySecurity bool
	for _, x := range exports {
		all.Allow = append(all.Allow, x.Allow...)
		all.Names = append(all.Names, x.Names...)
		all.Insecure = all.Insecure || x.Insecure
		all.XprtSec |= x.XprtSec
		everybody = everybody || !personal && len(x.Allow) == 0 && len(x.Names) == 0
		everySecurity = everySecurity || x.XprtSec == 0
	}
	if everybody {
		all.Allow, all.Names = nil, nil
	}
	if everySecurity {
		all.XprtSec = 0
	}
	return all
}

// An Export is a directory that a file server serves.
type Export struct {
	// Name is the path by which clients mount the directory. Handles belong to the name:
	// they stay valid while the export with that name is the same directory.
	Name string

	// Files says what is served, and how. Mark and Logger are set by the file server.
	Files folder.Config

	Rules
	Quota Quota
}

// mark returns the mark of the handles of an export with a name. It is not 0, which is that
// of a file server with one export and no configuration file.
func mark(name string) uint32 {
	sum := sha256.Sum256([]byte(name))
	return max(1, uint32(sum[0])<<16|uint32(sum[1])<<8|uint32(sum[2]))
}

// CheckExports reports exports that cannot be served together.
func CheckExports(exports []Export) error {
	marks := make(map[uint32]string)
	for _, x := range exports {
		switch other, ok := marks[mark(x.Name)]; {
		case other == x.Name && ok:
			return fmt.Errorf("two exports have the name %q", x.Name)
		case ok:
			return fmt.Errorf("the exports %q and %q have the same mark in their file handles, by chance: rename one of them", other, x.Name)
		}
		marks[mark(x.Name)] = x.Name
	}
	return nil
}

// An export is an Export that is being served.
type export struct {
	Export
	files   *folder.Server
	access  *mount.Access
	usage   *usage
	handler oncrpc.Handler // NFS, with the checks of access and quota
}

// defaults of folder.Config, which exports share.
const (
	rememberedNames = 1 << 18
	openFiles       = 8192
	leastOpenFiles  = 128
)

// open opens the directory of an export, which is one of several.
func (c *Config) open(x *Export, several int) (*folder.Server, error) {
	files := x.Files
	files.Logger = c.Logger
	files.MaxNames, files.MaxOpen = rememberedNames/several, max(openFiles/several, leastOpenFiles)
	if !c.Unmarked {
		files.Mark = mark(x.Name)
	}
	s, err := folder.New(files)
	if err != nil {
		return nil, fmt.Errorf("export %s: %w", x.Name, err)
	}
	return s, nil
}

// serves returns x as it is served from files, and counted by u.
func (c *Config) serves(x Export, files *folder.Server, u *usage) *export {
	e := &export{Export: x, files: files, access: c.accessBy(x.Rules), usage: u}
	e.handler = e.access.Guard(u.meter(files, e.access.Refused))
	return e
}

// mountable returns what MOUNT has to know.
func (e *export) mountable() mount.Export {
	return mount.Export{Path: e.Name, Handle: e.files.Handle, Allow: e.Allow, Access: e.access}
}
