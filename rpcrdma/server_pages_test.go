//go:build unix

package rpcrdma

import (
	"context"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/pages/pagestest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// A handler's reply that cannot be read is a failure of its own, whatever it was to
// travel in, and the connection serves on.
func TestAReplyThatCannotBeReadIsASystemError(t *testing.T) {
	nettest.CheckLeaks(t)
	whole := pagestest.Plain(t, 2)
	page := pagestest.Page
	var lies func(n int) []byte // where the reply is
	handler := oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		reply := exchange.Reply(r.XID, "abcd", exchangeResult(nil, 3000))
		b := lies(len(reply))
		pagestest.Protect(t, whole, pagestest.ReadWrite)
		copy(b, reply)
		pagestest.Protect(t, whole[page:], 0)
		return b, nil
	})
	p := serve(t, ServerConfig{Handler: handler}).full()
	sink := make([]byte, 4096)
	for name, where := range map[string]func(n int) []byte{
		"none of it":  func(n int) []byte { return whole[page:][:n] },
		"half of it":  func(n int) []byte { return whole[page-n/2:][:n] },
		"but the end": func(n int) []byte { return whole[page-n+4:][:n] },
	} {
		lies = where
		for _, h := range []wire.Header{
			{XID: 4},
			{XID: 4, Writes: []wire.WriteChunk{{p.lend(sink, verbs.RemoteWrite)}}},
			{XID: 4, HasReply: true, Reply: wire.WriteChunk{p.lend(sink, verbs.RemoteWrite)}},
		} {
			p.send(h, exchangeMessage(4, "abcd", nil, 3000))
			if stat := replyStat(t, p.next().payload); stat != oncrpc.SystemErr {
				t.Errorf("%s can be read: %v, want %v", name, stat, oncrpc.SystemErr)
			}
		}
	}
	p.alive()
}
