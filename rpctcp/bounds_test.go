package rpctcp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
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

// args64 needs a buffer of 68 KiB, as a call and as a reply.
var args64 = strings.Repeat("args", 60<<10/4)

// A call is not read before there is memory for it: the limit is one, however many
// connections there are.
func TestCallsWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var inside atomic.Int32
		s := newServer(t, ServerConfig{Memory: 2 * (4*68 + 60) << 10, Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			inside.Add(1)
			<-release
			return echo(ctx, r)
		})})
		var peers []*peer
		for xid := range uint32(10) {
			p, _ := serveOne(t, s)
			go p.send(callOf(xid, args64))
			peers = append(peers, p)
			synctest.Wait()
		}
		if got := inside.Load(); got != 4 {
			t.Errorf("%d calls have been read, want the 4 for which there is memory", got)
		}
		time.Sleep(10 * time.Second) // nobody is cut off for what others wait for
		close(release)
		for xid, p := range peers {
			p.expect(replyOf(uint32(xid), args64))
			p.Close()
		}
	})
}

func TestOneConnectionCannotHaveAllTheMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var inside atomic.Int32
		s := newServer(t, ServerConfig{Memory: 2 * 8 * 68 << 10, Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			inside.Add(1)
			<-release
			return echo(ctx, r)
		})})
		greedy, _ := serveOne(t, s)
		go func() {
			for xid := range uint32(10) {
				greedy.send(callOf(xid, args64))
			}
		}()
		synctest.Wait()
		if got := inside.Load(); got != 2 {
			t.Errorf("%d calls of one connection have been read, want 2: a quarter of the memory", got)
		}
		modest, _ := serveOne(t, s)
		modest.send(callOf(1, args64))
		synctest.Wait()
		if got := inside.Load(); got != 3 {
			t.Errorf("%d calls have been read, want that of another connection, too", got)
		}
		close(release)
		modest.expect(replyOf(1, args64))
		for range 10 {
			greedy.receive()
		}
		greedy.Close()
		modest.Close()
	})
}

// from is a connection that seems to come from an address.
type from struct {
	*iwarptest.Conn
	addr string
}

func (f from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(f.addr), 700))
}

// serveFrom has a server serve a connection from an address.
func serveFrom(t testing.TB, s *Server, addr string) (p *peer, done <-chan error) {
	ours, theirs := iwarptest.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeConn(context.Background(), from{theirs, addr}) }()
	return newPeer(t, ours), ended
}

const attacker, honest = "192.0.2.1", "192.0.2.2"

// quick makes calls with results of so many octets, and returns how long the
// slowest took.
func (p *peer) quick(calls int) (slowest time.Duration) {
	p.t.Helper()
	for xid := range uint32(calls) {
		began := time.Now()
		p.send(callOf(xid, "args"))
		p.expect(replyOf(xid, "args"))
		slowest = max(slowest, time.Since(began))
	}
	return slowest
}

