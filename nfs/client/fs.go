// This file holds the mounted export, and how it makes calls.

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
	cfg    Config
	cred   oncrpc.OpaqueAuth
	root   *Info
	export string // what is mounted, as the server names it
	prefix string
	info   nfs.FsinfoRes
	unplus atomic.Bool // the server has no READDIRPLUS
	blocks blocks

	// unmount tells the server's MOUNT program; nil if the root was given.
	unmount func(ctx context.Context)
}

// Info is what the server has told of the file system: the sizes of requests
// that it takes and prefers, and what it can do.
func (f *FS) Info() nfs.FsinfoRes { return f.info }

// Export is the path of what is mounted, as the server names it.
func (f *FS) Export() string { return f.export }

// Caller is who calls: Config.Auth, or this process's user and groups.
func (f *FS) Caller() oncrpc.AuthSys { return *f.cfg.Auth }

// Prefix is what was left of Config.Export behind the export that was mounted,
// if Config.Within asked for that: where the path leads in this FS.
func (f *FS) Prefix() string { return f.prefix }

// readMax and writeMax are the most octets of one READ and WRITE.
func (f *FS) readMax() int  { return ioSize(f.info.ReadMax) }
func (f *FS) writeMax() int { return ioSize(f.info.WriteMax) }

// ioSize is a size that a server told, within reason.
func ioSize(n uint32) int { return int(min(max(n, 512), 1<<20)) }

// unmountTime bounds what Close waits for.
const unmountTime = time.Second

// Close tells the server that the export is not mounted any more, if it can be
// told quickly. The Caller stays open.
func (f *FS) Close() error {
	if f.unmount != nil {
		ctx, cancel := context.WithTimeout(context.Background(), unmountTime)
		defer cancel()
		f.unmount(ctx)
	}
	return nil
}

// A message is arguments or results.
type message interface {
	Encode(*oncrpc.Encoder)
	Decode(*oncrpc.Decoder)
}

// Pauses between calls that the server cannot answer yet.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
)

// call makes a call and has the results decoded while their memory is there.
// Results that begin with NFS3ERR_JUKEBOX make it wait and call again: the
// server has done nothing yet (RFC 1813 §2.6).
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

// do makes a call without payload. What of res refers to memory is copied by keep,
// if there is such.
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
