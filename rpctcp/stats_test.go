package rpctcp

import (
	"context"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
)

func TestAServerReportsItsConnections(t *testing.T) {
	nettest.CheckLeaks(t)
	inside, leave := make(chan bool), make(chan bool)
	s := newServer(t, ServerConfig{Connections: 3, Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		inside <- true
		<-leave
		return echo.ServeRPC(ctx, r)
	})})
	ln := nettest.Listen(t, "tcp")
	go s.Serve(context.Background(), ln)
	c := newClient(t, ClientConfig{Address: ln.Addr().String()})
	call := func() chan error {
		done := make(chan error, 1)
		go func() {
			r, err := c.Call(context.Background(), &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 7}, Args: [][]byte{make([]byte, 400)}})
			if err == nil {
				r.Release()
			}
			done <- err
		}()
		return done
	}
	first := call()
	<-inside
	if got := s.Stats(); got.Connections != 1 || got.Calls != 1 {
		t.Errorf("during a call: %+v", got)
	}
	leave <- true
	if err := nettest.Await(t, first); err != nil {
		t.Fatal(err)
	}
	second := call() // so that the first is counted
	<-inside
	all := s.Connections()
	if len(all) != 1 {
		t.Fatalf("%d connections are reported", len(all))
	}
	if one := all[0]; one.Network != "tcp" || one.Remote == nil || one.Served > 1 || one.Calls < 1 || one.Since.IsZero() {
		t.Errorf("the connection is reported as %+v", one)
	}
	leave <- true
	if err := nettest.Await(t, second); err != nil {
		t.Error(err)
	}
}
