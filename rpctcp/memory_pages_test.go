//go:build unix

package rpctcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/pages/pagestest"
	"github.com/weft-rdma/weft/oncrpc"
)

// Memory of a caller that cannot be read, or cannot take the reply, is that call's
// misfortune. Those that share its connection go on.
func TestMemoryThatFaultsEndsItsCallAlone(t *testing.T) {
	nettest.CheckLeaks(t)
	s := newServer(t, ServerConfig{Handler: echo})
	ln := nettest.Listen(t, "tcp4")
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background(), ln) }()
	c := newClient(t, ClientConfig{Address: ln.Addr().String(), Backoff: time.Millisecond})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	good := bytes.Repeat([]byte("good"), 200<<10/4)
	call := func(args []byte, alloc func(int) []byte) error {
		r, err := c.Call(ctx, &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 7}, Args: [][]byte{good[:8], args}, Alloc: alloc})
		if err == nil {
			r.Release()
		}
		return err
	}
	others, stop := make(chan error, 1), make(chan struct{})
	go func() {
		var err error
		for err == nil && len(stop) == 0 {
			select {
			case <-stop:
				others <- nil
				return
			default:
				err = call(good, nil)
			}
		}
		others <- err
	}()
	page := pagestest.Page
	readOnly, none, cut := pagestest.ReadOnly(t, 60), pagestest.NoAccess(t, 60), pagestest.Truncated(t, 1, 60)
	in := func(b []byte) func(int) []byte { return func(n int) []byte { return b[:n] } }
	for name, err := range map[string]error{
		"arguments":                    call(none, nil),
		"few arguments":                call(none[:40], nil),
		"arguments of a file":          call(cut, nil),
		"few arguments of a file":      call(cut[page-40:][:80], nil),
		"a reply":                      call(good, in(readOnly)),
		"a short reply":                call(good[:4], in(readOnly)),
		"a reply of which some fits":   call(good, in(cut)),
		"a short one, of which some":   call(good[:400], in(cut[page-200:])),
		"a reply where nothing can be": call(good, in(none)),
	} {
		if err == nil || !strings.Contains(err.Error(), "cannot be accessed") {
			t.Errorf("%s: %v, want that memory cannot be accessed", name, err)
		}
	}
	close(stop)
	if err := nettest.Await(t, others); err != nil {
		t.Errorf("another call: %v", err)
	}
	c.Close()
	s.Close()
	nettest.Await(t, done)
}

// A reply that the server cannot read costs the connection, and no other.
func TestAReplyThatCannotBeReadEndsItsConnectionAlone(t *testing.T) {
	nettest.CheckLeaks(t)
	bad := pagestest.Plain(t, 3)
	copy(bad, replyOf(0, "results"))
	pagestest.Protect(t, bad[pagestest.Page:], 0)
	s := newServer(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		if binary.BigEndian.Uint32(r.Args) > 0 {
			return bad, nil
		}
		return echo(ctx, r)
	})})
	one, oneDone := serveOne(t, s)
	other, otherDone := serveOne(t, s)
	one.send(callOf(0, "\x00\x00\x00\x01"))
	one.drain()
	nettest.Await(t, oneDone)
	other.send(callOf(1, "\x00\x00\x00\x00"))
	other.expect(replyOf(1, "\x00\x00\x00\x00"))
	other.Close()
	nettest.Await(t, otherDone)
	one.Close()
}
