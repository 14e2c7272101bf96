package mpa

import (
	"net"
	"slices"
	"syscall"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/mpa/internal/socket"
	"github.com/weft-rdma/weft/mpa/internal/turns"
)

// A slow RawConn has octets arrive when somebody waits for them, or at another Read after one in
// which there were none.
type slow struct {
	t     *testing.T
	fd    uintptr
	peer  net.Conn
	turns *turns.Turns
	calls []string
	tries int // Reads without octets, in each of which a visitor is refused
}

func (s *slow) Control(f func(uintptr)) error       { f(s.fd); return nil }
func (s *slow) Write(step func(uintptr) bool) error { return nil }

func (s *slow) Read(step func(uintptr) bool) error {
	s.calls = append(s.calls, "read")
	if s.tries == 0 && len(s.calls) > 1 {
		s.arrive()
	} else if s.tries > 0 {
		s.tries--
		s.turns.Refused()
	}
	for !step(s.fd) {
		s.calls = append(s.calls, "wait")
		s.arrive()
	}
	return nil
}

func (s *slow) arrive() {
	if _, err := s.peer.Write([]byte{1}); err != nil {
		s.t.Fatal(err)
	}
	nettest.Until(s.t, func() bool { return socket.Readable(s.fd) })
}

// In the middle of a ULPDU, Receive waits for octets only if no visitor was refused meanwhile.
func TestReceiveTriesAgainInTheMiddleOfAULPDUWhileSomebodyPolls(t *testing.T) {
	a, b := tcpPair(t)
	rc, err := b.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := rc.Control(func(fd uintptr) {
		raw := &slow{t: t, fd: fd, peer: a}
		s := newTCP(b, raw, new(counters), nil)
		raw.turns = s.turns
		ahead := newReadAhead(nil, 0)
		for _, v := range []struct {
			tries int
			want  []string
		}{
			{0, []string{"read", "wait"}},
			{3, []string{"read", "read", "read", "read"}},
			{0, []string{"read", "wait"}},
		} {
			raw.tries, raw.calls = v.tries, nil
			if n, err := s.read(&ahead, true); n != 1 || err != nil {
				t.Fatalf("%d octets, %v", n, err)
			}
			if !slices.Equal(raw.calls, v.want) {
				t.Errorf("%d visitors refused: %q, expected %q", v.tries, raw.calls, v.want)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// Who finds the receiving half taken is counted, but not over a connection whose Receive does not
// depend on Go's network poller.
func TestRefusedVisitorsAreCounted(t *testing.T) {
	_, b := tcpPair(t)
	in := NewConn(b, Params{})
	in.turns.Begin()
	defer in.turns.End()
	in.turns.Hurried()
	if in.Poll() || !in.turns.Hurry() {
		t.Error("a visitor that was refused is not counted")
	}
	_, b = tcpPair(t)
	polled := NewConn(quiet(t, b), Params{})
	polled.turns.Begin()
	defer polled.turns.End()
	if polled.Poll() || polled.turns.Hurry() {
		t.Error("a visitor of a connection that Go's network poller does not know is counted")
	}
}

var _ syscall.RawConn = (*slow)(nil)
