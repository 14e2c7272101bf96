package gateway

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// A mapper is a port mapper whose answer may change.
type mapper struct{ port, asked atomic.Int64 }

func (m *mapper) ServeRPC(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	d := oncrpc.NewDecoder(r.Args, "arguments")
	var want oncrpc.Mapping
	want.Decode(&d)
	if d.End() != nil || r.Prog != oncrpc.PmapProg || r.Proc != oncrpc.PmapGetPort || want.Prog != nfs.MountProgram || want.Prot != oncrpc.ProtTCP {
		return nil, &oncrpc.AcceptError{Stat: oncrpc.GarbageArgs}
	}
	m.asked.Add(1)
	e := r.Accept(4)
	e.Uint32(uint32(m.port.Load()))
	return e.Finish()
}

// mountd answers with its number, and the version and the arguments of the call.
func mountd(number uint32) oncrpc.Handler {
	return oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		if r.Proc == 5 {
			return nil, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}
		}
		e := r.Accept(8 + len(r.Args))
		e.Uint32(number)
		e.Uint32(r.Vers)
		e.Fixed(r.Args)
		return e.Finish()
	})
}

func split(t *testing.T, address string) (host string, port int) {
	t.Helper()
	host, p, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err = strconv.Atoi(p)
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}

func mountRequest(t *testing.T, xid, vers, proc uint32, args ...uint32) *oncrpc.Request {
	c := oncrpc.Call{XID: xid, Prog: nfs.MountProgram, Vers: vers, Proc: proc}
	b, err := c.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := request(t, append(b, words(args...)...))
	r.SessionEnd = nil // as from a datagram
	return r
}

// MOUNT is called where the server's port mapper says. The port mapper is asked again when
// MOUNT does not answer there any more.
func TestMountGoesWhereThePortMapperSays(t *testing.T) {
	nettest.CheckLeaks(t)
	var mapped mapper
	host, mapperPort := split(t, serve(t, &mapped))
	first, second := nettest.Listen(t, "tcp4"), serve(t, mountd(2))
	_, port := split(t, first.Addr().String())
	mapped.port.Store(int64(port))
	m, err := NewMount(MountConfig{Host: host, Mapper: mapperPort})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	g, err := New(Config{Backend: backend(nil), Mount: m})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(xid, vers, proc uint32) []byte {
		t.Helper()
		got, err := g.ServeRPC(t.Context(), mountRequest(t, xid, vers, proc, 7, 8))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}

	done := make(chan []byte, 1)
	go func() { done <- ask(100, 3, 1) }()
	w := accept(t, first)
	c := w.receive()
	w.send(append(words(xidOf(c)), reply(0, 1, 3)[4:]...))
	if got := nettest.Await(t, done); !bytes.Equal(got, reply(100, 1, 3)) {
		t.Errorf("reply %x, want that of the first server with the XID of the call", got)
	}

	// The server restarts on another port.
	first.Close()
	w.nc.Close()
	_, port = split(t, second)
	mapped.port.Store(int64(port))
	for xid := range uint32(3) {
		if got := ask(xid, 3, 1); !bytes.Equal(got, reply(xid, 2, 3, 7, 8)) {
			t.Errorf("reply %x, want that of the second server", got)
		}
	}
	if n := mapped.asked.Load(); n != 2 {
		t.Errorf("the port mapper was asked %d times, want twice", n)
	}
	if got := ask(9, 1, 2); !bytes.Equal(got, reply(9, 2, 1, 7, 8)) {
		t.Errorf("version 1: reply %x", got)
	}

	// After an answer from the server, the port mapper is not asked again.
	_, err = g.ServeRPC(t.Context(), mountRequest(t, 1, 3, 5))
	if !errors.Is(err, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}) {
		t.Errorf("a refusal: %v", err)
	}
}

