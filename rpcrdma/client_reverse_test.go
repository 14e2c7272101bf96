package rpcrdma

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// upper answers with its arguments in upper case.
var upper = oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	e := r.Accept(len(r.Args))
	e.Fixed(bytes.ToUpper(r.Args))
	return e.Finish()
})

// Claims: P-3.3-3 P5667-5.1-1 P5667-5.1-2 P8167-2.4.1-1 P8167-5.1-2 P8167-5.2-1 P8167-5.2-2 P8167-5.2-3 P8167-5.3-2
func TestAClientServesCallsOfItsServer(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{Reverse: upper}, &both)
	ended := a.start(t.Context(), everything())
	p := a.peer()
	m := p.next()
	// A call with the XID of the client's own, which waits for its reply.
	reverse := func(h wire.Header) *incoming {
		t.Helper()
		h.XID = m.XID
		p.send(h, callMessage(m.XID, 1, []byte("abcd")))
		return p.next()
	}
	back := reverse(wire.Header{})
	var reply oncrpc.Reply
	at, err := reply.Parse(back.payload)
	if err != nil || back.XID != m.XID || back.Version != 1 || back.Credits != DefaultReverseCredits || back.Proc != wire.ProcMsg || string(back.payload[at:]) != "ABCD" {
		t.Errorf("got %+v % x, %v", back.Header, back.payload, err)
	}
	// Chunks are not supported that way.
	for name, h := range map[string]wire.Header{
		"Read chunk":  {Reads: reads(40, wire.Segment{Handle: 1, Length: 4, Offset: 0})},
		"Write chunk": {Writes: []wire.WriteChunk{{{Handle: 1, Length: 4, Offset: 0}}}},
		"Reply chunk": {HasReply: true, Reply: wire.WriteChunk{{Handle: 1, Length: 4, Offset: 0}}},
	} {
		if back := reverse(h); back.Proc != wire.ProcError || back.Err != wire.ErrChunk || back.XID != m.XID {
			t.Errorf("%s: got %v of XID %#x, error %v, want ERR_CHUNK", name, back.Proc, back.XID, back.Err)
		}
	}
	p.send(untouched(&m.Header), exchange.Reply(m.XID, "abcd"))
	checkEnded(t, within(t, "reply", ended), nil)
}

func TestAServerCallsBackWhileItServes(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, ServerConfig{ReverseCalls: 2, Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		reply, err := r.Back.Call(ctx, &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 7, Vers: 8, Proc: 9}, Args: [][]byte{r.Args}, MaxReply: 100})
		if err != nil {
			return nil, err
		}
		defer reply.Release()
		e := r.Accept(len(reply.Results))
		e.Fixed(reply.Results)
		return e.Finish()
	})})
	c := callServer(s, ClientConfig{Reverse: upper, Bindings: payload.Bindings{}})
	var calls []<-chan error
	for range 20 {
		over := make(chan error, 1)
		calls = append(calls, over)
		c.calls.Go(func() {
			r, err := c.Call(context.Background(), &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 1, Vers: 2, Proc: 3}, Args: [][]byte{[]byte("mirror..")}, MaxReply: 100})
			if err == nil && string(r.Results) != "MIRROR.." {
				t.Errorf("got %q", r.Results)
			}
			over <- err
		})
	}
	for _, over := range calls {
		if err := within(t, "reply", over); err != nil {
			t.Error(err)
		}
	}
}

// A client that serves calls of its server keeps the connection for them, however long
// neither side has anything to say.
//
// Claims: P8167-5.4-1
func TestAClientKeepsTheConnectionForCallsOfItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := make(chan oncrpc.Caller, 1)
		s := serve(t, ServerConfig{ReverseCalls: 1, Idle: -1, Handler: oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
			back <- r.Back
			e := r.Accept(0)
			return e.Finish()
		})})
		c := callServer(s, ClientConfig{Reverse: upper, Bindings: payload.Bindings{}})
		if _, err := c.Call(t.Context(), &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 1, Vers: 2, Proc: 3}, MaxReply: 100}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		r, err := (<-back).Call(t.Context(), &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 7, Vers: 8, Proc: 9}, Args: [][]byte{[]byte("abcd")}, MaxReply: 100})
		if err != nil {
			t.Fatal(err)
		}
		if string(r.Results) != "ABCD" {
			t.Errorf("got %q", r.Results)
		}
		r.Release()
	})
}