// Replies that nobody takes, calls of which the end is missing, and those that
// trickle in leave memory to others, and never take more than there is.
func TestMemoryIsALimitWhateverPeersDo(t *testing.T) {
	const memory = 8 << 20
	long := strings.Repeat("args", 1<<20/4)
	for name, attack := range map[string]func(p *peer){
		"unread replies": func(p *peer) { p.send(callOf(1, long)) },
		"a short call":   func(p *peer) { whole := record(callOf(1, long)); _, _ = p.Write(whole[:len(whole)-1]) },
		"a call that trickles in": func(p *peer) {
			whole := record(callOf(1, long))
			_, _ = p.Write(whole[:1<<19])
			for _, octet := range whole[1<<19:] {
				if _, err := p.Write([]byte{octet}); err != nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		},
	} {
		for _, of := range []string{honest, attacker} {
			t.Run(name+", calls from "+of, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer(t, ServerConfig{Handler: echo, Memory: memory})
					var peers []*peer
					var attacks sync.WaitGroup
					for range 100 {
						p, _ := serveFrom(t, s, attacker)
						attacks.Go(func() { attack(p) })
						peers = append(peers, p)
					}
					synctest.Wait()
					most := int64(0)
					p, _ := serveFrom(t, s, of)
					peers = append(peers, p)
					for range 10 {
						if slowest := p.quick(1); slowest > time.Second {
							t.Errorf("a call took %v", slowest)
						}
						most = max(most, s.setting.in.Used()+s.setting.out.Used())
						time.Sleep(200 * time.Millisecond)
					}
					if of == honest { // long calls of the other address wait for each other
						began := time.Now()
						go p.send(callOf(7, long))
						if reply := p.receive(); len(reply) != len(replyOf(7, long)) {
							t.Errorf("a long call is answered by %d octets", len(reply))
						}
						if took := time.Since(began); took > time.Second {
							t.Errorf("a long call took %v", took)
						}
					}
					if most > memory {
						t.Errorf("%d octets were taken, the limit is %d", most, memory)
					}
					for _, p := range peers {
						p.Close()
					}
					attacks.Wait()
				})
			})
		}
	}
}

// Replies in memory of the handler's own count as long as they are kept for the
// peer.
func TestRepliesThatHandlersBringCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 1 << 20
		var sent atomic.Int32
		s := newServer(t, ServerConfig{Memory: 2 * 4 * each, Handler: oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
			sent.Add(1)
			return append(replyOf(r.XID, ""), make([]byte, each)...), nil
		})})
		var peers []*peer
		for xid := range uint32(10) {
			p, _ := serveFrom(t, s, attacker)
			p.send(callOf(xid, ""))
			peers = append(peers, p)
		}
		synctest.Wait()
		if used := s.setting.out.Used(); used < 2*each || used > 4*each {
			t.Errorf("%d octets of replies are counted, and %d are kept", used, int(sent.Load())*each)
		}
		for _, p := range peers {
			p.Close()
		}
	})
}

// A peer that takes a long reply slowly is not one that does not take it.
func TestWhoReadsSlowlyIsNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, ServerConfig{Handler: echo, Memory: 8 << 20})
		long := strings.Repeat("args", 3<<20/8)
		var reading sync.WaitGroup
		for range 4 {
			p, _ := serveFrom(t, s, honest)
			reading.Go(func() {
				p.send(callOf(1, long))
				buf, n := make([]byte, 16<<10), 0
				for n < len(long) {
					k, err := p.Read(buf)
					if err != nil {
						t.Errorf("after %d octets: %v", n, err)
						break
					}
					n += k
					time.Sleep(20 * time.Millisecond)
				}
				p.Close()
			})
		}
		reading.Wait()
	})
}

// Connections are divided fairly: those of one address cannot shut out another.
func TestOneAddressShutsNobodyOut(t *testing.T) {
	for name, behave := range map[string]func(p *peer){
		"silent": func(*peer) {},
		"idle":   func(p *peer) { p.send(callOf(1, "")); p.receive() },
		"at work": func(p *peer) {
			for xid := uint32(0); p.out.WriteRecord(callOf(xid, "")) == nil && p.receive() != nil; xid++ {
				time.Sleep(100 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, ServerConfig{Handler: echo, Connections: 16})
				var peers []*peer
				var attack sync.WaitGroup
				flood := func(n int) {
					for range n {
						p, _ := serveFrom(t, s, attacker)
						peers = append(peers, p)
						attack.Go(func() { behave(p) })
						synctest.Wait()
						if n := s.places.Len(); n > 16 {
							t.Fatalf("there are %d connections", n)
						}
					}
				}
				flood(40)
				p, ended := serveFrom(t, s, honest)
				peers = append(peers, p)
				for range 10 {
					if took := p.quick(1); took > time.Second {
						t.Errorf("a call took %v", took)
					}
					flood(40)
					time.Sleep(time.Second)
				}
				select {
				case err := <-ended:
					t.Errorf("the connection of another address ended: %v", err)
				default:
				}
				for _, p := range peers {
					p.Close()
				}
				attack.Wait()
			})
		})
	}
}

