// Sockets that are kept for the next worker.

package supervise

import (
	"errors"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/cmd/weft/internal/service"
)

// A stored socket has its purpose and address as its name, and is for streams or
// datagrams.
type stored struct {
	file  *os.File
	name  string
	kind  int     // SOCK_STREAM or SOCK_DGRAM
	owner *worker // who uses it; nil if nobody has yet
}

// A store has the sockets of a supervisor.
type store struct{ all []stored }

// adopt takes over sockets of a service manager.
func (s *store) adopt(sockets *service.Sockets) error {
	var errs []error
	for _, one := range *sockets {
		f, err := one.File()
		errs = append(errs, err)
		if err == nil {
			s.add(nil, one.Name, f)
		}
	}
	return errors.Join(append(errs, sockets.Close())...)
}

// add keeps a socket in place of one of the same name and kind.
func (s *store) add(owner *worker, name string, f *os.File) {
	one := stored{file: f, name: name, kind: kindOf(f), owner: owner}
	if owner != nil {
		s.remove(func(o stored) bool { return o.name == one.name && o.kind == one.kind && o.owner != owner })
	}
	s.all = append(s.all, one)
}

// keep closes what a worker does not use.
func (s *store) keep(w *worker) {
	s.remove(func(o stored) bool { return o.owner != w })
}

// close closes all.
func (s *store) close() {
	s.remove(func(stored) bool { return true })
}

func (s *store) remove(which func(stored) bool) {
	s.all = slices.DeleteFunc(s.all, func(o stored) bool {
		if !which(o) {
			return false
		}
		o.file.Close()
		return true
	})
}

// kindOf is the type of a socket, 0 if unknown.
func kindOf(f *os.File) (kind int) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { kind, _ = unix.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TYPE) })
	return kind
}
