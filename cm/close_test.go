package cm_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

var _ io.Closer = (*cm.Conn)(nil)

func TestErrClosedIsThatOfPackageNet(t *testing.T) {
	if !errors.Is(cm.ErrClosed, net.ErrClosed) || cm.ErrClosed.Error() != "cm: listener closed" {
		t.Errorf("%q is not %q", cm.ErrClosed, net.ErrClosed)
	}
}

// Close is graceful, and does nothing to a connection that is closed.
func TestCloseEndsAConnectionGracefully(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
		x, y := iwarptest.Pipe()
		accepted := make(chan error, 1)
		go func() {
			req, err := cm.Receive(t.Context(), y, mpa.Config{})
			if err == nil {
				_, err = req.Accept(t.Context(), b.qp, cm.Params{})
			}
			accepted <- err
		}()
		conn, err := cm.Connect(t.Context(), a.qp, x, cm.Params{})
		if err := errors.Join(err, <-accepted, conn.Close(), conn.Close()); err != nil {
			t.Error(err)
		}
		if s, err := b.qp.WaitState(t.Context(), verbs.Idle, verbs.Error); s != verbs.Idle || err != nil {
			t.Errorf("the other side is %v, %v", s, b.qp.Err())
		}
	})
}

// A peer that leaves a Read without an answer holds up Close for no longer than
// the CloseTimeout, and Shutdown for as long as the context allows.
func TestAPeerThatDoesNotAnswerHoldsUpCloseForABoundedTime(t *testing.T) {
	const limit, patience = 3 * time.Second, time.Minute
	for _, tt := range []struct {
		name  string
		close func(ctx context.Context, c *cm.Conn) error
		takes time.Duration
	}{
		{"Close", func(_ context.Context, c *cm.Conn) error { return c.Close() }, limit},
		{"Shutdown", func(ctx context.Context, c *cm.Conn) error { return c.Shutdown(ctx) }, patience},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newEndOf(t, verbs.Config{CloseTimeout: limit}, verbs.QPConfig{})
			x, y := iwarptest.Pipe()
			go func() {
				if req, err := mpa.Await(t.Context(), y, mpa.Config{IRD: 1}); err == nil {
					_, _ = req.Accept(t.Context(), mpa.Config{IRD: 1}, nil) // and no more: Connect fails
				}
			}()
			conn, err := cm.Connect(t.Context(), a.qp, x, cm.Params{})
			if err != nil {
				t.Fatal(err)
			}
			read := verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{a.mr.SGE(0, 8)}, Remote: verbs.Remote{STag: 1}}
			if err := a.qp.PostSend(read); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			begun := time.Now()
			if err := tt.close(ctx, conn); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, expected %v", tt.name, err, context.DeadlineExceeded)
			}
			if took := time.Since(begun); took != tt.takes || a.qp.State() != verbs.Error {
				t.Errorf("%s took %v, expected %v; the queue pair is %v", tt.name, took, tt.takes, a.qp.State())
			}
			_ = y.Close() // it is only a pipe
		})
	}
}

// A network of datagrams cannot carry a stream: a Dial would wait for an answer
// that nobody can give.
func TestNetworksThatAreNoStreamAreRefused(t *testing.T) {
	e := newEnd(t, verbs.QPConfig{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, network := range []string{"", "udp", "udp4", "udp6", "ip", "ip4:tcp", "unixgram", "unixpacket", "TCP", "sctp"} {
		var unknown net.UnknownNetworkError
		if ln, err := cm.Listen(ctx, e.rnic, network, "127.0.0.1:0", cm.ListenConfig{}); !errors.As(err, &unknown) || string(unknown) != network {
			t.Errorf("Listen on %q: %v, %v", network, ln, err)
		}
		if _, err := cm.Dial(ctx, e.qp, network, "127.0.0.1:4791", cm.Params{MPA: mpa.Config{ReplyTimeout: 1}}); !errors.As(err, &unknown) {
			t.Errorf("Dial on %q: %v", network, err)
		}
	}
}

// A socket of the file system carries a stream as well.
func TestAConnectionOverASocketOfTheFileSystem(t *testing.T) {
	nettest.CheckLeaks(t)
	a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	dir, err := os.MkdirTemp("", "weft") // t.TempDir is too long for some systems
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ln, err := cm.Listen(t.Context(), b.rnic, "unix", filepath.Join(dir, "s"), cm.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	done := accepted(t.Context(), ln, func(r *cm.Request) error {
		_, err := r.Accept(t.Context(), b.qp, cm.Params{})
		return err
	})
	c, err := cm.Dial(t.Context(), a.qp, "unix", ln.Addr().String(), cm.Params{})
	if err := errors.Join(err, nettest.Await(t, done)); err != nil {
		t.Fatal(err)
	}
	works(t, a, b, a.qp)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// What cannot be said is refused before anybody is called.
func TestPrivateDataThatCannotFitIsRefusedBeforeDialing(t *testing.T) {
	e := newEnd(t, verbs.QPConfig{})
	for _, tt := range []struct {
		profile mpa.Profile
		octets  int
		refused bool
	}{
		{mpa.ProfileIETF, 508, false}, {mpa.ProfileIETF, 509, true},
		{mpa.ProfileRFC5044, 512, false}, {mpa.ProfileRFC5044, 513, true},
		{mpa.ProfileRDMAC, 512, false}, {mpa.ProfilePermissive, 513, true},
	} {
		p := cm.Params{PrivateData: make([]byte, tt.octets), Fallback: true, MPA: mpa.Config{Profile: tt.profile}}
		_, err := cm.Dial(t.Context(), e.qp, "tcp", "no address at all", p)
		if errors.Is(err, mpa.ErrPrivateData) != tt.refused || err == nil {
			t.Errorf("%d octets, %v: %v", tt.octets, tt.profile, err)
		}
	}
}
