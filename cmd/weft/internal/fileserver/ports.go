// This file is the ports of a file server, and what is found on which.

package fileserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/nlm"
	"github.com/weft-rdma/weft/oncrpc"
)

// ports are the listeners of a file server; nil is none.
type ports struct {
	rdma     *cm.Listener   // NFS
	tcp      net.Listener   // NFS and MOUNT
	moreRDMA []*cm.Listener // the same at further addresses
	moreTCP  []net.Listener
	udp      net.PacketConn // MOUNT
	pmapTCP  net.Listener   // the port mapper
	pmapUDP  net.PacketConn
}

// listen opens the ports.
func (s *Server) listen(ctx context.Context) (err error) {
	if s.cfg.RDMA != "" {
		if s.ports.rdma, err = s.listenRDMA(ctx, s.cfg.RDMA); err != nil {
			return err
		}
	}
	for _, addr := range s.cfg.FurtherRDMA {
		ln, err := s.listenRDMA(ctx, addr)
		if err != nil {
			return err
		}
		s.ports.moreRDMA = append(s.ports.moreRDMA, ln)
	}
	for _, addr := range s.cfg.FurtherTCP {
		ln, _, err := s.inherited(SocketNFS, addr)
		if err == nil && ln == nil {
			ln, err = listenTCP(ctx, addr)
		}
		if err != nil {
			return listenError(addr, err)
		}
		s.inUse(SocketNFS, addr, ln)
		s.ports.moreTCP = append(s.ports.moreTCP, ln)
	}
	if s.cfg.TCP == "" {
		return nil
	}
	if err := s.listenTCP(ctx); err != nil {
		return err
	}
	switch s.cfg.PortMap {
	case PortMapOwn:
		return s.listenPortMap(ctx)
	case PortMapAuto:
		if err := s.listenPortMap(ctx); err != nil {
			s.cfg.Logger.Debug("no port mapper of our own", "err", err)
		}
	}
	return nil
}

// listenRDMA opens a port of NFS over RDMA.
func (s *Server) listenRDMA(ctx context.Context, addr string) (*cm.Listener, error) {
	ln, _, err := s.inherited(SocketRDMA, addr)
	if err == nil && ln == nil {
		ln, err = listenTCP(ctx, addr)
	}
	if err != nil {
		return nil, listenError(addr, err)
	}
	s.inUse(SocketRDMA, addr, ln)
	l, err := cm.NewListener(s.rnic, ln, cm.ListenConfig{
		Backlog: s.limits.backlog, Admit: s.admit, TLS: s.cfg.TLS, Wrap: s.cfg.Wrap, Logger: s.cfg.Logger,
	})
	if err != nil {
		ln.Close()
	}
	return l, err
}

// listenTCP opens the port of NFS and MOUNT over TCP, and the same port of UDP.
func (s *Server) listenTCP(ctx context.Context) (err error) {
	ln, pc, err := s.inherited(SocketNFS, s.cfg.TCP)
	if err == nil && ln == nil {
		ln, err = listenTCP(ctx, s.cfg.TCP)
	}
	if taken(err) && s.cfg.AnyTCP {
		host, port, _ := net.SplitHostPort(s.cfg.TCP)
		if ln, err = listenTCP(ctx, net.JoinHostPort(host, "0")); err == nil {
			s.cfg.Notice(fmt.Sprintf("TCP port %s is in use, perhaps by another NFS server: using %v instead", port, ln.Addr()))
		}
	}
	if err != nil {
		return listenError(s.cfg.TCP, err)
	}
	s.ports.tcp = ln
	s.inUse(SocketNFS, s.cfg.TCP, ln)
	// Some clients unmount over UDP. Without UDP the server would still list them as
	// mounted.
	if pc == nil {
		pc, err = new(net.ListenConfig).ListenPacket(ctx, "udp", ln.Addr().String())
	}
	if err != nil {
		s.cfg.Logger.Info("MOUNT is not served over UDP", "err", err)
		return nil
	}
	s.ports.udp = pc
	s.inUse(SocketNFS, s.cfg.TCP, pc)
	return nil
}

// listenPortMap opens the TCP and UDP port of the port mapper, or neither.
func (s *Server) listenPortMap(ctx context.Context) (err error) {
	host, _, _ := net.SplitHostPort(s.cfg.TCP)
	port := s.cfg.portMapPort
	if port == "" {
		port = strconv.Itoa(oncrpc.PmapPort)
	}
	addr := net.JoinHostPort(host, port)
	ln, pc, err := s.inherited(SocketPortMap, addr)
	if err == nil && ln == nil {
		ln, err = listenTCP(ctx, addr)
	}
	if err != nil {
		return portMapError(addr, err)
	}
	if pc == nil { // port 0 becomes the same port for both
		pc, err = new(net.ListenConfig).ListenPacket(ctx, "udp", ln.Addr().String())
	}
	if err != nil {
		ln.Close()
		return portMapError(addr, err)
	}
	s.ports.pmapTCP, s.ports.pmapUDP = ln, pc
	s.inUse(SocketPortMap, addr, ln)
	s.inUse(SocketPortMap, addr, pc)
	return nil
}

