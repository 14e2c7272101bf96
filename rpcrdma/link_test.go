package rpcrdma

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// Claims: P-8-2 P8166-8.1.2-1
func TestALostConnectionIsMadeAgainAndCallsGoOverIt(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{}, &both)
	p := a.grants(8)
	q := everything()
	first, second := a.start(t.Context(), q), a.start(t.Context(), nullClientCall())
	lent := map[uint32]wire.Header{}
	for range 2 {
		m := p.next()
		lent[m.XID] = m.Header
	}
	p.qp.Abort()

	p = a.peer()
	one := p.next() // one credit, until there is a reply
	if _, err := p.read(wire.Segment{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.recvCQ.PollOne(); err == nil {
		t.Error("two calls before the first reply of the connection")
	}
	for _, m := range []*incoming{one, nil} {
		if m == nil {
			m = p.next()
		}
		before, known := lent[m.XID]
		if !known {
			t.Fatalf("XID %#x, want one of those before", m.XID)
		}
		delete(lent, m.XID)
		reply := exchangeNull(m.XID)
		if m.HasReply {
			if m.Reply[0].Handle == before.Reply[0].Handle || m.Reads[0].Handle == before.Reads[0].Handle {
				t.Error("an STag of the lost connection is lent again")
			}
			if data, err := p.read(m.Reads[0].Segment); err != nil || string(data) != string(exchange.Pattern(1, 5000)) {
				t.Errorf("read %d octets, %v", len(data), err)
			}
			reply = exchange.Reply(m.XID, "abcd")
		}
		p.send(untouched(&m.Header), reply)
	}
	checkEnded(t, within(t, "reply", first), nil)
	checkEnded(t, within(t, "reply", second), nil)
	if s := a.Stats(); s.Connections != 2 || s.Repeated != 2 || s.Calls != 3 || s.Replies != 3 {
		t.Errorf("%+v", s)
	}
}

// dialer makes connections as the test says, and records when it was called.
type dialer struct {
	t      *testing.T
	began  time.Time
	asked  []time.Duration
	answer func(n int, nc net.Conn) error
}

func (d *dialer) dial(ctx context.Context, qp *verbs.QP, p cm.Params) (*cm.Conn, error) {
	n := len(d.asked)
	d.asked = append(d.asked, time.Since(d.began).Round(100*time.Millisecond)) // ends take their time, too
	a, b := iwarptest.BufferedPipe(1 << 20)
	if err := d.answer(n, b); err != nil {
		return nil, err
	}
	return cm.Connect(ctx, qp, a, p)
}

func (d *dialer) client(cfg ClientConfig) *Client {
	cfg.Dial = d.dial
	d.began = time.Now()
	return must(NewClient(cfg))(d.t)
}

func TestDialingAgainWaitsLongerEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{t: t, answer: func(int, net.Conn) error { return errNobody }}
		c := d.client(ClientConfig{Backoff: time.Second, MaxBackoff: 5 * time.Second, Timeout: 20 * time.Second})
		_, err := c.Call(t.Context(), nullClientCall())
		if !errors.Is(err, ErrTimeout) || !errors.Is(err, errNobody) {
			t.Errorf("got %v, want %v because of %v", err, ErrTimeout, errNobody)
		}
		if waited := time.Since(d.began); waited != 20*time.Second {
			t.Errorf("the call ended after %v, want 20s", waited)
		}
		var want []time.Duration
		for _, s := range []int{0, 1, 3, 7, 12, 17} {
			want = append(want, time.Duration(s)*time.Second)
		}
		if !slices.Equal(d.asked, want) {
			t.Errorf("dialed after %v, want %v", d.asked, want)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestConnectionsWithoutAReplyCountAsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := make(chan struct{}, 1)
		d := &dialer{t: t, answer: func(n int, nc net.Conn) error {
			go func() {
				req, err := cm.Receive(context.Background(), nc, mpa.Config{})
				if err != nil {
					return
				}
				p := newTestPeer(t, verbs.QPConfig{IRD: 8, ORD: 8})
				defer p.rnic.Close()
				if _, err := req.Accept(context.Background(), p.qp, cm.Params{}); err != nil {
					return
				}
				m := p.next()
				if n == 3 {
					p.send(wire.Header{XID: m.XID}, exchangeNull(m.XID))
					p.next()
				}
				p.qp.Abort()
				if n == 3 {
					served <- struct{}{}
				}
			}()
			return nil
		}}
		c := d.client(ClientConfig{Backoff: time.Second, MaxBackoff: time.Minute, Timeout: 12 * time.Second})
		if _, err := c.Call(t.Context(), nullClientCall()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Call(t.Context(), nullClientCall()); !errors.Is(err, ErrTimeout) {
			t.Errorf("got %v, want %v", err, ErrTimeout)
		}
		<-served
		// The fourth has replied once, so that the fifth is made at once, and what
		// follows waits from the start again.
		var want []time.Duration
		for _, s := range []int{0, 1, 3, 7, 7, 8, 10, 14} {
			want = append(want, time.Duration(s)*time.Second)
		}
		if !slices.Equal(d.asked, want) {
			t.Errorf("dialed after %v, want %v", d.asked, want)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestARejectedConnectionEndsCallsUnlessTheyAreToWait(t *testing.T) {
	for _, retry := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var wg sync.WaitGroup
			d := &dialer{t: t, answer: func(_ int, nc net.Conn) error {
				wg.Go(func() {
					if req, err := cm.Receive(context.Background(), nc, mpa.Config{}); err == nil {
						_ = req.Reject(nil)
					}
				})
				return nil
			}}
			c := d.client(ClientConfig{RetryRejected: retry, Backoff: time.Second, Timeout: 2500 * time.Millisecond})
			_, err := c.Call(t.Context(), nullClientCall())
			var rejected *cm.RejectedError
			if !errors.As(err, &rejected) || retry != errors.Is(err, ErrTimeout) {
				t.Errorf("retry %v: %v", retry, err)
			}
			if want := map[bool]int{false: 1, true: 2}[retry]; len(d.asked) != want {
				t.Errorf("retry %v: dialed %d times, want %d", retry, len(d.asked), want)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
		})
	}
}

// As long as there are attempts left, calls wait.
func TestConnectMakesOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{t: t, answer: func(int, net.Conn) error { return errNobody }}
		c := d.client(ClientConfig{Backoff: time.Second})
		for range 2 {
			if err := c.Connect(t.Context()); !errors.Is(err, errNobody) {
				t.Errorf("got %v, want %v", err, errNobody)
			}
		}
		if want := []time.Duration{0, time.Second}; !slices.Equal(d.asked, want) {
			t.Errorf("dialed after %v, want %v", d.asked, want)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Connect(t.Context()); !errors.Is(err, ErrClientClosed) {
			t.Errorf("got %v, want %v", err, ErrClientClosed)
		}
	})
}

func TestACallFailsWhenItsAttemptsAreUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{t: t, answer: func(int, net.Conn) error { return errNobody }}
		c := d.client(ClientConfig{Attempts: 3, Backoff: time.Second})
		if _, err := c.Call(t.Context(), nullClientCall()); !errors.Is(err, errNobody) {
			t.Errorf("got %v, want %v", err, errNobody)
		}
		if want := []time.Duration{0, time.Second, 3 * time.Second}; !slices.Equal(d.asked, want) {
			t.Errorf("dialed after %v, want %v", d.asked, want)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Connections that end before a reply count as attempts, too.
func TestACallFailsWhenItsConnectionsEndWithoutAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		d := &dialer{t: t, answer: func(_ int, nc net.Conn) error {
			wg.Go(func() {
				req, err := cm.Receive(context.Background(), nc, mpa.Config{})
				if err != nil {
					return
				}
				p := newTestPeer(t, verbs.QPConfig{IRD: 8, ORD: 8})
				defer p.rnic.Close()
				if _, err := req.Accept(context.Background(), p.qp, cm.Params{}); err == nil {
					p.next()
					p.qp.Abort()
				}
			})
			return nil
		}}
		c := d.client(ClientConfig{Attempts: 2, Backoff: time.Second})
		if _, err := c.Call(t.Context(), nullClientCall()); err == nil || errors.Is(err, ErrTimeout) || len(d.asked) != 2 {
			t.Errorf("got %v after %d connections, want the end of the second", err, len(d.asked))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

func TestWithOneAttemptTheFirstFailureEndsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{t: t, answer: func(int, net.Conn) error { return errNobody }}
		c := d.client(ClientConfig{Attempts: 1})
		for range 2 { // each call gets one
			if _, err := c.Call(t.Context(), nullClientCall()); !errors.Is(err, errNobody) {
				t.Errorf("got %v, want %v", err, errNobody)
			}
		}
		if len(d.asked) != 2 || d.asked[0] != 0 || d.asked[1] != DefaultBackoff {
			t.Errorf("dialed after %v", d.asked)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := c.Call(ctx, nullClientCall()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A server that makes no RDMA Reads, as it has said when it connected, would never
// fetch a long call.
func TestALongCallFailsAtAServerThatMakesNoReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		d := &dialer{t: t, answer: func(_ int, nc net.Conn) error {
			wg.Go(func() {
				req, err := cm.Receive(context.Background(), nc, mpa.Config{})
				if err != nil {
					return
				}
				p := newTestPeer(t, verbs.QPConfig{IRD: 8}) // ORD 0
				if _, err := req.Accept(context.Background(), p.qp, cm.Params{}); err == nil {
					p.nextOrEnd()
				}
				_ = p.rnic.Close()
			})
			return nil
		}}
		c := d.client(ClientConfig{Timeout: 10 * time.Second})
		long := exchange.Call([][]byte{make([]byte, 64<<10)})
		long.Proc = 9
		_, err := c.Call(t.Context(), long)
		if !isFault(err, wire.FaultLocal) {
			t.Errorf("got %v, want that there can be no Read chunk", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

// silent accepts connections and receives, and never answers.
func silent(t *testing.T, wg *sync.WaitGroup, heard chan<- *testPeer) func(int, net.Conn) error {
	return func(_ int, nc net.Conn) error {
		wg.Go(func() {
			req, err := cm.Receive(context.Background(), nc, mpa.Config{})
			if err != nil {
				return
			}
			p := newTestPeer(t, verbs.QPConfig{IRD: 8, ORD: 8})
			if _, err := req.Accept(context.Background(), p.qp, cm.Params{}); err == nil {
				heard <- p
			}
		})
		return nil
	}
}

func TestACallWithoutAReplyEndsInTimeAndWithItASilentConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		peers := make(chan *testPeer, 4)
		d := &dialer{t: t, answer: silent(t, &wg, peers)}
		c := d.client(ClientConfig{Timeout: 10 * time.Second})
		if _, err := c.Call(t.Context(), nullClientCall()); !errors.Is(err, ErrTimeout) {
			t.Errorf("got %v, want %v", err, ErrTimeout)
		}
		if waited := time.Since(d.began); waited != 10*time.Second {
			t.Errorf("the call ended after %v, want 10s", waited)
		}
		p := <-peers
		p.next()
		if _, open := p.nextOrEnd(); open {
			t.Error("the connection goes on")
		}
		_ = p.rnic.Close()
		if s := c.Stats(); s.Timeouts != 1 {
			t.Errorf("%+v", s)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

func TestAnIdleConnectionIsClosedAndMadeAgainWhenItIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(NewServer(must(verbs.Open(verbs.Config{}))(t), ServerConfig{Handler: oncrpc.HandlerFunc(serveNull)}))(t)
		var wg sync.WaitGroup
		ends := make(chan error, 2)
		d := &dialer{t: t, answer: func(_ int, nc net.Conn) error {
			wg.Go(func() {
				if req, err := cm.Receive(context.Background(), nc, mpa.Config{}); err == nil {
					ends <- s.ServeConn(req)
				}
			})
			return nil
		}}
		c := d.client(ClientConfig{Idle: time.Minute})
		call := func() {
			t.Helper()
			r, err := c.Call(t.Context(), nullClientCall())
			if err != nil {
				t.Fatal(err)
			}
			r.Release()
		}
		call()
		time.Sleep(59 * time.Second)
		call()
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if s := c.Stats(); s.Connections != 1 || len(ends) != 0 {
			t.Errorf("%d connections, and %d have ended, want 1 and none", s.Connections, len(ends))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if err := <-ends; !errors.Is(err, errClosed) {
			t.Errorf("the connection ended with %v, want %v", err, errClosed)
		}
		call()
		if s := c.Stats(); s.Connections != 2 {
			t.Errorf("%d connections, want 2", s.Connections)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if err := <-ends; !errors.Is(err, errClosed) {
			t.Errorf("the connection ended with %v, want %v", err, errClosed)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func serveNull(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	e := r.Accept(0)
	return e.Finish()
}

func TestClosingAClientEndsItsCalls(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{}, &both)
	one := a.start(context.Background(), everything())
	two := a.start(context.Background(), everything()) // waits for a credit
	a.peer().next()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	checkEnded(t, within(t, "end", one), ErrClientClosed)
	checkEnded(t, within(t, "end", two), ErrClientClosed)
	checkEnded(t, within(t, "end", a.start(context.Background(), everything())), ErrClientClosed)
}

// Claims: P8166-4.5-7 P8267-6.4.2-4 P8267-6.4.2-5 P8267-6.7.2-2
func TestAnErrorBeforeTheEndOfItsConnectionEndsItsCall(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{}, &both)
	p := a.grants(8)
	failed := a.start(t.Context(), everything())
	m := p.next()
	outstanding := a.start(t.Context(), nullClientCall())
	n := p.next()
	p.raw(wire.AppendErrChunk(nil, m.XID, 8))
	if _, err := p.read(wire.Segment{}); err != nil { // it has arrived then
		t.Fatal(err)
	}
	p.qp.Abort()
	checkEnded(t, within(t, "end", failed), &wire.RemoteError{Code: wire.ErrChunk})
	p = a.peer()
	if again := p.next(); again.XID != n.XID {
		t.Errorf("XID %#x is sent again, want %#x alone", again.XID, n.XID)
	}
	p.send(wire.Header{XID: n.XID}, exchangeNull(n.XID))
	checkEnded(t, within(t, "reply", outstanding), nil)
}
