package rpctcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
)

func TestCallsAreAnsweredOverTCP(t *testing.T) {
	nettest.CheckLeaks(t)
	for _, network := range nettest.Networks() {
		t.Run(network, func(t *testing.T) {
			s := newServer(t, ServerConfig{Handler: echo})
			ln := nettest.Listen(t, network)
			done := make(chan error, 1)
			go func() { done <- s.Serve(context.Background(), ln) }()
			c := newClient(t, ClientConfig{Address: ln.Addr().String(), Reserved: true})
			for _, size := range []int{0, 4, 4096, 64 << 10, 1 << 20, 2<<20 - 1024} {
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
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if err := s.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			if err := nettest.Await(t, done); !errors.Is(err, ErrServerClosed) {
				t.Errorf("Serve returned %v, want %v", err, ErrServerClosed)
			}
			if err := s.Serve(context.Background(), ln); !errors.Is(err, ErrServerClosed) {
				t.Errorf("Serve after Shutdown returned %v, want %v", err, ErrServerClosed)
			}
		})
	}
}

func TestACallCutAtAnyOctetLeavesNothing(t *testing.T) {
	nettest.CheckLeaks(t)
	var executed atomic.Int32
	s := newServer(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		executed.Add(1)
		return echo(ctx, r)
	})})
	whole := record(callOf(1, "args"))
	for n := range len(whole) + 1 {
		for _, reset := range []bool{false, true} {
			executed.Store(0)
			p, done := serveOne(t, s)
			if reset {
				p.ResetAfter(uint64(n))
			} else {
				p.FinAfter(uint64(n))
			}
			_, _ = p.Write(whole)
			p.drain()
			err := nettest.Await(t, done)
			if good := !reset && (n == 0 || n == len(whole)); good != (err == nil) {
				t.Errorf("cut after %d octets, by reset %v: the connection ended with %v", n, reset, err)
			}
			if got := executed.Load(); n < len(whole) && got != 0 {
				t.Errorf("cut after %d octets: the call was executed", n)
			}
			p.Close()
		}
	}
}

func TestWhatIsNoCallEndsTheConnection(t *testing.T) {
	nettest.CheckLeaks(t)
	for name, c := range map[string]struct {
		sent string
		want error
	}{
		"an empty record":                    {"\x80\x00\x00\x00", oncrpc.ErrRecord},
		"a record of seven octets":           {"\x80\x00\x00\x07\x00\x00\x00\x01\x00\x00\x00", oncrpc.ErrRecord},
		"a record too long":                  {"\xff\xff\xff\xff", oncrpc.ErrRecord},
		"fragments without end":              {strings.Repeat("\x00\x00\x00\x00", oncrpc.DefaultFragments+1), oncrpc.ErrRecord},
		"another protocol":                   {"GET / HTTP/1.1\r\n\r\n", oncrpc.ErrRecord},
		"neither call nor reply":             {"\x80\x00\x00\x08\x00\x00\x00\x01\x00\x00\x00\x02", oncrpc.ErrValue},
		"a call without a program":           {"\x80\x00\x00\x0c\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02", oncrpc.ErrShort},
		"a credential longer than the call":  {string(record(append(callOf(1, "")[:28], 0, 0, 1, 0))), oncrpc.ErrShort},
		"a record whose second fragment ...": {"\x00\x00\x00\x04\x00\x00\x00\x01\xff\xff\xff\xff", oncrpc.ErrRecord},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, ServerConfig{Handler: echo})
			p, done := serveOne(t, s)
			other, _ := serveOne(t, s)
			_, _ = io.WriteString(p, c.sent)
			p.drain()
			if err := nettest.Await(t, done); !errors.Is(err, c.want) {
				t.Errorf("the connection ended with %v, want %v", err, c.want)
			}
			other.send(callOf(2, "args"))
			other.expect(replyOf(2, "args"))
		})
	}
}

func TestCallsThatCannotBeExecutedAreAnswered(t *testing.T) {
	nettest.CheckLeaks(t)
	denied := func(r oncrpc.Reply) []byte {
		b, err := r.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	s := newServer(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		if string(r.Args) == "drop" {
			return nil, fmt.Errorf("no: %w", oncrpc.ErrNoReply)
		}
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}
	})})
	p, _ := serveOne(t, s)
	old := callOf(1, "")
	old[11] = 3 // another version of RPC
	p.send(old)
	p.expect(denied(oncrpc.Reply{XID: 1, Stat: oncrpc.MsgDenied, Reject: oncrpc.RPCMismatch, Low: 2, High: 2}))
	p.send(callOf(2, "drop"))
	p.send(replyOf(3, "to nobody"))
	p.send(callOf(4, "else"))
	p.expect(denied(oncrpc.Reply{XID: 4, Accept: oncrpc.ProcUnavail}))
}

