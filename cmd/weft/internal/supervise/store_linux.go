// Sockets that are kept for the next worker.

package supervise

import (
	"errors"
	"os"
	"slices"

	"github.com/weft-rdma/weft/cmd/weft/internal/service"
)

// A stored socket has its purpose and address as its name.
type stored struct {
	file  *os.File
	name  string
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

// add keeps a socket, beside those that others use until it is known who stays.
func (s *store) add(owner *worker, name string, f *os.File) {
	s.all = append(s.all, stored{file: f, name: name, owner: owner})
}

// forget closes what a worker has stored.
func (s *store) forget(w *worker) {
	s.remove(func(o stored) bool { return o.owner == w })
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
