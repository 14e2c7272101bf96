// This file makes the programs known to the port mapper of this host, where the
// file server is not one itself.

package fileserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpctcp"
)

// registerTime limits the calls to the port mapper of this host.
const registerTime = 5 * time.Second

// owner is the owner of the services that the port mapper shows.
const owner = "weft"

// A registryAt is an address at which a port mapper may accept registrations.
type registryAt struct{ network, address string }

// registries are the addresses of Linux's rpcbind: its socket, for everybody, and TCP,
// for privileged ports.
var registries = []registryAt{
	{"unix", "/run/rpcbind.sock"},
	{"unix", "/var/run/rpcbind.sock"},
	{"tcp", "127.0.0.1:111"},
}

// A registry calls a port mapper.
type registry struct{ at registryAt }

// do calls the port mapper.
func (r registry) do(ctx context.Context, calls func(context.Context, oncrpc.Caller) error) error {
	ctx, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	c, err := rpctcp.NewClient(rpctcp.ClientConfig{Network: r.at.network, Address: r.at.address, Reserved: true, Attempts: 1})
	if err != nil {
		return err
	}
	defer c.Close()
	return calls(ctx, c)
}

// register makes MOUNT known to clients, as Config.PortMap says and as far as possible.
func (s *Server) register(ctx context.Context) error {
	s.mapped = s.ports.pmapTCP != nil
	if s.mapped || s.ports.tcp == nil || s.cfg.PortMap == PortMapOff {
		return nil
	}
	all := s.cfg.registries
	if all == nil {
		all = registries
	}
	services := s.ports.services(s.cfg.Low, s.cfg.High)
	var errs []error
	for _, at := range all {
		r := registry{at}
		err := r.do(ctx, func(ctx context.Context, c oncrpc.Caller) error {
			return oncrpc.Register(ctx, c, owner, services)
		})
		if err == nil {
			s.mapped, s.registry, s.registered = true, r, services
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", at.address, err))
	}
	err := errors.Join(errs...)
	if s.cfg.PortMap == PortMapRegister {
		return fmt.Errorf("no port mapper on this host accepts registrations: start rpcbind, or use --portmap own or off: %w", err)
	}
	s.cfg.Logger.Debug("not registered", "err", err)
	return nil
}

// unregister undoes register.
func (s *Server) unregister(ctx context.Context) error {
	if s.registered == nil {
		return nil
	}
	services := s.registered
	s.registered = nil
	return s.registry.do(context.WithoutCancel(ctx), func(ctx context.Context, c oncrpc.Caller) error {
		return oncrpc.Unregister(ctx, c, owner, services)
	})
}

// Mapped reports whether clients find MOUNT by a port mapper. Otherwise they have to be
// given its port.
func (s *Server) Mapped() bool { return s.mapped }
