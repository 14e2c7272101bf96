package wrongkey

import (
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/rping"
	"github.com/weft-rdma/weft/verbs"
)

// Each role against the other of rping as Weft speaks it: both sides must end
// by the Terminate of the step.
func TestAWrongKeyEndsTheSessionAtEitherStep(t *testing.T) {
	for _, step := range []Step{Read, Write} {
		t.Run("as the client/"+string(step), func(t *testing.T) {
			rnic, ln := listen(t)
			ended := make(chan error, 1)
			go func() {
				s, err := rping.NewServer(rnic, 0)
				if err == nil {
					defer s.Close()
					var req *cm.Request
					if req, err = ln.Accept(t.Context()); err == nil {
						if _, err = req.Accept(t.Context(), s.QP(), cm.Params{}); err == nil {
							_, err = s.Serve(t.Context(), nil)
						}
					}
				}
				ended <- err
			}()
			if err := Client(t.Context(), rnic, ln.Addr().String(), step, cm.Params{}); err != nil {
				t.Error(err)
			}
			if err := <-ended; err == nil {
				t.Error("the server did not notice")
			}
		})
		t.Run("as the server/"+string(step), func(t *testing.T) {
			rnic, ln := listen(t)
			ended := make(chan error, 1)
			go func() { ended <- Server(t.Context(), rnic, ln, step, cm.Params{}) }()
			c, err := rping.NewClient(rnic, rping.DefaultSize)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := cm.Dial(t.Context(), c.QP(), "tcp", ln.Addr().String(), cm.Params{}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := c.Ping(t.Context(), 0); err == nil {
				t.Error("the client did not notice")
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestARejectedConnectionIsNoRefusedKey(t *testing.T) {
	rnic, ln := listen(t)
	go func() {
		if req, err := ln.Accept(t.Context()); err == nil {
			req.Reject(nil)
		}
	}()
	if err := Client(t.Context(), rnic, ln.Addr().String(), Read, cm.Params{}); err == nil {
		t.Error("the probe passed")
	}
}

func listen(t *testing.T) (*verbs.RNIC, *cm.Listener) {
	t.Helper()
	rnic, err := verbs.Open(verbs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rnic.Close() })
	ln, err := cm.Listen(t.Context(), rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return rnic, ln
}
