package rpctcp

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
)

// echo answers every call with its arguments.
var echo = oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	e := r.Accept(len(r.Args))
	e.Fixed(r.Args)
	return e.Finish()
})

func TestCallsAreAnsweredOverTCP(t *testing.T) {
	nettest.CheckLeaks(t)
	for _, network := range nettest.Networks() {
		t.Run(network, func(t *testing.T) {
			s, err := NewServer(ServerConfig{Handler: echo})
			if err != nil {
				t.Fatal(err)
			}
			ln := nettest.Listen(t, network)
			served := make(chan error, 1)
			go func() { served <- s.Serve(context.Background(), ln) }()
			c, err := NewClient(ClientConfig{Address: ln.Addr().String()})
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{0, 4, 4096, 64 << 10, 1 << 20} {
				args := bytes.Repeat([]byte{byte(size >> 8), 1, 2, 3}, size/4)
				r, err := c.Call(context.Background(), &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 7}, Args: [][]byte{args[:size/8], args[size/8:]}})
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(r.Results, args) {
					t.Errorf("%d octets came back changed", size)
				}
				r.Release()
			}
			c.Close()
			s.Shutdown(context.Background())
			if err := <-served; !errors.Is(err, ErrServerClosed) {
				t.Errorf("Serve returned %v, want %v", err, ErrServerClosed)
			}
			if out := s.setting.pool.out; out != 0 {
				t.Errorf("%d octets are left out of the server's pool", out)
			}
			if out := c.setting.pool.out; out != 0 {
				t.Errorf("%d octets are left out of the client's pool", out)
			}
		})
	}
}
