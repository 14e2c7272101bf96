// This file holds the mounted export, and makes its calls.

package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// An FS is a mounted export. Its methods may be called by many goroutines.
type FS struct {
	cfg           Config
	cred          oncrpc.OpaqueAuth
	root          *Info
	export        string // the mounted path, as the server names it
	prefix        string
	info          nfs.FsinfoRes
	noReaddirplus atomic.Bool // the server does not support READDIRPLUS
	blocks        blocks

	// unmount calls UMNT; nil if Config.Root was given.
	unmount func(ctx context.Context)
}

// Info returns the result of FSINFO for the root: limits and preferred sizes of requests,
// and properties of the file system.
func (f *FS) Info() nfs.FsinfoRes { return f.info }

// Export returns the path that is mounted, as the server names it.
func (f *FS) Export() string { return f.export }

// Caller returns the identity of calls: Config.Auth, or this process's user and groups.
func (f *FS) Caller() oncrpc.AuthSys { return *f.cfg.Auth }

// Prefix returns the rest of Config.Export, below the export that was mounted, if
// Config.Within was set. It is a path in this FS.
func (f *FS) Prefix() string { return f.prefix }

// readMax and writeMax are the limits of one READ and WRITE, in octets.
func (f *FS) readMax() int  { return ioSize(f.info.ReadMax) }
func (f *FS) writeMax() int { return ioSize(f.info.WriteMax) }

// ioSize limits a size that the server has returned.
func ioSize(n uint32) int { return int(min(max(n, 512), 1<<20)) }

// unmountTime limits how long Close waits.
const unmountTime = time.Second

// Close calls UMNT, and waits for a short time only. It does not close Config.NFS.
func (f *FS) Close() error {
	if f.unmount != nil {
		ctx, cancel := context.WithTimeout(context.Background(), unmountTime)
		defer cancel()
		f.unmount(ctx)
	}
	return nil
}

// A message is the arguments or results of a procedure.
type message interface {
	Encode(*oncrpc.Encoder)
	Decode(*oncrpc.Decoder)
}

// Pauses before a call is repeated that the server cannot execute yet.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
)

// call makes a call, and has decode read the results while their memory is valid. After
// NFS3ERR_JUKEBOX it waits and calls again, because the server has not executed the call
// (RFC 1813 §2.6).
func (f *FS) call(ctx context.Context, proc nfs.Proc, c *oncrpc.ClientCall, decode func(*oncrpc.ClientReply) (nfs.Stat, error)) error {
	c.Prog, c.Vers, c.Proc, c.Cred = nfs.Program, nfs.V3, uint32(proc), f.cred
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		reply, err := f.cfg.NFS.Call(ctx, c)
		if err != nil {
			return err
		}
		stat, err := decode(reply)
		reply.Release()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrServer, err)
		}
		if stat != nfs.ErrJukebox {
			return stat.Err()
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(stat, context.Cause(ctx))
		case <-timer.C:
		}
	}
}

// do makes a call without payload. If keep is not nil, it copies what res refers to in the
// memory of the reply.
func (f *FS) do(ctx context.Context, proc nfs.Proc, args, res message, stat *nfs.Stat, keep func()) error {
	e := oncrpc.NewEncoder(nil)
	args.Encode(&e)
	b, err := e.Finish()
	if err != nil {
		return err
	}
	return f.call(ctx, proc, &oncrpc.ClientCall{Args: [][]byte{b}}, func(reply *oncrpc.ClientReply) (nfs.Stat, error) {
		d := oncrpc.NewDecoder(reply.Results, proc.String()+" results")
		res.Decode(&d)
		if err := d.End(); err != nil {
			return 0, err
		}
		if keep != nil {
			keep()
		}
		return *stat, nil
	})
}
