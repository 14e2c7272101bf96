package rpctcp

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
)

func TestWhyACallIsMadeAgainIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		d := newDialer(t)
		n := 0
		told := make(chan error, 8)
		c := newClient(t, ClientConfig{
			Retrying: func(err error) { told <- err },
			Dial: func(ctx context.Context) (net.Conn, error) {
				if n++; n == 2 {
					return nil, refused
				}
				return d.dial(ctx)
			},
		})
		answer := call(context.Background(), c, "args")
		p := <-d.peers
		p.xid()
		p.Close()
		p = <-d.peers
		p.send(replyOf(p.xid(), "results."))
		(<-answer).want(t, "results.", nil)
		c.Close() // loses nothing
		p.Close()
		close(told)
		var lost, failed int
		for err := range told {
			switch {
			case strings.Contains(err.Error(), "closed by the peer"):
				lost++
			case errors.Is(err, refused):
				failed++
			default:
				t.Errorf("told %v", err)
			}
		}
		if lost != 1 || failed != 1 {
			t.Errorf("the log has %d lost connections and %d failed attempts, want one each", lost, failed)
		}
	})
}
