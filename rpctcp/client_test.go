package rpctcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/oncrpc"
)

func TestAReplyCutAtAnyOctetIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := len(record(replyOf(1, "results.")))
		for n := range whole {
			for _, reset := range []bool{false, true} {
				d := newDialer(t)
				c := newClient(t, ClientConfig{Dial: d.dial})
				answer := call(context.Background(), c, "args")
				first := <-d.peers
				xid := first.xid()
				if reset {
					first.ResetAfter(uint64(n))
				} else {
					first.FinAfter(uint64(n))
				}
				first.send(replyOf(xid, "results."))

				second := <-d.peers
				second.expect(callOf(xid, "args"))
				second.send(replyOf(xid, "results."))
				(<-answer).want(t, "results.", nil)
				c.Close()
				first.Close()
				second.Close()
			}
		}
	})
}

func TestAllCallsUnderWayAreSentAgainOverTheNextConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(t)
		c := newClient(t, ClientConfig{Dial: d.dial})
		var answers []<-chan result
		const n = 20
		for range n {
			answers = append(answers, call(context.Background(), c, "args"))
		}
		first := <-d.peers
		seen := make(map[uint32]bool)
		for range n {
			seen[first.xid()] = true
		}
		first.Close()
		second := <-d.peers
		for range n {
			xid := second.xid()
			if !seen[xid] {
				t.Errorf("XID %#x is new, or was sent twice", xid)
			}
			delete(seen, xid)
			second.send(replyOf(xid, "results."))
		}
		for _, answer := range answers {
			(<-answer).want(t, "results.", nil)
		}
		c.Close()
		second.Close()
	})
}

func TestAttemptsToConnectArePausedForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		var times []time.Duration
		start := time.Now()
		c := newClient(t, ClientConfig{Attempts: 7, Backoff: time.Second, MaxBackoff: 10 * time.Second, Dial: func(context.Context) (net.Conn, error) {
			times = append(times, time.Since(start)/time.Second)
			return nil, refused
		}})
		(<-call(context.Background(), c, "args")).want(t, "", refused)
		want := []time.Duration{0, 1, 3, 7, 15, 25, 35}
		if len(times) != len(want) {
			t.Fatalf("attempts at %v, want %v", times, want)
		}
		for i := range want {
			if times[i] != want[i] {
				t.Fatalf("attempts at %v, want %v", times, want)
			}
		}
		// Another call makes another attempt, after a pause, whatever failed before.
		if err := c.Connect(context.Background()); !errors.Is(err, refused) || len(times) != 8 {
			t.Errorf("%v after %d attempts", err, len(times))
		}
	})
}

func TestAConnectionThatEndsWithoutAReplyIsAnAttemptThatFailed(t *testing.T) {
	for name, octets := range map[string]int{"before it": 0, "within it": 20} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDialer(t)
				c := newClient(t, ClientConfig{Dial: d.dial, Attempts: 3, Backoff: time.Second})
				answer := call(context.Background(), c, "args")
				for range 3 {
					p := <-d.peers
					_, _ = p.Write(record(replyOf(p.xid(), "results."))[:octets])
					p.Close()
				}
				if r := <-answer; r.err == nil || !strings.Contains(r.err.Error(), "connection lost") {
					t.Errorf("the call returned %v, want that the connection was lost", r.err)
				}
			})
		})
	}
}

func TestAConnectionThatAnsweredOrWasNotUsedIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(t)
		c := newClient(t, ClientConfig{Dial: d.dial, Attempts: 1, Backoff: time.Hour})
		start := time.Now()
		for range 5 {
			if err := c.Connect(context.Background()); err != nil {
				t.Fatal(err)
			}
			(<-d.peers).Close()
			synctest.Wait()
		}
		answered := call(context.Background(), c, "args")
		p := <-d.peers
		xid := p.xid()
		lost := call(context.Background(), c, "args")
		again := p.xid()
		p.send(replyOf(xid, "results."))
		(<-answered).want(t, "results.", nil)
		p.Close()
		p = <-d.peers
		p.send(replyOf(p.xid(), "results."))
		(<-lost).want(t, "results.", nil)
		if took := time.Since(start); took != 0 || again == xid {
			t.Errorf("it took %v, want no pause", took)
		}
		c.Close()
		p.Close()
	})
}

func TestAReplyGoesWhereTheCallerWantsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(t)
		c := newClient(t, ClientConfig{Dial: d.dial})
		for name, frame := range map[string]func(message []byte) []byte{
			"in one fragment": record,
			"in many": func(message []byte) []byte {
				var b bytes.Buffer
				if err := oncrpc.NewRecordWriter(&b, 5).WriteRecord(message); err != nil {
					t.Fatal(err)
				}
				return b.Bytes()
			},
		} {
			memory := make([]byte, 4096)
			done := make(chan error, 1)
			go func() {
				r, err := c.Call(context.Background(), &oncrpc.ClientCall{Alloc: func(n int) []byte { return memory[:n] }})
				if err == nil && &r.Message[0] != &memory[0] {
					t.Errorf("%s: the reply is elsewhere", name)
				}
				if err == nil && string(r.Results) != "results." {
					t.Errorf("%s: the results are %q", name, r.Results)
				}
				done <- err
			}()
			if len(d.peers) == 0 {
				synctest.Wait()
			}
			p := <-d.peers
			_, _ = p.Write(frame(replyOf(p.xid(), "results.")))
			if err := <-done; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			d.peers <- p
		}
		c.Close()
	})
}

func TestALateReplyIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(t)
		c := newClient(t, ClientConfig{Dial: d.dial})
		ctx, cancel := context.WithCancel(context.Background())
		answer := call(ctx, c, "args")
		p := <-d.peers
		late := p.xid()
		cancel()
		(<-answer).want(t, "", context.Canceled)
		answer = call(context.Background(), c, "args")
		xid := p.xid()
		if xid == late {
			t.Error("an XID was used twice in a row")
		}
		p.send(replyOf(late, strings.Repeat("late", 100<<10)))
		p.send(replyOf(xid, "results."))
		p.send(replyOf(xid, "again..."))
		(<-answer).want(t, "results.", nil)
		synctest.Wait()
		if len(d.peers) != 0 {
			t.Error("the connection was not kept")
		}
		c.Close()
		p.Close()
	})
}

func TestAnUnansweredCallIsSentAgainWhenThatIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(t)
		c := newClient(t, ClientConfig{Dial: d.dial, Resend: time.Minute})
		start := time.Now()
		answer := call(context.Background(), c, "args")
		p := <-d.peers
		xid := p.xid()
		p.expect(callOf(xid, "args"))
		p.expect(callOf(xid, "args"))
		if took := time.Since(start); took != 2*time.Minute {
			t.Errorf("the call was sent the third time after %v, want 2 minutes", took)
		}
		p.send(replyOf(xid, "results."))
		(<-answer).want(t, "results.", nil)
		c.Close()
		p.Close()
	})
}

func TestRepliesThatSayNoAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(t)
		c := newClient(t, ClientConfig{Dial: d.dial})
		answer := call(context.Background(), c, "args")
		p := <-d.peers
		for _, said := range []error{&oncrpc.AcceptError{Stat: oncrpc.GarbageArgs}, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}} {
			r := oncrpc.ReplyTo(p.xid(), said)
			b, err := r.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			p.send(b)
			(<-answer).want(t, "", said)
			answer = call(context.Background(), c, "args")
		}
		p.send(replyOf(p.xid(), "")[:20])
		(<-answer).want(t, "", oncrpc.ErrShort)
		c.Close()
		p.Close()
	})
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(t)
		c := newClient(t, ClientConfig{Dial: d.dial, Calls: 1})
		sent := call(context.Background(), c, "args")
		synctest.Wait()
		waiting := call(context.Background(), c, "args")
		synctest.Wait()
		c.Close()
		(<-sent).want(t, "", ErrClientClosed)
		(<-waiting).want(t, "", ErrClientClosed)
		(<-call(context.Background(), c, "args")).want(t, "", ErrClientClosed)
		if err := c.Connect(context.Background()); !errors.Is(err, ErrClientClosed) {
			t.Errorf("Connect returned %v", err)
		}
		p := <-d.peers
		p.xid()
		if _, err := io.Copy(io.Discard, p.Conn); err != nil {
			t.Errorf("the connection ended with %v", err)
		}
	})
}

func TestAnIdleConnectionIsMadeAnewWhenThereIsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(t)
		c := newClient(t, ClientConfig{Dial: d.dial, Idle: time.Minute, Backoff: time.Hour})
		for range 3 {
			answer := call(context.Background(), c, "args")
			p := <-d.peers
			xid := p.xid()
			time.Sleep(5 * time.Minute) // a connection with a call is not idle
			p.send(replyOf(xid, "results."))
			start := time.Now()
			(<-answer).want(t, "results.", nil)
			p.drain()
			if took := time.Since(start); took != time.Minute {
				t.Errorf("the idle connection ended after %v", took)
			}
			p.Close()
		}
	})
}

func TestCallsGoBothWays(t *testing.T) {
	nettest.CheckLeaks(t)
	var backs []oncrpc.Caller
	var mu sync.Mutex
	s := newServer(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		back, err := r.Back.Call(ctx, &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 9, Proc: 1}, Args: [][]byte{r.Args, []byte("back")}})
		if err != nil {
			return nil, err
		}
		defer back.Release()
		mu.Lock()
		backs = append(backs, r.Back)
		mu.Unlock()
		e := r.Accept(len(back.Results))
		e.Fixed(back.Results)
		return e.Finish()
	})})
	ours, theirs := iwarptest.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.ServeConn(context.Background(), theirs) }()
	c := newClient(t, ClientConfig{
		Dial: func(context.Context) (net.Conn, error) { return ours, nil }, Attempts: 1,
		Reverse: oncrpc.Mux{{Prog: 9, Handler: echo}},
	})
	var answers []<-chan result
	for range 10 {
		answers = append(answers, call(context.Background(), c, "args"))
	}
	for _, answer := range answers {
		nettest.Await(t, answer).want(t, "argsback", nil)
	}
	c.Close()
	nettest.Await(t, done)
	if err := backs[0].Close(); err != nil {
		t.Error(err)
	}
	if r := nettest.Await(t, call(context.Background(), backs[0], "args")); r.err == nil || !strings.Contains(r.err.Error(), "connection lost") {
		t.Errorf("a call back after the connection's end returned %v", r.err)
	}
}

func TestAClientWithoutProgramsSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(t)
		c := newClient(t, ClientConfig{Dial: d.dial})
		if err := c.Connect(context.Background()); err != nil {
			t.Fatal(err)
		}
		p := <-d.peers
		p.send(callOf(5, "args"))
		r := oncrpc.Reply{XID: 5, Accept: oncrpc.ProgUnavail}
		want, err := r.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		p.expect(want)
		c.Close()
		p.Close()
	})
}

func TestAClientNeedsAServer(t *testing.T) {
	if _, err := NewClient(ClientConfig{}); err == nil {
		t.Error("a client without an address is made")
	}
	if _, err := NewServer(ServerConfig{}); err == nil {
		t.Error("a server without a handler is made")
	}
}
