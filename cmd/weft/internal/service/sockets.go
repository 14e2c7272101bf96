// Sockets that the manager has opened.

package service

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A Socket listens: it has either a listener, or for datagrams a connection.
type Socket struct {
	Name     string
	Listener net.Listener
	Packet   net.PacketConn
}

// Close closes the socket.
func (s Socket) Close() error {
	if s.Packet != nil {
		return s.Packet.Close()
	}
	return s.Listener.Close()
}

// File returns a duplicate of the socket.
func (s Socket) File() (*os.File, error) {
	var of any = s.Packet
	if s.Packet == nil {
		of = s.Listener
	}
	f, ok := of.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, fmt.Errorf("%T is no socket of the system", of)
	}
	return f.File()
}

// addr is the local address.
func (s Socket) addr() net.Addr {
	if s.Packet != nil {
		return s.Packet.LocalAddr()
	}
	return s.Listener.Addr()
}

// Sockets are those that nobody has taken yet.
type Sockets []Socket

// StoredName is the name of a socket that a supervisor keeps for the next process: its
// purpose, and the address that was asked for, which may have the port 0.
func StoredName(purpose, address string) string {
	return purpose + "@" + url.QueryEscape(address)
}

// Take removes and returns the sockets for a purpose: those that were stored for these
// addresses, and those that have the name of the purpose whatever their address.
func (s *Sockets) Take(purpose string, addresses ...string) (taken []Socket) {
	*s = slices.DeleteFunc(*s, func(one Socket) bool {
		wanted := one.Name == purpose || slices.ContainsFunc(addresses, func(a string) bool { return one.Name == StoredName(purpose, a) })
		if wanted {
			taken = append(taken, one)
		}
		return wanted
	})
	return taken
}

// Unknown closes what was stored for addresses that are not served any more, and returns an
// error if there are other sockets left. Known are the purposes that there are.
func (s *Sockets) Unknown(known ...string) error {
	var errs []error
	for _, one := range *s {
		if purpose, _, stored := strings.Cut(one.Name, "@"); !stored || !slices.Contains(known, purpose) {
			errs = append(errs, fmt.Errorf("the service manager passes a socket for %v with the name %q, which is not used here: FileDescriptorName= may be %s", one.addr(), one.Name, strings.Join(known, ", ")))
		}
	}
	return errors.Join(append(errs, s.Close())...)
}

// Close closes all.
func (s *Sockets) Close() error {
	var errs []error
	for _, one := range *s {
		errs = append(errs, one.Close())
	}
	*s = nil
	return errors.Join(errs...)
}

// sockets returns those that the environment speaks of. A supervisor does not know the
// process ID before, so LISTEN_PID has its own.
func (env *environment) sockets(control bool) (all Sockets, err error) {
	files, err := env.files(control)
	for _, f := range files {
		one, err1 := socketOf(f)
		f.Close()
		if err1 != nil {
			err = errors.Join(err, err1)
			continue
		}
		all = append(all, one)
	}
	if err != nil {
		all.Close()
		return nil, err
	}
	return all, nil
}

// files returns the descriptors that the environment speaks of.
func (env *environment) files(control bool) ([]*os.File, error) {
	count := env.get("LISTEN_FDS")
	owner := env.pid
	if control {
		owner = env.ppid
	}
	if count == "" || !is(env.get("LISTEN_PID"), owner) {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > maxSockets {
		return nil, fmt.Errorf("LISTEN_FDS=%s: expected a number of sockets, at most %d", count, maxSockets)
	}
	var names []string
	if v := env.get("LISTEN_FDNAMES"); v != "" {
		names = strings.Split(v, ":")
		if len(names) != n {
			return nil, fmt.Errorf("LISTEN_FDNAMES has %d names for %d sockets", len(names), n)
		}
	}
	var files []*os.File
	for i := range n {
		name := "unknown" // as systemd says
		if names != nil {
			name = names[i]
		}
		files = append(files, os.NewFile(uintptr(env.first+i), name))
	}
	return files, nil
}

// maxSockets is more than anybody has.
const maxSockets = 1024

// socketOf makes a socket of a descriptor, which it leaves open. Its own is closed when a
// program is executed.
func socketOf(f *os.File) (Socket, error) {
	one := Socket{Name: f.Name()}
	wrong := func(err error) (Socket, error) {
		return one, fmt.Errorf("the service manager passes a socket with the name %q that cannot be used: %w", f.Name(), err)
	}
	ln, err := net.FileListener(f) // first, as FilePacketConn accepts those of Unix, too
	if err != nil {
		pc, err1 := net.FilePacketConn(f)
		if err1 != nil {
			return wrong(err)
		}
		one.Packet = pc
		return one, nil
	}
	if err := listens(f); err != nil {
		ln.Close()
		return wrong(err)
	}
	one.Listener = ln
	return one, nil
}
