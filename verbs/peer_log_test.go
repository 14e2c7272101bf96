package verbs_test

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/verbs"
)

// An eventLog is a log handler that passes on the peers that events are logged with.
type eventLog chan string

func (h eventLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (h eventLog) WithAttrs([]slog.Attr) slog.Handler               { return h }
func (h eventLog) WithGroup(string) slog.Handler                    { return h }

func (h eventLog) Handle(_ context.Context, r slog.Record) error {
	peer := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "peer" {
			peer = a.Value.String()
		}
		return true
	})
	h <- peer
	return nil
}

func TestEventsAreLoggedWithThePeer(t *testing.T) {
	nettest.CheckLeaks(t)
	log := make(eventLog, 16)
	a := newSideOf(t, verbs.Config{Logger: slog.New(log)}, reads)
	b := newSide(t, reads)
	ln := nettest.Listen(t, "tcp4")
	accepted := make(chan net.Conn, 1)
	go func() {
		nc, _ := ln.Accept()
		accepted <- nc
	}()
	nc, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	join(t, a.qp, b.qp, nc, nettest.Await(t, accepted), cm.Params{})
	b.qp.Abort()
	if got, want := nettest.Await(t, log), ln.Addr().String(); got != want {
		t.Errorf("an event was logged with the peer %q, want %q", got, want)
	}
}