func TestAHandlerIsToldAllOfACall(t *testing.T) {
	nettest.CheckLeaks(t)
	type seen struct {
		session any
		network string
		args    string
	}
	calls := make(chan seen, 3)
	over := make(chan any, 3)
	s := newServer(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		calls <- seen{r.Session, r.Network, string(r.Args)}
		session := r.Session
		r.SessionEnd(func() { over <- session })
		if !bytes.HasSuffix(r.Message, r.Args) || r.Local == nil || r.Remote == nil || ctx.Err() != nil {
			t.Errorf("request %+v", r)
		}
		return echo(ctx, r)
	})})
	first, _ := serveOne(t, s)
	second, _ := serveOne(t, s)
	first.send(callOf(1, "1st1"))
	first.expect(replyOf(1, "1st1"))
	first.send(callOf(2, "1st2"))
	first.expect(replyOf(2, "1st2"))
	second.send(callOf(1, "2nd1"))
	second.expect(replyOf(1, "2nd1"))
	a, b, c := nettest.Await(t, calls), nettest.Await(t, calls), nettest.Await(t, calls)
	if a.session != b.session || a.session == c.session || a.network != "tcp" || a.args != "1st1" {
		t.Errorf("the handler saw %v, %v, %v", a, b, c)
	}
	select {
	case <-over:
		t.Error("a session ended with its connection still there")
	default:
	}
	first.Close()
	for range 2 {
		if nettest.Await(t, over) != a.session {
			t.Error("the end of another session was reported")
		}
	}
}

func TestRepliesOvertake(t *testing.T) {
	nettest.CheckLeaks(t)
	release := make(chan struct{})
	s := newServer(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		if r.XID == 1 {
			<-release
		}
		return echo(ctx, r)
	})})
	p, _ := serveOne(t, s)
	p.send(callOf(1, "slow"))
	p.send(callOf(2, "fast"))
	p.expect(replyOf(2, "fast"))
	close(release)
	p.expect(replyOf(1, "slow"))
}

func TestOnlyThoseAllowedAreServed(t *testing.T) {
	nettest.CheckLeaks(t)
	log := make(lines, 1)
	s := newServer(t, ServerConfig{
		Handler: echo, Allow: func(remote net.Addr) bool { return false },
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	ln := nettest.Listen(t, "tcp4")
	var serve sync.WaitGroup
	serve.Go(func() { _ = s.Serve(context.Background(), ln) })
	if nc, err := net.Dial("tcp", ln.Addr().String()); err == nil { // else it was reset at once
		defer nc.Close()
		if n, err := nc.Read(make([]byte, 1)); err == nil {
			t.Errorf("received %d octets", n)
		}
	}
	if line := nettest.Await(t, log); !strings.Contains(line, "not allowed") {
		t.Errorf("the log says %q", line)
	}
	s.Close()
	nettest.AwaitGroup(t, &serve)
}

// lines takes what a logger writes, a line at a time.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

func TestShutdownAnswersWhatItHasTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			time.Sleep(time.Second)
			return echo(ctx, r)
		})})
		busy, busyDone := serveOne(t, s)
		idle, idleDone := serveOne(t, s)
		half, halfDone := serveOne(t, s)
		busy.send(callOf(1, "args"))
		_, _ = half.Write(record(callOf(1, "args"))[:9])
		synctest.Wait()
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(context.Background()) }()
		synctest.Wait()
		busy.send(callOf(2, "too late"))
		busy.expect(replyOf(1, "args"))
		if b := busy.receive(); b != nil {
			t.Errorf("received % x after the last reply", b)
		}
		for _, ended := range []<-chan error{busyDone, idleDone, halfDone, done} {
			if err := <-ended; err != nil {
				t.Errorf("ended with %v", err)
			}
		}
		busy.Close()
		idle.Close()
		half.Close()
	})
}

func TestShutdownIsBoundedByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})})
		p, done := serveOne(t, s)
		p.send(callOf(1, "args"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("Shutdown returned %v after %v", err, time.Since(start))
		}
		<-done
		p.Close()
	})
}

func TestTheEndOfTheContextCutsOff(t *testing.T) {
	nettest.CheckLeaks(t)
	s := newServer(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})})
	ln := nettest.Listen(t, "tcp4")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	c := newClient(t, ClientConfig{Address: ln.Addr().String(), Attempts: 1})
	answer := call(context.Background(), c, "args")
	cancel()
	if err := nettest.Await(t, done); !errors.Is(err, context.Canceled) {
		t.Errorf("Serve returned %v", err)
	}
	if r := nettest.Await(t, answer); r.err == nil {
		t.Errorf("the call returned %q", r.results)
	}
}

func TestAPeerThatHasGoneEndsItsHandlers(t *testing.T) {
	nettest.CheckLeaks(t)
	inside := make(chan struct{})
	s := newServer(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		close(inside)
		<-ctx.Done()
		return nil, ctx.Err()
	})})
	p, done := serveOne(t, s)
	p.send(callOf(1, "args"))
	nettest.Await(t, inside)
	p.Close()
	nettest.Await(t, done)
}

// temporary is an error of Accept that passes.
type temporary struct{ error }

func (temporary) Temporary() bool { return true }
func (temporary) Timeout() bool   { return false }

// A listener fails for some time, and then forever.
type listener struct {
	net.Listener
	failures int
}

func (l *listener) Close() error { return nil }
func (l *listener) Accept() (net.Conn, error) {
	if l.failures--; l.failures < 0 {
		return nil, errors.New("no listener any more")
	}
	return nil, temporary{errors.New("too many open files")}
}

func TestAcceptIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, ServerConfig{Handler: echo})
		start := time.Now()
		err := s.Serve(context.Background(), &listener{failures: 3})
		if err == nil || !strings.Contains(err.Error(), "no listener any more") {
			t.Errorf("Serve returned %v", err)
		}
		if took := time.Since(start); took != 35*time.Millisecond {
			t.Errorf("Serve waited for %v, want 5, 10 and 20 ms", took)
		}
	})
}