func TestMountThatIsNotThereIsUnavailable(t *testing.T) {
	nettest.CheckLeaks(t)
	var mapped mapper
	host, mapperPort := split(t, serve(t, &mapped))
	m, err := NewMount(MountConfig{Host: host, Mapper: mapperPort})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		r    *oncrpc.Request
		want error
	}{
		"not registered":          {mountRequest(t, 1, 3, 1), &oncrpc.AcceptError{Stat: oncrpc.ProgUnavail}},
		"a version of the future": {mountRequest(t, 1, 4, 1), &oncrpc.AcceptError{Stat: oncrpc.ProgMismatch}},
		"version 0":               {mountRequest(t, 1, 0, 1), &oncrpc.AcceptError{Stat: oncrpc.ProgMismatch}},
		"another program":         {request(t, call(1, 1)), &oncrpc.AcceptError{Stat: oncrpc.ProgUnavail}},
	} {
		if _, err := m.ServeRPC(t.Context(), tt.r); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	m.Close()
	if _, err := m.ServeRPC(t.Context(), mountRequest(t, 1, 3, 1)); !errors.Is(err, oncrpc.ErrNoReply) {
		t.Errorf("closed: %v, want no reply", err)
	}
	// A port mapper that does not answer does not mean PROG_UNAVAIL.
	ln := nettest.Listen(t, "tcp4")
	_, port := split(t, ln.Addr().String())
	ln.Close()
	m, err = NewMount(MountConfig{Host: host, Mapper: port})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.ServeRPC(t.Context(), mountRequest(t, 1, 3, 1)); err == nil || answered(err) {
		t.Errorf("no port mapper: %v", err)
	}
	m.Close()
	if _, err := NewMount(MountConfig{}); err == nil {
		t.Error("a Mount without a Host is accepted")
	}
}

