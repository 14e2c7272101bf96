package rpctcp

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/oncrpc"
)

func TestContextsEndCalls(t *testing.T) {
	big := strings.Repeat("args", iwarptest.DefaultBuffer/2)
	for name, c := range map[string]struct {
		args   string
		config ClientConfig
		before func(t *testing.T, c *Client, d *dialer) // what comes before the call
		during func(p *peer)                            // what the server does with it
	}{
		"that wait for a connection": {config: ClientConfig{Dial: func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}},
		"that wait for the next attempt": {config: ClientConfig{Backoff: time.Hour, Dial: func(ctx context.Context) (net.Conn, error) {
			return nil, os.ErrNotExist
		}}},
		"that wait for a place": {config: ClientConfig{Calls: 1}, before: func(t *testing.T, c *Client, d *dialer) {
			call(context.Background(), c, "args")
			synctest.Wait()
		}},
		"that wait for the line": {before: func(t *testing.T, c *Client, d *dialer) {
			call(context.Background(), c, big)
			synctest.Wait()
		}},
		"that wait for the reply":    {args: "args", during: func(p *peer) { p.drain() }},
		"that cannot be sent":        {args: big},
		"whose reply does not end":   {args: "args", during: func(p *peer) { _, _ = p.Write(record(replyOf(p.xid(), "results."))[:30]) }},
		"whose reply does not begin": {args: "args", during: func(p *peer) { _, _ = p.Write(record(replyOf(p.xid(), "results."))[:5]) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDialer(t)
				if c.config.Dial == nil {
					c.config.Dial = d.dial
				}
				client := newClient(t, c.config)
				if c.before != nil {
					c.before(t, client, d)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 7*time.Second)
				defer cancel()
				start := time.Now()
				answer := call(ctx, client, c.args)
				synctest.Wait()
				if c.during != nil {
					go c.during(<-d.peers)
				}
				(<-answer).want(t, "", context.DeadlineExceeded)
				if took := time.Since(start); took < 7*time.Second || took > 7*time.Second+grace {
					t.Errorf("the call took %v", took)
				}
				client.Close()
				for len(d.peers) > 0 {
					(<-d.peers).Close()
				}
			})
		})
	}
}

// TestMemoryOfACallIsNotTouchedAfterIt has a reply arrive in the caller's memory
// when the caller's context ends.
func TestMemoryOfACallIsNotTouchedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(t)
		c := newClient(t, ClientConfig{Dial: d.dial})
		memory := make([]byte, 4096)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			_, err := c.Call(ctx, &oncrpc.ClientCall{Alloc: func(n int) []byte { return memory[:n] }})
			clear(memory) // the race detector is looking
			done <- err
		}()
		p := <-d.peers
		xid := p.xid()
		whole := record(replyOf(xid, strings.Repeat("results.", 100)))
		_, _ = p.Write(whole[:400])
		synctest.Wait()
		other := call(context.Background(), c, "other")
		cancel()
		start := time.Now()
		if err := <-done; !errors.Is(err, context.Canceled) || time.Since(start) != grace {
			t.Errorf("the call returned %v after %v", err, time.Since(start))
		}
		_, _ = p.Write(whole[400:])
		synctest.Wait()
		if !bytes.Equal(memory, make([]byte, len(memory))) {
			t.Error("memory was written to after the call had returned")
		}
		// That cost the connection, but not the calls of others.
		p = <-d.peers
		p.send(replyOf(p.xid(), "results."))
		(<-other).want(t, "results.", nil)
		c.Close()
		p.Close()
	})
}
