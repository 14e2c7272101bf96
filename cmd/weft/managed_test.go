package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cmd/weft/internal/fileserver"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpctcp"
)

// drained returns the exit status of a server that a signal ends, and what it says. It has
// a call in progress that is not answered, or none.
func drained(t *testing.T, signal os.Signal, busy bool, limit time.Duration) (status int, said string) {
	t.Helper()
	entered := make(chan struct{})
	stuck := oncrpc.HandlerFunc(func(ctx context.Context, _ *oncrpc.Request) ([]byte, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	server, err := fileserver.Start(t.Context(), fileserver.Config{
		Handler: oncrpc.Mux(nil), Mount: oncrpc.Mux(nil), TCP: "127.0.0.1:0", PortMap: fileserver.PortMapOff,
		Observe: func(oncrpc.Handler) oncrpc.Handler { return stuck },
		Logger:  slog.New(slog.DiscardHandler), Notice: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	if busy {
		c, err := rpctcp.NewClient(rpctcp.ClientConfig{Address: server.TCP().String(), Attempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go c.Call(t.Context(), &oncrpc.ClientCall{})
		nettest.Await(t, entered)
	}
	var b bytes.Buffer
	cmd := &cobra.Command{Use: "serve"}
	cmd.SetErr(&b)
	signals := make(chan os.Signal, 1)
	signals <- signal
	status = untilSignals(signals, func(ctx context.Context) int {
		m := &managed{drain: limit, cmd: cmd}
		if err := m.open(ctx, &observation{}); err != nil {
			t.Error(err)
		}
		defer m.close()
		return exitStatus(ctx, m.serve(ctx, server, &observation{}, "", nil))
	})
	return status, b.String()
}

func TestTheStatusOfAServerIs0UnlessADrainIsCut(t *testing.T) {
	nettest.CheckLeaks(t)
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if status, said := drained(t, signal, false, time.Hour); status != 0 || said != "" {
			t.Errorf("%v of an idle server: status %d; it said %q", signal, status, said)
		}
		const cut = "serve: ended 1 connection with 1 call in progress after --drain 1ns\n"
		if status, said := drained(t, signal, true, 1); status != (signalError{signal}).status() || said != cut {
			t.Errorf("%v of a busy server: status %d; it said %q, want %q", signal, status, said, cut)
		}
	}
}
