package fileserver

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

const mebi = 1 << 20

// In any time from the start, no more passes than the rate allows, and the burst and the last
// call.
func TestCallsPassAtTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(mebi, 16*mebi)
		began := time.Now()
		for i := range 20 {
			if err := p.admit(t.Context(), 1, mebi/2); err != nil {
				t.Fatal(err)
			}
			if now, want := time.Since(began), max(0, time.Duration(i)*time.Second/2-burstTime); now != want {
				t.Errorf("call %d passed after %v, want %v", i, now, want)
			}
		}
		time.Sleep(time.Hour)
		began = time.Now()
		for range 5 {
			p.admit(t.Context(), 1, mebi/2)
		}
		if took := time.Since(began); took != 4*time.Second/2-burstTime {
			t.Errorf("after an hour without calls, five took %v", took)
		}
	})
}

func TestWhatACallDidNotUseIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(mebi, 16*mebi)
		began := time.Now()
		p.admit(t.Context(), 1, mebi)
		p.charge(mebi/2 - mebi) // a READ at the end of a file
		p.admit(t.Context(), 1, mebi)
		if took := time.Since(began); took != time.Second/2-burstTime {
			t.Errorf("the second call passed after %v", took)
		}
	})
}

// waiters has calls wait, and returns how many do.
func waiters(t *testing.T, p *pacer, session any, calls, octets int) (waiting int) {
	errs := make(chan error, calls)
	for range calls {
		go func() { errs <- p.admit(t.Context(), session, octets) }()
	}
	synctest.Wait()
	for range len(errs) {
		if err := <-errs; !errors.Is(err, errBusy) {
			t.Errorf("a call that does not wait: %v", err)
		}
		calls--
	}
	return calls
}

func TestFewCallsWait(t *testing.T) {
	for _, tt := range []struct {
		what                 string
		room, octets         int
		one, another, behind int // that wait, of sessions that come in this order
	}{
		{"of a connection", 16 * mebi, 1 << 10, maxWaiting, maxWaiting, maxWaiting},
		{"of memory", 4 * mebi, mebi / 2, maxWaiting, 0, 0},
		{"of time", 64 * mebi, mebi, 5, 0, 0},
		{"which is more than all memory", mebi / 4, mebi / 2, 1, 0, 0},
	} {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPacer(mebi, int64(tt.room))
				p.free = time.Now().Add(time.Second / 2) // it is used up
				for session, want := range []int{tt.one, tt.another, tt.behind} {
					if n := waiters(t, p, session, 20, tt.octets); n != want {
						t.Errorf("connection %d: %d calls wait, want %d", session, n, want)
					}
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if p.held != 0 || len(p.waiting) != 0 {
					t.Errorf("after all have passed, %d octets are held, by %v", p.held, p.waiting)
				}
			})
		})
	}
}

func TestACallThatIsGivenUpDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(mebi, 16*mebi)
		p.admit(t.Context(), 1, mebi)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/4)
		defer cancel()
		began := time.Now()
		if err := p.admit(ctx, 1, mebi); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second/4 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		p.admit(t.Context(), 1, mebi)
		if took := time.Since(began); took != time.Second-burstTime {
			t.Errorf("the next passed after %v, want %v", took, time.Second-burstTime)
		}
	})
}

// Linux has one connection for all exports of a server.
func TestAnExportWithoutBandwidthLeavesTheConnectionToOthers(t *testing.T) {
	s := start(t, func(c *Config) {
		for _, name := range []string{"/slow", "/fast"} {
			c.Exports = append(c.Exports, Export{Name: name, Files: folder.Config{Root: t.TempDir(), SingleUser: true}})
		}
		c.Exports[0].Quota.Bandwidth = 1 // octet a second
	})
	for _, c := range []oncrpc.Caller{overTCP(t, s.TCP().String()), overRDMA(t, s.RDMA().String())} {
		slow, err := mnt(c, "/slow")
		if err != nil {
			t.Fatal(err)
		}
		fast, err := mnt(c, "/fast")
		if err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		for range 200 {
			calls.Go(func() {
				if res, err := look(c, slow.FH); err != nil || res.Stat != nfs.OK && res.Stat != nfs.ErrJukebox {
					t.Errorf("%v, %v", res.Stat, err)
				}
			})
		}
		if res, err := look(c, fast.FH); err != nil || res.Stat != nfs.OK {
			t.Errorf("the other export: %v, %v", res.Stat, err)
		}
		calls.Wait()
	}
}

// A session is a connection of a client.
type session struct {
	client int
	end    func()
}

// call calls what u meters, and returns what refuses the call.
func (s *session) call(t *testing.T, u *usage) error {
	from := &net.TCPAddr{IP: net.IPv4(192, 0, 2, byte(s.client)), Port: 700}
	r := &oncrpc.Request{Origin: origin.Of(from), Remote: from, Session: s, SessionEnd: func(f func()) {
		if s.end != nil {
			t.Error("the connection is counted twice")
		}
		s.end = f
	}}
	_, err := u.meter(oncrpc.HandlerFunc(func(context.Context, *oncrpc.Request) ([]byte, error) { return nil, nil }), func(*oncrpc.Request, error) {}).ServeRPC(t.Context(), r)
	return err
}

func TestConnectionsOfAnExportAreLimited(t *testing.T) {
	u := newUsage()
	u.limit(Quota{Connections: 3, ClientConnections: 2}, 0)
	var all []*session
	for i, want := range []struct {
		client int
		room   bool
	}{{1, true}, {1, true}, {1, false}, {2, true}, {3, false}} {
		s := &session{client: want.client}
		if err := s.call(t, u); (err == nil) != want.room || err != nil && !errors.Is(err, errConnections) {
			t.Errorf("connection %d: %v, want room %v", i, err, want.room)
		}
		all = append(all, s)
	}
	if err := all[0].call(t, u); err != nil {
		t.Errorf("another call: %v", err)
	}
	all[0].end()
	if err := all[4].call(t, u); err != nil {
		t.Errorf("when another has ended: %v", err)
	}
	u.limit(Quota{Connections: 1}, 0)
	if err := all[1].call(t, u); err != nil {
		t.Errorf("a connection that was there before the limit: %v", err)
	}
	for _, i := range []int{1, 3, 4} {
		all[i].end()
	}
	if len(u.sessions) != 0 || len(u.clients) != 0 {
		t.Errorf("after all have ended, %v and %v are left", u.sessions, u.clients)
	}
}
