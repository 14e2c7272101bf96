package rpcrdma

import (
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

func TestAServerReportsItsConnections(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, ServerConfig{})
	p := s.full()
	p.send(wire.Header{XID: 5}, nullCall(5))
	p.next()
	if got := s.server.Stats(); got.Connections != 1 || got.Credits != DefaultCredits {
		t.Errorf("the server reports %+v", got)
	}
	all := s.server.Connections()
	if len(all) != 1 {
		t.Fatalf("%d connections are reported", len(all))
	}
	if one := all[0]; one.Network != "rdma" || one.Served != 1 || one.Credits != DefaultCredits || one.OctetsIn == 0 || one.Remote == nil {
		t.Errorf("the connection is reported as %+v", one)
	}
}
