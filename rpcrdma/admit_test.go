package rpcrdma

import (
	"context"
	"net"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
)

func TestCallsComeFromWhereTheirConnectionWasAdmitted(t *testing.T) {
	nettest.CheckLeaks(t)
	told := &origin.Origin{Local: true, User: &origin.User{UID: 7}}
	seen := make(chan *origin.Origin, 1)
	s := serve(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		seen <- r.Origin
		e := r.Accept(0)
		return e.Finish()
	})})
	ln := must(cm.Listen(t.Context(), s.rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{
		Admit: func(net.Conn) (*origin.Origin, error) { return told, nil },
	}))(t)
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(context.Background(), ln) }()
	c := must(NewClient(ClientConfig{Address: ln.Addr().String()}))(t)
	reply := must(c.Call(t.Context(), &oncrpc.ClientCall{Call: oncrpc.Call{Prog: exchange.Program, Vers: exchange.Version, Proc: 1}}))(t)
	reply.Release()
	if got := nettest.Await(t, seen); got != told {
		t.Errorf("the call comes from %+v", got)
	}
	_ = c.Close()
	_ = s.server.Close()
	nettest.Await(t, served)
}
