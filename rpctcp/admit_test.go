package rpctcp

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// origins answers every call, and records where it came from.
func origins(seen chan<- *origin.Origin) oncrpc.Handler {
	return oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		seen <- r.Origin
		return echo(ctx, r)
	})
}

func TestCallsComeFromWhereTheirConnectionWasAdmitted(t *testing.T) {
	nettest.CheckLeaks(t)
	told := &origin.Origin{Local: true, User: &origin.User{UID: 7}}
	seen := make(chan *origin.Origin, 2)
	s := newServer(t, ServerConfig{Handler: origins(seen), Admit: func(net.Conn) (*origin.Origin, error) { return told, nil }})
	p, _ := serveOne(t, s)
	for xid := range uint32(2) {
		p.send(callOf(xid, "args"))
		p.expect(replyOf(xid, "args"))
		if got := nettest.Await(t, seen); got != told {
			t.Errorf("call %d comes from %+v", xid, got)
		}
	}
}

func TestWhoIsNotAdmittedIsNotReadFrom(t *testing.T) {
	nettest.CheckLeaks(t)
	refused := errors.New("not this one")
	seen := make(chan *origin.Origin, 1)
	s := newServer(t, ServerConfig{
		Handler: origins(seen), Admit: func(net.Conn) (*origin.Origin, error) { return nil, refused },
		Allow: func(net.Addr) bool { return false }, // is for datagrams, and gives no reason
		Wrap: func(nc net.Conn) net.Conn {
			t.Error("the connection is used")
			return nc
		},
	})
	p, done := serveOne(t, s)
	p.send(callOf(1, "args"))
	if err := nettest.Await(t, done); !errors.Is(err, refused) {
		t.Errorf("the connection ended with %v", err)
	}
	if got := p.receive(); got != nil || len(seen) > 0 {
		t.Errorf("answered with %x", got)
	}
}

func TestCallsComeFromTheirAddressIfNobodyLooked(t *testing.T) {
	nettest.CheckLeaks(t)
	seen := make(chan *origin.Origin, 1)
	s := newServer(t, ServerConfig{Handler: origins(seen)})
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.ServePacket(context.Background(), pc)
	nc, err := net.Dial("udp4", pc.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Write(callOf(1, "args")); err != nil {
		t.Fatal(err)
	}
	if o := nettest.Await(t, seen); o == nil || !o.Local || o.User != nil || o.Addr.String() != nc.LocalAddr().String() {
		t.Errorf("a datagram of %v comes from %+v", nc.LocalAddr(), o)
	}
	p, _ := serveOne(t, s)
	p.send(callOf(2, "args"))
	if o := nettest.Await(t, seen); o == nil || o.Local || o.Addr.IsValid() {
		t.Errorf("a call without an address comes from %+v", o)
	}
	p.expect(replyOf(2, "args"))
}