// If the port is configured, the port mapper is not asked.
func TestMountMayBeGivenItsPort(t *testing.T) {
	nettest.CheckLeaks(t)
	host, port := split(t, serve(t, mountd(1)))
	m, err := NewMount(MountConfig{Host: host, Port: port, Mapper: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	got, err := m.ServeRPC(t.Context(), mountRequest(t, 5, 3, 1, 9))
	if err != nil || !bytes.Equal(got, reply(5, 1, 3, 9)) {
		t.Errorf("reply %x and %v", got, err)
	}
}

// A server without a port mapper, or whose port mapper does not know MOUNT, may have it where
// NFS is. A datagram cannot be forwarded there.
func TestMountThatNoPortMapperKnowsIsAskedWhereNFSIs(t *testing.T) {
	nettest.CheckLeaks(t)
	var mapped mapper
	host, knowsNone := split(t, serve(t, &mapped))
	gone := nettest.Listen(t, "tcp4")
	_, nobody := split(t, gone.Addr().String())
	gone.Close()
	behind := serve(t, mountd(4))
	for name, port := range map[string]int{"knows of none": knowsNone, "is not there": nobody} {
		m, err := NewMount(MountConfig{Host: host, Mapper: port})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		g, err := New(Config{Backend: TCP(TCPConfig{Address: behind}), Mount: m})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		datagram := mountRequest(t, 6, 3, 1, 9)
		stream := request(t, datagram.Message)
		if got, err := g.ServeRPC(t.Context(), stream); err != nil || !bytes.Equal(got, reply(6, 4, 3, 9)) {
			t.Errorf("a port mapper that %s: reply %x and %v", name, got, err)
		}
		if got, err := g.ServeRPC(t.Context(), datagram); err == nil || errors.Is(err, errNoSession) {
			t.Errorf("a port mapper that %s, by a datagram: reply %x and %v", name, got, err)
		}
	}
}

// A server that has MOUNT where NFS is gets the call there, whatever its port mapper says. If it
// does not, or has another version only, its port mapper is asked.
func TestMountIsLookedForWhereNFSIsFirst(t *testing.T) {
	nettest.CheckLeaks(t)
	var mapped mapper
	host, mapperPort := split(t, serve(t, &mapped))
	_, port := split(t, serve(t, mountd(1)))
	mapped.port.Store(int64(port))
	both := serve(t, oncrpc.Mux{{Prog: nfs.MountProgram, Low: 3, High: 3, Handler: mountd(2)}})
	alone := serve(t, oncrpc.Mux{{Prog: nfs.Program, Low: 3, High: 3, Handler: mountd(3)}})
	for _, tt := range []struct {
		name       string
		behind     string
		vers, want uint32
		asked      int64 // the port mapper
	}{
		{"both in one place", both, 3, 2, 0},
		{"another version", both, 1, 1, 1},
		{"NFS alone", alone, 3, 1, 1},
	} {
		m, err := NewMount(MountConfig{Host: host, Mapper: mapperPort, Backend: TCP(TCPConfig{Address: tt.behind})})
		if err != nil {
			t.Fatal(err)
		}
		mapped.asked.Store(0)
		for xid := range uint32(3) {
			got, err := m.ServeRPC(t.Context(), mountRequest(t, xid, tt.vers, 1, 9))
			if err != nil || !bytes.Equal(got, reply(xid, tt.want, tt.vers, 9)) {
				t.Errorf("%s: reply %x and %v", tt.name, got, err)
			}
		}
		if got := mapped.asked.Load(); got != tt.asked {
			t.Errorf("%s: the port mapper was asked %d times, want %d", tt.name, got, tt.asked)
		}
		m.Close()
	}
}

// A shy caller answers NULL only.
type shyCaller struct{ broken error }

func (c shyCaller) Call(_ context.Context, call *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	if call.Proc == 0 {
		return new(oncrpc.ClientReply), nil
	}
	return nil, c.broken
}

func (shyCaller) Close() error { return nil }

func TestMountThatGoesIsLookedForAgain(t *testing.T) {
	broken := errors.New("broken")
	opened := 0
	b := Backend{Open: func(Front) (oncrpc.Caller, error) {
		opened++
		return shyCaller{broken}, nil
	}}
	m, err := NewMount(MountConfig{Host: "192.0.2.1", Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.ServeRPC(t.Context(), mountRequest(t, 1, 3, 1)); !errors.Is(err, broken) || opened != 4 {
		t.Errorf("%v after %d connections; want that it is broken, after asking twice", err, opened)
	}
}

// A call of MOUNT where NFS is has a connection of its own. Their number is bounded, and a
// client with many calls does not keep others waiting.
func TestFewCallsOfMountAreUnderWayAndFairly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under, most := 0, 0
		var mu sync.Mutex
		answer := make(chan struct{})
		slow := handlerCaller(func(ctx context.Context, c *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
			if c.Proc == 0 {
				return new(oncrpc.ClientReply), nil // it is here
			}
			mu.Lock()
			under++
			most = max(most, under)
			mu.Unlock()
			<-answer
			mu.Lock()
			under--
			mu.Unlock()
			return &oncrpc.ClientReply{Message: make([]byte, 4)}, nil
		})
		m, err := NewMount(MountConfig{Host: "192.0.2.1", Backend: Backend{Open: func(Front) (oncrpc.Caller, error) { return slow, nil }}})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		var calls sync.WaitGroup
		call := func(uid uint32, done *atomic.Int32) {
			r := mountRequest(t, 7, 3, 1)
			r.Origin = &origin.Origin{Local: true, User: &origin.User{UID: uid}}
			calls.Go(func() {
				if _, err := m.ServeRPC(t.Context(), r); err != nil {
					t.Error(err)
				}
				done.Add(1)
			})
		}
		var many, one atomic.Int32
		for range 4 * mountCalls {
			call(2000, &many)
		}
		synctest.Wait()
		call(2001, &one)
		synctest.Wait()
		for range mountCalls + 1 {
			answer <- struct{}{}
			synctest.Wait()
		}
		if one.Load() != 1 || many.Load() != mountCalls {
			t.Errorf("of one user %d calls were answered, of another %d, want 1 and %d", one.Load(), many.Load(), mountCalls)
		}
		close(answer)
		calls.Wait()
		if most != mountCalls {
			t.Errorf("%d calls were under way, want %d", most, mountCalls)
		}
	})
}
