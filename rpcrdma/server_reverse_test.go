package rpcrdma

import (
	"bytes"
	"context"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// callBack is a handler whose procedure 2 gives the caller for the way back.
func callBack(back chan oncrpc.Caller) oncrpc.Handler {
	return oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		if r.Proc == 2 {
			back <- r.Back
		}
		e := r.Accept(0)
		return e.Finish()
	})
}

// Calls go both ways over a connection, with the same XIDs even, and do not meet.
//
// Claims: P5667-5.1-1 P5667-5.1-2 P8167-2.4.1-1 P8167-4.1-1 P8167-4.1-2 P8167-5.1-1 P8167-5.1-2 P8167-5.1-3
func TestCallsGoBackOverTheConnection(t *testing.T) {
	nettest.CheckLeaks(t)
	backs := make(chan oncrpc.Caller, 1)
	p := serve(t, ServerConfig{Handler: callBack(backs), ReverseCalls: 2}).full()
	p.send(wire.Header{XID: 1}, callMessage(1, 2, nil))
	p.next()
	back := nettest.Await(t, backs)
	results := make(chan string, 2)
	for _, arg := range []string{"aaaa", "bbbb"} {
		go func() {
			reply, err := back.Call(t.Context(), &oncrpc.ClientCall{
				Call: oncrpc.Call{Prog: 7, Vers: 8, Proc: 9}, Args: [][]byte{[]byte(arg)}, MaxReply: 28,
			})
			if err != nil {
				results <- err.Error()
				return
			}
			results <- string(reply.Results)
			reply.Release()
		}()
	}
	for i := range 2 {
		m := p.next() // one credit, until the first reply
		var call oncrpc.Call
		args, err := call.Parse(m.payload)
		if err != nil || m.Proc != wire.ProcMsg || m.Version != 1 || m.wc.Bytes != 28+44 || call.XID != m.XID || call.Prog != 7 || m.Credits != 2 {
			t.Fatalf("got %+v %x, %v", m.Header, m.payload, err)
		}
		// A call of the same XID in the other direction meanwhile.
		p.send(wire.Header{XID: m.XID}, nullCall(m.XID))
		if forward := p.next(); wire.DirectionOf(forward.payload) != wire.DirectionReply || forward.XID != m.XID {
			t.Fatalf("got %+v %x", forward.Header, forward.payload)
		}
		reply := oncrpc.Reply{XID: m.XID}
		b, _ := reply.Append(nil)
		p.send(wire.Header{XID: m.XID, Credits: 1}, b, bytes.ToUpper(m.payload[args:]))
		if got := nettest.Await(t, results); got != "AAAA" && got != "BBBB" {
			t.Errorf("%d: got %q", i, got)
		}
	}
	p.alive()
}

func TestCallsBackEndWithTheConnection(t *testing.T) {
	nettest.CheckLeaks(t)
	backs := make(chan oncrpc.Caller, 1)
	p := serve(t, ServerConfig{Handler: callBack(backs), ReverseCalls: 2}).full()
	p.send(wire.Header{XID: 1}, callMessage(1, 2, nil))
	p.next()
	back := nettest.Await(t, backs)
	over := make(chan error)
	go func() {
		_, err := back.Call(t.Context(), &oncrpc.ClientCall{MaxReply: 24})
		over <- err
	}()
	p.next()
	p.qp.Abort()
	if err := nettest.Await(t, over); err == nil {
		t.Error("a call to a peer that is gone succeeded")
	}
	p.end()
	if _, err := back.Call(t.Context(), &oncrpc.ClientCall{MaxReply: 24}); err == nil {
		t.Error("a call over a connection that has ended succeeded")
	}
}

// Claims: P8167-4.1-3
func TestCreditsOfUnknownDirectionAreIgnored(t *testing.T) {
	nettest.CheckLeaks(t)
	backs := make(chan oncrpc.Caller, 1)
	p := serve(t, ServerConfig{Handler: callBack(backs), ReverseCalls: 2}).full()
	p.send(wire.Header{XID: 1}, callMessage(1, 2, nil))
	p.next()
	back := nettest.Await(t, backs)
	over := make(chan error)
	for range 2 {
		go func() {
			_, err := back.Call(t.Context(), &oncrpc.ClientCall{MaxReply: 24})
			over <- err
		}()
	}
	m := p.next() // the first; there is one credit
	p.send(wire.Header{XID: m.XID, Credits: 10, Proc: wire.ProcNoMsg})
	if m := p.next(); m.Proc != wire.ProcError || m.Err != wire.ErrChunk {
		t.Errorf("got %+v, want ERR_CHUNK", m.Header)
	}
	p.alive() // and no second call before
	for i := range 2 {
		if i > 0 {
			m = p.next()
		}
		reply := oncrpc.Reply{XID: m.XID}
		b, _ := reply.Append(nil)
		p.send(wire.Header{XID: m.XID, Credits: 1}, b)
		if err := nettest.Await(t, over); err != nil {
			t.Error(err)
		}
	}
}

// What is longer than fits inline does not travel in the reverse direction.
//
// Claims: P8167-5.3-3 P8267-6.5.2-2
func TestCallsBackHaveNoChunks(t *testing.T) {
	nettest.CheckLeaks(t)
	backs := make(chan oncrpc.Caller, 1)
	p := serve(t, ServerConfig{Handler: callBack(backs), ReverseCalls: 2}).connect(nil, verbs.QPConfig{IRD: 8, ORD: 8})
	p.send(wire.Header{XID: 1}, callMessage(1, 2, nil))
	p.next()
	back := nettest.Await(t, backs)
	if _, err := back.Call(t.Context(), &oncrpc.ClientCall{Args: [][]byte{make([]byte, 2000)}, MaxReply: 24}); err == nil {
		t.Error("a long call was sent")
	}
	p.alive()
}

func TestWithoutReverseThereIsNoWayBack(t *testing.T) {
	nettest.CheckLeaks(t)
	backs := make(chan oncrpc.Caller, 1)
	p := serve(t, ServerConfig{Handler: callBack(backs)}).full()
	p.send(wire.Header{XID: 1}, callMessage(1, 2, nil))
	p.next()
	if back := nettest.Await(t, backs); back != nil {
		t.Errorf("Back is %v", back)
	}
}
