// This file makes a file server serve a directory.

package fileserver

import (
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/nfs/nlm"
	"github.com/weft-rdma/weft/oncrpc"
)

// Export makes c serve a directory. Path is its absolute path, with slashes.
func (c *Config) Export(files *folder.Server, path string) error {
	m, err := mount.New(mount.Export{Path: path, Handle: files.Handle, Allow: c.Allow, Guarded: true})
	if err != nil {
		return err
	}
	c.Low, c.High = nfs.V3, nfs.V3
	c.Handler = oncrpc.Mux{
		{Prog: nfs.Program, Low: nfs.V3, High: nfs.V3, Handler: files},
		nlm.NoLocks(),
		m.Program(), // over RDMA, too, for clients that have no other connection
	}
	c.NLM = true
	c.Mount = oncrpc.Mux{m.Program()}
	return nil
}
