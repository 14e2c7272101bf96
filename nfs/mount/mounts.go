// This file is the memory of who has mounted what.

package mount

import (
	"net"
	"slices"
	"sync"

	"github.com/weft-rdma/weft/nfs"
)

// maxRemembered bounds the list: clients that went away without a word stay in
// it, and the oldest of the host with the most are forgotten.
const maxRemembered = 1024

// mounts is the list, oldest first.
type mounts struct {
	mu  sync.Mutex
	all nfs.MountList
}

// add notes a mount as the youngest.
func (m *mounts) add(host, path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(nfs.Mount{Host: host, Path: path})
	if len(m.all) == maxRemembered {
		i := m.most()
		m.all = slices.Delete(m.all, i, i+1)
	}
	m.all = append(m.all, nfs.Mount{Host: host, Path: path})
}

// most returns the oldest of the host with the most. m.mu is held.
func (m *mounts) most() (oldest int) {
	count := make(map[string]int)
	for _, mount := range m.all {
		count[mount.Host]++
	}
	for i, mount := range m.all {
		if count[mount.Host] > count[m.all[oldest].Host] {
			oldest = i
		}
	}
	return oldest
}

func (m *mounts) remove(host, path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(nfs.Mount{Host: host, Path: path})
}

// drop takes one out. m.mu is held.
func (m *mounts) drop(mount nfs.Mount) {
	m.all = slices.DeleteFunc(m.all, func(other nfs.Mount) bool { return other == mount })
}

func (m *mounts) removeAll(host string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(other nfs.Mount) bool { return other.Host == host })
}

// list returns a copy.
func (m *mounts) list() nfs.MountList {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all)
}

// hostOf is the name by which a client is remembered: its address, as names
// could not be trusted more and cost a look-up.
func hostOf(a net.Addr) string {
	addr, ok := ipOf(a)
	if !ok {
		return "unknown"
	}
	return addr.String()
}
