package client

import (
	"context"
	"slices"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/binding"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// A direct Caller calls a handler in the same process. If it places, it moves results that may
// be reduced into the sinks, as a transport does over RDMA.
type direct struct {
	handler oncrpc.Handler
	places  bool
	fail    func(*oncrpc.ClientCall) error // before the call
	closed  int
}

func (d *direct) Close() error {
	d.closed++
	return nil
}

func (d *direct) Call(ctx context.Context, c *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if d.fail != nil {
		if err := d.fail(c); err != nil {
			return nil, err
		}
	}
	message, err := c.Append(nil)
	if err != nil {
		return nil, err
	}
	args := len(message)
	message = append(message, slices.Concat(c.Args...)...)
	reply := new(oncrpc.ClientReply)
	reply.Message, err = d.handler.ServeRPC(ctx, &oncrpc.Request{Call: c.Call, Message: message, Args: message[args:]})
	if err != nil {
		failure := oncrpc.ReplyTo(c.XID, err)
		return nil, failure.Err()
	}
	at, err := reply.Parse(reply.Message)
	if err != nil {
		return nil, err
	}
	if d.places && c.Prog == nfs.Program {
		if err := place(c, reply, at); err != nil {
			return nil, err
		}
	}
	reply.Results = reply.Message[at:]
	// The memory is the transport's again; overwrite it, in case the client still uses it.
	reply.Free = func() {
		for i := range reply.Message {
			reply.Message[i] = 0xee
		}
	}
	return reply, nil
}

// place moves the eligible results into the sinks.
func place(c *oncrpc.ClientCall, reply *oncrpc.ClientReply, at int) error {
	var cursor payload.Cursor
	cursor.Whole(reply.Message, at)
	if err := (binding.V3{}).WalkReply(c.Proc, &cursor); err != nil {
		return err
	}
	for _, item := range cursor.Items() {
		if !item.Eligible || len(reply.Placed) == len(c.Sinks) {
			continue
		}
		if item.Length > len(c.Sinks[len(reply.Placed)]) {
			return &wire.RemoteError{Code: wire.ErrChunk}
		}
		copy(c.Sinks[len(reply.Placed)], reply.Message[item.At:])
		reply.Placed = append(reply.Placed, oncrpc.Placed{At: item.At, Length: item.Length, Sink: len(reply.Placed)})
		reply.Message = slices.Delete(reply.Message, item.At, item.At+oncrpc.RoundUp(item.Length))
	}
	return nil
}

// ways are the ways in which results may arrive.
func ways(t *testing.T, test func(t *testing.T, places bool)) {
	t.Run("in the reply", func(t *testing.T) { test(t, false) })
	t.Run("placed", func(t *testing.T) { test(t, true) })
}

// dial mounts the root of a server.
func dial(t testing.TB, s *fakeServer, change func(*Config)) *FS {
	t.Helper()
	cfg := Config{NFS: &direct{handler: s.mux()}}
	if change != nil {
		change(&cfg)
	}
	f, err := Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// placing mounts with results placed in sinks.
func placing(places bool) func(*Config) {
	return func(cfg *Config) { cfg.NFS.(*direct).places = places }
}
