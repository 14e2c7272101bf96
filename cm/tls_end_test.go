// The end of a stream over TLS, and the limit of its keys.

package cm_test

import (
	"errors"
	"net"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

func TestWhatWasSentBeforeTheCloseArrivesOverTLS(t *testing.T) {
	nettest.CheckLeaks(t)
	const messages, size = 16, 60_000
	for _, first := range []string{"client", "server", "both"} {
		s := secure(t, cm.ListenConfig{}, cm.Params{MPA: mpa.Config{PeerToPeer: true}}, cm.Params{})
		ends, conns := []*end{s.a, s.b}, []*cm.Conn{s.ca, s.cb}
		for i := range messages {
			for _, e := range ends {
				if err := e.qp.PostRecv(verbs.RecvWR{ID: uint64(i), SGL: []verbs.SGE{e.mr.SGE(i*size, size)}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		closers := map[string][]int{"client": {0}, "server": {1}, "both": {0, 1}}[first]
		sent := messages
		if first == "both" {
			sent = 0 // a message in Closing is an error (RDMA Verbs §6.2.3)
		}
		var errs []<-chan error
		for _, i := range closers {
			for range sent {
				if err := ends[i].qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{ends[i].mr.SGE(0, size)}}); err != nil {
					t.Fatal(err)
				}
			}
			done := make(chan error, 1)
			go func() { done <- conns[i].Shutdown(t.Context()) }()
			errs = append(errs, done)
		}
		for _, i := range closers {
			receiver := ends[1-i]
			for n := range sent {
				if wc := receiver.next(t); wc.Status != verbs.Success || wc.ID != uint64(n) {
					t.Fatalf("%s closes: receive %d: %v, number %d, %v", first, n, wc.Status, wc.ID, receiver.qp.Err())
				}
			}
		}
		for _, done := range errs {
			if err := nettest.Await(t, done); err != nil {
				t.Errorf("%s closes: %v", first, err)
			}
		}
		for _, e := range ends {
			if state, err := e.qp.WaitState(t.Context(), verbs.Idle, verbs.Error); err != nil || state != verbs.Idle {
				t.Errorf("%s closes: %v, %v", first, state, e.qp.Err())
			}
		}
	}
}

// FIN without close_notify may be an attacker's.
func TestATruncatedStreamIsNoGracefulClose(t *testing.T) {
	nettest.CheckLeaks(t)
	client, server := pins(t)
	for _, how := range []string{"FIN", "reset"} {
		a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
		ln := listen(t, b, "tcp4", cm.ListenConfig{TLS: server.mutual(t)})
		done := accepted(t.Context(), ln, func(r *cm.Request) error {
			_, err := r.Accept(t.Context(), b.qp, cm.Params{})
			return err
		})
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = cm.Connect(t.Context(), a.qp, nc, cm.Params{TLS: client.Client("127.0.0.1")}); err != nil {
			t.Fatal(err)
		}
		if err := nettest.Await(t, done); err != nil {
			t.Fatal(err)
		}
		if how == "FIN" {
			nc.(*net.TCPConn).CloseWrite()
		} else {
			a.qp.Abort()
		}
		if state, err := b.qp.WaitState(t.Context(), verbs.Idle, verbs.Error); err != nil || state != verbs.Error {
			t.Errorf("%s: the other side is %v, %v", how, state, err)
		}
	}
}

func TestAKeyIsUsedForALimitedNumberOfRecords(t *testing.T) {
	nettest.CheckLeaks(t)
	for _, limited := range []string{"client", "server"} {
		pa, cfg := cm.Params{}, cm.ListenConfig{}
		if limited == "client" {
			pa.KeyRecords = 64
		} else {
			cfg.KeyRecords = 64
		}
		s := secure(t, cfg, pa, cm.Params{})
		read := verbs.SendWR{Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{s.a.mr.SGE(0, 1<<20)}, Remote: s.b.mr.Remote(0)} // 65 records or more of the server's
		write := verbs.SendWR{Op: verbs.OpWrite, Flags: verbs.Signaled, SGL: []verbs.SGE{s.a.mr.SGE(0, 50<<14)}, Remote: s.b.mr.Remote(0)}
		if limited == "client" {
			select {
			case <-s.ca.KeyLimitNear():
				t.Error("told at the beginning")
			default:
			}
			s.a.do(t, write) // 50 full records and a bit
			nettest.Await(t, s.ca.KeyLimitNear())
			if err := s.a.qp.PostSend(write); err != nil {
				t.Fatal(err)
			}
		} else if err := s.a.qp.PostSend(read); err != nil {
			t.Fatal(err)
		}
		if wc := s.a.next(t); wc.Status == verbs.Success {
			t.Errorf("%s: %v", limited, wc.Status)
		}
		at := s.a
		if limited == "server" {
			at = s.b
		}
		if state, err := at.qp.WaitState(t.Context(), verbs.Error); err != nil || !errors.Is(at.qp.Err(), cm.ErrKeyLimit) {
			t.Errorf("%s: %v, %v", limited, state, at.qp.Err())
		}
	}
	// A client learns of the server's key, too.
	s := secure(t, cm.ListenConfig{}, cm.Params{KeyRecords: 64}, cm.Params{})
	s.a.do(t, verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{s.a.mr.SGE(0, 1<<20)}, Remote: s.b.mr.Remote(0)})
	nettest.Await(t, s.ca.KeyLimitNear())
}
