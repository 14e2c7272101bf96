package rpcrdma

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

func TestWhyACallIsMadeAgainIsTold(t *testing.T) {
	nettest.CheckLeaks(t)
	told := make(chan error, 8)
	a := answer(t, ClientConfig{Retrying: func(err error) { told <- err }}, &both)
	p := a.grants(8)
	answered := a.start(t.Context(), nullClientCall())
	p.next()
	p.qp.Abort()
	if err := within(t, "notice", told); err == nil {
		t.Error("a connection was lost for no reason")
	}
	p = a.peer()
	m := p.next()
	p.send(wire.Header{XID: m.XID}, exchangeNull(m.XID))
	checkEnded(t, within(t, "reply", answered), nil)
	if len(told) != 0 {
		t.Errorf("told again: %v", nettest.Await(t, told))
	}
}

func TestEachAttemptToConnectThatFailsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan error, 8)
		d := &dialer{t: t, answer: func(int, net.Conn) error { return errNobody }}
		c := d.client(ClientConfig{
			Backoff: time.Second, Timeout: 5 * time.Second,
			Retrying: func(err error) { told <- err },
		})
		if _, err := c.Call(t.Context(), nullClientCall()); !errors.Is(err, ErrTimeout) {
			t.Errorf("got %v, want %v", err, ErrTimeout)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if len(told) != len(d.asked) {
			t.Errorf("told %d times of %d attempts", len(told), len(d.asked))
		}
		for range len(told) {
			if err := <-told; !errors.Is(err, errNobody) {
				t.Errorf("told %v, want %v", err, errNobody)
			}
		}
	})
}
