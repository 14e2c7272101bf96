// The servers of files, and how their client reaches them.

package main

import (
	"context"
	"errors"
	"net"
	"path/filepath"

	"github.com/go-git/go-billy/v5/osfs"
	gonfs "github.com/willscott/go-nfs"
	gonfshelpers "github.com/willscott/go-nfs/helpers"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/binding"
	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpctcp"
	"github.com/weft-rdma/weft/verbs"
)

// A fileDriver does samples of files with one kind of server.
type fileDriver struct {
	rnic   *verbs.RNIC
	shared *share // of the sample that is going on, at the target
	peer   Peer
}

func (*fileDriver) offer(Job) []Remote { return nil }

// verify looks at what was written, and removes the directory.
func (d *fileDriver) verify(job Job, messages uint64) error {
	s := d.shared
	d.shared = nil
	var err error
	if job.Workload.Op == Write {
		err = s.check(job.Workload, messages)
	}
	return errors.Join(err, s.remove())
}

func (d *fileDriver) prepare(ctx context.Context, job Job) (ready Ready, do serve, err error) {
	if d.shared != nil { // of a sample that failed
		if err := d.shared.remove(); err != nil {
			return ready, nil, err
		}
	}
	if d.shared, err = newShare(job); err != nil {
		return ready, nil, err
	}
	ln, err := listen(ctx, job)
	if err != nil {
		return ready, nil, err
	}
	start := d.serveWeft
	if d.peer == GoNFS {
		start = d.serveGoNFS
	}
	run, stop, err := start(job, ln)
	if err != nil {
		return ready, nil, errors.Join(err, ln.Close())
	}
	do = func(over <-chan struct{}) (Served, error) {
		served := make(chan error, 1)
		go func() { served <- run(ctx) }()
		select {
		case <-over:
		case <-ctx.Done():
		}
		err := stop()
		<-served // it was stopped
		return Served{}, err
	}
	return Ready{Addr: ln.Addr().String()}, do, nil
}

// serveGoNFS serves the directory with go-nfs.
func (d *fileDriver) serveGoNFS(_ Job, ln *net.TCPListener) (run func(context.Context) error, stop func() error, err error) {
	gonfs.Log.SetLevel(gonfs.PanicLevel)
	handler := gonfshelpers.NewCachingHandler(gonfshelpers.NewNullAuthHandler(osfs.New(d.shared.dir)), 1024)
	return func(context.Context) error { return gonfs.Serve(ln, handler) }, ln.Close, nil
}

// serveWeft serves the directory as `weft serve` does.
func (d *fileDriver) serveWeft(job Job, ln *net.TCPListener) (run func(context.Context) error, stop func() error, err error) {
	files, err := folder.New(folder.Config{Root: d.shared.dir, SingleUser: true})
	if err != nil {
		return nil, nil, err
	}
	mounts, err := mount.New(mount.Export{Path: filepath.ToSlash(d.shared.dir), Handle: files.Handle})
	if err != nil {
		return nil, nil, errors.Join(err, files.Close())
	}
	programs := oncrpc.Mux{{Prog: nfs.Program, Low: nfs.V3, High: nfs.V3, Handler: files}, mounts.Program()}
	if d.peer == WeftTCP {
		server, err := rpctcp.NewServer(rpctcp.ServerConfig{Handler: programs})
		if err != nil {
			return nil, nil, errors.Join(err, files.Close())
		}
		run = func(ctx context.Context) error { return server.Serve(ctx, ln) }
		return run, func() error { return errors.Join(server.Close(), files.Close()) }, nil
	}
	start := mpa.Config{NoCRC: !job.Workload.CRC}
	server, err := rpcrdma.NewServer(d.rnic, rpcrdma.ServerConfig{Handler: programs, Bindings: binding.NFS(), MPA: start})
	if err != nil {
		return nil, nil, errors.Join(err, files.Close())
	}
	connections, err := cm.NewListener(d.rnic, ln, cm.ListenConfig{MPA: start})
	if err != nil {
		return nil, nil, errors.Join(err, server.Close(), files.Close())
	}
	run = func(ctx context.Context) error { return server.Serve(ctx, connections) }
	return run, func() error { return errors.Join(server.Close(), files.Close()) }, nil
}

func (d *fileDriver) initiate(ctx context.Context, job Job, ready Ready) (s Sample, err error) {
	caller, err := d.caller(job, ready)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, caller.Close()) }()
	return useFile(ctx, caller, job)
}

// A closableCaller is a client of either transport.
type closableCaller interface {
	oncrpc.Caller
	Close() error
}

// caller reaches the server that is ready.
func (d *fileDriver) caller(job Job, ready Ready) (closableCaller, error) {
	if d.peer != WeftRDMA {
		return rpctcp.NewClient(rpctcp.ClientConfig{Dial: func(ctx context.Context) (net.Conn, error) {
			return dialReady(ctx, job, ready)
		}})
	}
	return rpcrdma.NewClient(rpcrdma.ClientConfig{
		Address: ready.Addr, RNIC: d.rnic, Bindings: binding.NFS(),
		Dial: func(ctx context.Context, qp *verbs.QP, p cm.Params) (*cm.Conn, error) {
			nc, err := dialReady(ctx, job, ready)
			if err != nil {
				return nil, err
			}
			p.MPA.NoCRC = !job.Workload.CRC
			return cm.Connect(ctx, qp, nc, p)
		},
	})
}
