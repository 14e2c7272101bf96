// This file holds the list of mounts that DUMP returns.

package mount

import (
	"net"
	"slices"
	"sync"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/nfs"
)

// maxRemembered bounds the list, because clients that disappear never unmount. When
// it is full, the host with the most mounts loses the oldest of them.
const maxRemembered = 1024

// mounts is the list, the oldest first.
type mounts struct {
	mu  sync.Mutex
	all nfs.MountList
}

// add enters a mount, as the latest.
func (m *mounts) add(host, path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(nfs.Mount{Host: host, Path: path})
	if len(m.all) == maxRemembered {
		i := fairness.OldestOfLargest(m.all, func(mount nfs.Mount) string { return mount.Host })
		m.all = slices.Delete(m.all, i, i+1)
	}
	m.all = append(m.all, nfs.Mount{Host: host, Path: path})
}

func (m *mounts) remove(host, path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(nfs.Mount{Host: host, Path: path})
}

// drop removes a mount. m.mu is held.
func (m *mounts) drop(mount nfs.Mount) {
	m.all = slices.DeleteFunc(m.all, func(other nfs.Mount) bool { return other == mount })
}

func (m *mounts) removeAll(host string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(other nfs.Mount) bool { return other.Host == host })
}

// list returns a copy of the list.
func (m *mounts) list() nfs.MountList {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all)
}

// hostOf is the name of a client in the list: its address. A host name would need a
// look-up, and be no more trustworthy.
func hostOf(a net.Addr) string {
	addr, ok := ipOf(a)
	if !ok {
		return "unknown"
	}
	return addr.String()
}