// listenTCP listens for plain TCP connections.
func listenTCP(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return ln, nil
}

// taken reports whether an error is about the port, so that another port may work.
func taken(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, os.ErrPermission)
}

// listenError explains why listening failed, and what to do.
func listenError(addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use: choose another port, or stop the program that has it", addr)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("this user may not listen on %s: choose a port from 1024 up", addr)
	}
	return fmt.Errorf("cannot listen on %s: %w", addr, err)
}

// portMapError is listenError for a port that can't be another.
func portMapError(addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use: another port mapper may be there, which --portmap register uses", addr)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("this user may not be the port mapper, on %s: without --portmap own, mount commands name the port of MOUNT", addr)
	}
	return listenError(addr, err)
}

// all returns the open ports.
func (p *ports) all() (all []io.Closer) {
	if p.rdma != nil {
		all = append(all, p.rdma)
	}
	for _, ln := range []net.Listener{p.tcp, p.pmapTCP} {
		if ln != nil {
			all = append(all, ln)
		}
	}
	for _, ln := range p.moreRDMA {
		all = append(all, ln)
	}
	for _, ln := range p.moreTCP {
		all = append(all, ln)
	}
	for _, pc := range []net.PacketConn{p.udp, p.pmapUDP} {
		if pc != nil {
			all = append(all, pc)
		}
	}
	return all
}

// close closes the ports. Those that were served are closed already.
func (p *ports) close() {
	for _, c := range p.all() {
		c.Close()
	}
}

// services are the programs and ports for a port mapper. MOUNT is served over RDMA as
// well, but clients look for it over TCP (RFC 8267 §5.1).
func (p *ports) services(low, high uint32) (all []oncrpc.Service) {
	add := func(prog, low, high uint32, network string, addr net.Addr) {
		for vers := low; vers <= high; vers++ {
			for _, a := range addresses(addr) {
				all = append(all, oncrpc.Service{Prog: prog, Vers: vers, Netid: oncrpc.NetidOf(network, a.Addr()), Addr: a})
			}
		}
	}
	if p.rdma != nil {
		add(nfs.Program, low, high, "rdma", p.rdma.Addr())
	}
	for _, ln := range p.moreRDMA {
		add(nfs.Program, low, high, "rdma", ln.Addr())
	}
	if p.tcp != nil {
		add(nfs.Program, low, high, "tcp", p.tcp.Addr())
		add(nfs.MountProgram, nfs.MountV1, nfs.MountV3, "tcp", p.tcp.Addr())
	}
	for _, ln := range p.moreTCP {
		add(nfs.Program, low, high, "tcp", ln.Addr())
		add(nfs.MountProgram, nfs.MountV1, nfs.MountV3, "tcp", ln.Addr())
	}
	if p.udp != nil {
		add(nfs.MountProgram, nfs.MountV1, nfs.MountV3, "udp", p.udp.LocalAddr())
	}
	if p.pmapTCP != nil {
		add(oncrpc.PmapProg, oncrpc.PmapVers, oncrpc.RpcbVers4, "tcp", p.pmapTCP.Addr())
		add(oncrpc.PmapProg, oncrpc.PmapVers, oncrpc.RpcbVers4, "udp", p.pmapUDP.LocalAddr())
	}
	return all
}

// lockManager is the service of NLM, over TCP: Linux looks for it there with NFS over
// RDMA and TCP.
func (p *ports) lockManager() (all []oncrpc.Service) {
	if p.tcp == nil {
		return nil
	}
	for _, a := range addresses(p.tcp.Addr()) {
		all = append(all, oncrpc.Service{Prog: nlm.Program, Vers: nlm.V4, Netid: oncrpc.NetidOf("tcp", a.Addr()), Addr: a})
	}
	return all
}

// addresses returns the addresses of a listener, one for each version of IP: the
// unspecified address of IPv6 includes IPv4.
func addresses(a net.Addr) []netip.AddrPort {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return nil
	}
	ap = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	if ap.Addr() == netip.IPv6Unspecified() {
		return []netip.AddrPort{netip.AddrPortFrom(netip.IPv4Unspecified(), ap.Port()), ap}
	}
	return []netip.AddrPort{ap}
}

// RDMA is the address of NFS over RDMA, nil for none.
func (s *Server) RDMA() net.Addr {
	if s.ports.rdma == nil {
		return nil
	}
	return s.ports.rdma.Addr()
}

// TCP is the address of NFS and MOUNT over TCP, nil for none.
func (s *Server) TCP() net.Addr {
	if s.ports.tcp == nil {
		return nil
	}
	return s.ports.tcp.Addr()
}

// Listening returns the addresses of NFS over RDMA.
func (s *Server) Listening() (all []net.Addr) {
	if a := s.RDMA(); a != nil {
		all = append(all, a)
	}
	for _, ln := range s.ports.moreRDMA {
		all = append(all, ln.Addr())
	}
	return all
}
