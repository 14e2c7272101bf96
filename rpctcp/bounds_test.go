package rpctcp

import (
	"context"
	"errors"
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

func TestAPeerExecutesOnlySoManyCallsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 3
		var inside, most atomic.Int32
		s := newServer(t, ServerConfig{Calls: limit, Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			most.Store(max(most.Load(), inside.Add(1)))
			defer inside.Add(-1)
			time.Sleep(time.Hour) // longer than any stall: waiting is not the peer's fault
			return echo(ctx, r)
		})})
		p, _ := serveOne(t, s)
		go func() {
			for xid := range uint32(10) {
				p.send(callOf(xid, "args"))
			}
		}()
		for range 10 {
			if p.receive() == nil {
				t.Fatal("the connection ended")
			}
		}
		if got := most.Load(); got != limit {
			t.Errorf("%d calls were executed at a time, want %d", got, limit)
		}
		p.Close()
	})
}

func TestCallsWaitForMemoryButOneOfEachConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var inside atomic.Int32
		s := newServer(t, ServerConfig{Memory: 100 << 10, Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			inside.Add(1)
			<-release
			return echo(ctx, r)
		})})
		args := strings.Repeat("args", 20<<10/4) // needs a buffer of 68 KiB
		var peers []*peer
		for range 3 {
			p, _ := serveOne(t, s)
			p.send(callOf(0, args))
			peers = append(peers, p)
			synctest.Wait()
		}
		for _, p := range peers {
			go p.send(callOf(1, args))
			synctest.Wait()
		}
		if got := inside.Load(); got != 3 {
			t.Errorf("%d calls have been read, want 3: as many as it takes to use up the memory, or one of each connection", got)
		}
		close(release)
		for _, p := range peers {
			for range 2 {
				p.receive()
			}
			p.Close()
		}
	})
}

func TestOneConnectionCannotHaveAllTheMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var inside atomic.Int32
		s := newServer(t, ServerConfig{Memory: 400 << 10, Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			inside.Add(1)
			<-release
			return echo(ctx, r)
		})})
		args := strings.Repeat("args", 20<<10/4) // needs a buffer of 68 KiB
		greedy, _ := serveOne(t, s)
		go func() {
			for xid := range uint32(10) {
				greedy.send(callOf(xid, args))
			}
		}()
		synctest.Wait()
		if got := inside.Load(); got != 2 {
			t.Errorf("%d calls of one connection have been read, want 2: a quarter of the memory", got)
		}
		modest, _ := serveOne(t, s)
		modest.send(callOf(1, args))
		synctest.Wait()
		if got := inside.Load(); got != 3 {
			t.Errorf("%d calls have been read, want that of another connection, too", got)
		}
		close(release)
		modest.expect(replyOf(1, args))
		for range 10 {
			greedy.receive()
		}
		greedy.Close()
		modest.Close()
	})
}

func TestThoseWhoTrickleOrStopReadingAreCutOff(t *testing.T) {
	for name, misbehave := range map[string]func(p *peer){
		"a call that trickles": func(p *peer) {
			for _, octet := range record(callOf(1, "args")) {
				if _, err := p.Write([]byte{octet}); err != nil {
					return
				}
				time.Sleep(5 * time.Second)
			}
			p.t.Error("the call was taken")
		},
		"a call that stops": func(p *peer) {
			_, _ = p.Write(record(callOf(1, "args"))[:20])
			p.drain()
		},
		"a reply that is not taken": func(p *peer) {
			p.send(callOf(1, strings.Repeat("args", nettest.DefaultBuffer/2)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, ServerConfig{Handler: echo, Stall: time.Minute})
				p, done := serveOne(t, s)
				start := time.Now()
				var misbehaving sync.WaitGroup
				defer misbehaving.Wait()
				misbehaving.Go(func() { misbehave(p) })
				err := <-done
				if netErr, ok := errors.AsType[net.Error](err); !ok || !netErr.Timeout() {
					t.Errorf("the connection ended with %v, want a timeout", err)
				}
				if took := time.Since(start); took != time.Minute {
					t.Errorf("the connection ended after %v, want %v", took, time.Minute)
				}
				p.Close()
			})
		})
	}
}

func TestIdleConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, ServerConfig{Idle: time.Minute, Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			time.Sleep(150 * time.Second)
			return echo(ctx, r)
		})})
		p, done := serveOne(t, s)
		start := time.Now()
		time.Sleep(30 * time.Second)
		p.send(callOf(1, "args"))
		p.expect(replyOf(1, "args")) // no end while a call is executed
		if err := <-done; err != nil {
			t.Errorf("the connection ended with %v, want good order", err)
		}
		if took := time.Since(start); took != 4*time.Minute {
			t.Errorf("the connection ended after %v, want a minute after the reply", took)
		}
		p.Close()
	})
}

func TestANewConnectionTakesThePlaceOfTheOneIdleLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := newServer(t, ServerConfig{Connections: 3, Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			if string(r.Args) == "hold" {
				<-release
			}
			return echo(ctx, r)
		})})
		var peers []*peer
		var ends []<-chan error
		connect := func() {
			synctest.Wait()
			p, done := serveOne(t, s)
			peers, ends = append(peers, p), append(ends, done)
			synctest.Wait()
			time.Sleep(time.Second)
		}
		connect()
		connect()
		connect()
		peers[0].send(callOf(1, "hold"))
		peers[1].send(callOf(1, "args"))
		peers[1].expect(replyOf(1, "args"))
		connect() // in place of 2, which is idle since it began
		if err := <-ends[2]; !errors.Is(err, errCrowded) {
			t.Errorf("the idle connection ended with %v, want %v", err, errCrowded)
		}
		peers[1].send(callOf(2, "hold"))
		peers[3].send(callOf(1, "hold"))
		connect() // for which there is no place
		if err := <-ends[4]; !errors.Is(err, errCrowded) {
			t.Errorf("the connection too many ended with %v, want %v", err, errCrowded)
		}
		close(release)
		peers[0].expect(replyOf(1, "hold"))
		for _, p := range peers {
			p.Close()
		}
	})
}

// Whoever leaves replies lying keeps memory for a stall, and may do so again and
// again. Others are served meanwhile.
func TestNobodyWaitsForThoseWhoStopReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, ServerConfig{Handler: echo, Memory: 1 << 20, Stall: time.Minute})
		for range 5 { // a quarter each
			p, _ := serveOne(t, s)
			defer p.Close()
			go func() {
				for xid := range uint32(8) {
					_ = p.out.WriteRecord(callOf(xid, strings.Repeat("args", nettest.DefaultBuffer/2)))
				}
			}()
			synctest.Wait()
		}
		modest, _ := serveOne(t, s)
		defer modest.Close()
		began := time.Now()
		for xid := range uint32(3) {
			modest.send(callOf(xid, "args"))
			modest.expect(replyOf(xid, "args"))
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("calls of another connection took %v", took)
		}
	})
}
