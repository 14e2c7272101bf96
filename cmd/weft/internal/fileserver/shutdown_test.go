package fileserver

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// A slowCall is a call in progress, on a server that has an idle connection besides.
type slowCall struct {
	server  *Server
	release chan struct{} // closed to answer it
	done    chan error    // of the client
	idle    oncrpc.Caller
}

// callSlowly starts a call over a transport and waits until it is executed.
func callSlowly(t *testing.T, over string) *slowCall {
	t.Helper()
	c := &slowCall{release: make(chan struct{}), done: make(chan error, 1)}
	entered := make(chan struct{})
	c.server = start(t, func(cfg *Config) {
		cfg.Observe = func(h oncrpc.Handler) oncrpc.Handler {
			return oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
				if r.Prog == nfs.Program && r.Proc == uint32(nfs.ProcGetattr) {
					close(entered)
					select {
					case <-c.release:
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				return h.ServeRPC(ctx, r)
			})
		}
	})
	ways := c.server.ways(t)
	c.idle = overTCP(t, c.server.TCP().String())
	for what, caller := range map[string]oncrpc.Caller{"idle": c.idle, "slow": ways[over]} {
		if err := do(caller, nfs.Program, nfs.V3, 0, nil, func(*oncrpc.Decoder) {}); err != nil {
			t.Fatalf("NULL of the %s client: %v", what, err)
		}
	}
	go func() {
		_, err := look(ways[over], nfs.FH("handle"))
		c.done <- err
	}()
	nettest.Await(t, entered)
	return c
}

// awaitIdleEnd waits until the client of the idle connection notices that it has ended. The
// server may still answer a call that comes between the end of its listener and this.
func (c *slowCall) awaitIdleEnd() {
	for do(c.idle, nfs.Program, nfs.V3, 0, nil, func(*oncrpc.Decoder) {}) == nil {
	}
}

// refused waits until an address accepts no connection.
func refused(t *testing.T, at net.Addr) {
	t.Helper()
	for {
		nc, err := net.Dial("tcp", at.String())
		if err != nil {
			return
		}
		nc.Close()
		runtime.Gosched()
	}
}

func TestADrainingServerAnswersWhatIsInProgressAndNothingElse(t *testing.T) {
	for _, over := range []string{"TCP", "RDMA"} {
		t.Run(over, func(t *testing.T) {
			c := callSlowly(t, over)
			rdma, tcp := c.server.RDMA(), c.server.TCP()
			end := make(chan error, 1)
			go func() { end <- c.server.Shutdown(context.Background()) }()
			refused(t, rdma)
			refused(t, tcp)
			c.awaitIdleEnd()
			select {
			case err := <-end:
				t.Errorf("drained with a call in progress: %v", err)
			default:
			}
			close(c.release)
			if err := nettest.Await(t, c.done); err != nil {
				t.Errorf("the call in progress: %v", err)
			}
			if err := nettest.Await(t, end); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
		})
	}
}

func TestADrainHasALimitAndSaysWhatItCuts(t *testing.T) {
	for _, over := range []string{"TCP", "RDMA"} {
		t.Run(over, func(t *testing.T) {
			c := callSlowly(t, over)
			tcp := c.server.TCP()
			limit, cut := context.WithCancel(context.Background())
			end := make(chan error, 1)
			go func() { end <- c.server.Shutdown(limit) }()
			refused(t, tcp)
			c.awaitIdleEnd()
			awaitOneCall(c.server)
			cut()
			err := nettest.Await(t, end)
			var was *CutError
			if !errors.As(err, &was) || was.Connections != 1 || was.Calls != 1 || !errors.Is(err, context.Canceled) {
				t.Errorf("Shutdown: %v, want 1 connection with 1 call", err)
			}
			if err := nettest.Await(t, c.done); err == nil {
				t.Error("a call that was cut was answered")
			}
		})
	}
}

// awaitOneCall waits until a server has one connection and one call in progress. A client may
// have its answer before the server counts that call as done.
func awaitOneCall(s *Server) {
	for {
		connections, calls := 0, 0
		for _, stats := range s.ServerStats() {
			connections += stats.Connections
			calls += stats.Calls
		}
		if connections <= 1 && calls <= 1 {
			return
		}
		runtime.Gosched()
	}
}

func TestAnEndedContextCutsNothingOfAnIdleServer(t *testing.T) {
	s := start(t, nil)
	now, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer cancel()
	if err := s.Shutdown(now); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}