// Sockets are counted until they are closed, and those that there is no place for
// are closed before the next is accepted.
func TestAFloodOpensNoMoreSocketsThanThereAreConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 8
		s := newServer(t, ServerConfig{Handler: echo, Connections: limit})
		ln := &flood{conns: make(chan net.Conn)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx, ln) }()
		for range 500 {
			ours, theirs := iwarptest.Pipe()
			defer ours.Close()
			ln.open.Add(1)
			ln.conns <- &counted{Conn: theirs, open: &ln.open}
			if n := ln.open.Load(); n > limit+2 { // one takes the place of another, one is here
				t.Fatalf("%d sockets are open, the limit is %d", n, limit)
			}
		}
		cancel()
		<-done
		if n := ln.open.Load(); n != 0 {
			t.Errorf("%d sockets are left open", n)
		}
	})
}

// A flood is a listener of connections whose sockets are counted.
type flood struct {
	conns chan net.Conn
	open  atomic.Int32
	once  sync.Once
}

func (f *flood) Accept() (net.Conn, error) {
	if nc := <-f.conns; nc != nil {
		return nc, nil
	}
	return nil, net.ErrClosed
}
func (f *flood) Close() error   { f.once.Do(func() { close(f.conns) }); return nil }
func (f *flood) Addr() net.Addr { return iwarptest.Addr("flood") }

type counted struct {
	*iwarptest.Conn
	once sync.Once
	open *atomic.Int32
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.open.Add(-1) })
	return err
}

// Connections that are not allowed are reset before an octet of them is read, and the log
// names the peer and the reason.
func TestThoseNotAllowedAreClosedAtAccept(t *testing.T) {
	for name, cfg := range map[string]ServerConfig{
		"by Allow": {Allow: func(a net.Addr) bool { return a.String() == honest+":700" }},
		"by Admit": {Admit: func(nc net.Conn) (*origin.Origin, error) {
			if nc.RemoteAddr().String() != honest+":700" {
				return nil, errNotAllowed
			}
			return origin.Of(nc.RemoteAddr()), nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				cfg.Handler, cfg.Logger, cfg.Connections = echo, slog.New(slog.NewTextHandler(&log, nil)), 4
				s := newServer(t, cfg)
				for range 100 {
					p, done := serveFrom(t, s, attacker)
					p.send(callOf(1, ""))
					if err := <-done; err != errNotAllowed {
						t.Fatalf("ended with %v", err)
					}
					if _, err := p.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
						t.Fatalf("the peer gets %v, want a reset", err)
					}
				}
				if n := strings.Count(log.String(), "\n"); n != fairness.LinesOfShare || !strings.Contains(log.String(), "peer="+attacker+":700") || !strings.Contains(log.String(), "not allowed") {
					t.Errorf("the log says %s", log.String())
				}
				p, _ := serveFrom(t, s, honest)
				p.quick(1)
				p.Close()
			})
		})
	}
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
			p.send(callOf(1, strings.Repeat("args", iwarptest.DefaultBuffer/2)))
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

// A peer that does not read its replies keeps memory for a stall, and may do so again and
// again. Others are served meanwhile.
func TestNobodyWaitsForThoseWhoStopReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, ServerConfig{Handler: echo, Memory: 1 << 20, Stall: time.Minute})
		for range 5 { // a quarter each
			p, _ := serveOne(t, s)
			defer p.Close()
			go func() {
				for xid := range uint32(8) {
					_ = p.out.WriteRecord(callOf(xid, strings.Repeat("args", iwarptest.DefaultBuffer/2)))
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
