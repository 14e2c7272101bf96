// This file puts a file server together, and takes it apart again.

package fileserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/nfs/binding"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpctcp"
	"github.com/weft-rdma/weft/verbs"
)

// A Server is a running file server.
type Server struct {
	cfg    Config
	limits limits
	rnic   *verbs.RNIC
	ports  ports

	sockets []Socket // of ports

	access  atomic.Pointer[mount.Access]
	exports *exports // nil for other handlers

	pmap *oncrpc.PortMapper
	rdma *rpcrdma.Server
	tcp  []*rpctcp.Server

	mapped     bool     // a port mapper knows where MOUNT is
	registry   registry // the one of this host, if that is it
	registered []oncrpc.Service

	serving sync.WaitGroup
	failed  chan error // why something stopped serving by itself
}

// Start starts a file server, which serves until Shutdown. The context applies to the
// start only.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	descriptors := cfg.descriptors
	if descriptors == 0 {
		descriptors = fairness.Descriptors()
	}
	s := &Server{cfg: cfg, limits: limitsFor(descriptors).atMost(cfg.Connections, cfg.RDMA != "")}
	s.access.Store(cfg.access())
	if err := s.start(ctx); err != nil {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		s.Shutdown(now) // does not wait: its context has ended
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) (err error) {
	if len(s.cfg.Exports) > 0 {
		if s.exports, err = s.cfg.openExports(); err != nil {
			return err
		}
	}
	if s.rnic, err = verbs.Open(verbs.Config{Logger: s.cfg.Logger}); err != nil {
		return err
	}
	if err := s.listen(ctx); err != nil {
		return err
	}
	services := s.ports.services(s.cfg.Low, s.cfg.High)
	if s.cfg.NLM {
		services = append(services, s.ports.lockManager()...)
	}
	s.pmap = oncrpc.NewPortMapper(services)
	s.failed = make(chan error, len(s.ports.all()))
	if err := s.serve(); err != nil {
		return err
	}
	return s.register(ctx)
}

// serve serves all programs on the open ports.
func (s *Server) serve() (err error) {
	if s.ports.rdma != nil {
		s.rdma, err = rpcrdma.NewServer(s.rnic, rpcrdma.ServerConfig{
			Handler: s.guard(oncrpc.HandlerFunc(s.serveRDMA)), Bindings: binding.NFS(),
			Connections: s.limits.rdma, Memory: transportMemory,
			ReverseCalls: s.cfg.Reverse, Logger: s.cfg.Logger,
		})
		if err != nil {
			return err
		}
		for _, ln := range append([]*cm.Listener{s.ports.rdma}, s.ports.moreRDMA...) {
			s.run("RDMA", func() error { return s.rdma.Serve(context.Background(), ln) })
		}
	}
	if s.ports.tcp != nil {
		err := s.serveOn(rpctcp.ServerConfig{
			Handler: s.cfg.Handler, TLS: s.cfg.StartTLS, Wrap: s.cfg.Wrap, Connections: s.limits.tcp, Memory: transportMemory,
		}, s.ports.tcp, nil)
		if err != nil {
			return err
		}
		server := s.tcp[0]
		for _, ln := range s.ports.moreTCP {
			s.run("TCP", func() error { return server.Serve(context.Background(), ln) })
		}
	}
	if err := s.serveOn(helper(s.cfg.Mount, 1), nil, s.ports.udp); err != nil {
		return err
	}
	mapper := helper(oncrpc.Mux{s.pmap.Program()}, s.limits.mapper)
	mapper.Wrap = s.cfg.Wrap
	return s.serveOn(mapper, s.ports.pmapTCP, s.ports.pmapUDP)
}

// serveRDMA executes a call over RDMA. There it also serves the port mapper (RFC 5666
// §10), for clients without another connection.
func (s *Server) serveRDMA(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
	if r.Prog == oncrpc.PmapProg {
		return oncrpc.Mux{s.pmap.Program()}.ServeRPC(ctx, r)
	}
	return s.cfg.Handler.ServeRPC(ctx, r)
}

// serveOn serves programs over TCP and UDP to callers with access; nil is no port. It
// rejects the calls of others, and drops their datagrams.
func (s *Server) serveOn(cfg rpctcp.ServerConfig, ln net.Listener, pc net.PacketConn) error {
	cfg.Handler = s.guard(cfg.Handler)
	cfg.Admit = s.admit
	if pc != nil {
		cfg.Allow = func(remote net.Addr) bool { return s.access.Load().AllowsSender(remote) }
	}
	cfg.Logger = s.cfg.Logger
	server, err := rpctcp.NewServer(cfg)
	if err != nil {
		return err
	}
	s.tcp = append(s.tcp, server)
	if ln != nil {
		s.run("TCP", func() error { return server.Serve(context.Background(), ln) })
	}
	if pc != nil {
		s.run("UDP", func() error { return server.ServePacket(context.Background(), pc) })
	}
	return nil
}

// guard returns a handler that rejects calls without access, and is observed.
func (s *Server) guard(h oncrpc.Handler) oncrpc.Handler {
	checked := h
	h = oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		if err := s.access.Load().Check(r); err != nil {
			return nil, err
		}
		return checked.ServeRPC(ctx, r)
	})
	if s.cfg.Observe != nil {
		h = s.cfg.Observe(h)
	}
	return h
}

// run starts a goroutine that serves.
func (s *Server) run(what string, serve func() error) {
	s.serving.Go(func() {
		err := serve()
		if !errors.Is(err, rpctcp.ErrServerClosed) && !errors.Is(err, rpcrdma.ErrServerClosed) && !errors.Is(err, cm.ErrClosed) {
			s.failed <- fmt.Errorf("%s is no longer served: %w", what, err)
		}
	})
}

// Failed delivers the error of a port that is no longer served.
func (s *Server) Failed() <-chan error { return s.failed }
