package rping

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// A tap keeps what is written to a connection.
type tap struct {
	net.Conn
	mu      sync.Mutex
	written bytes.Buffer // under mu
}

func (c *tap) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.written.Write(p)
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// NetConn lets the stream reset what is below.
func (c *tap) NetConn() net.Conn { return c.Conn }

func (c *tap) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return hex.EncodeToString(c.written.Bytes())
}

// rnic opens an RNIC for one test.
func rnic(t testing.TB) *verbs.RNIC {
	t.Helper()
	r, err := verbs.Open(verbs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if u := r.Usage(); u != (verbs.Usage{}) {
			t.Errorf("the session left %+v", u)
		}
		r.Close()
	})
	return r
}

// connect connects two queue pairs over loopback and returns the connections
// with what each side wrote.
func connect(t testing.TB, r *verbs.RNIC, client, server *verbs.QP) (c, s *cm.Conn, fromClient, fromServer *tap) {
	t.Helper()
	ctx := t.Context()
	ln, err := cm.Listen(ctx, r, "tcp", "127.0.0.1:0", cm.ListenConfig{
		MPA:  mpa.Config{NoCRC: true},
		Wrap: func(nc net.Conn) net.Conn { fromServer = &tap{Conn: nc}; return fromServer },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	accepted := make(chan error, 1)
	go func() {
		req, err := ln.Accept(ctx)
		if err == nil {
			s, err = req.Accept(ctx, server, cm.Params{MPA: mpa.Config{NoCRC: true}})
		}
		accepted <- err
	}()
	c, err = cm.Dial(ctx, client, "tcp", ln.Addr().String(), cm.Params{
		MPA:  mpa.Config{NoCRC: true},
		Wrap: func(nc net.Conn) net.Conn { fromClient = &tap{Conn: nc}; return fromClient },
	})
	if err := errors.Join(err, <-accepted); err != nil {
		t.Fatal(err)
	}
	return c, s, fromClient, fromServer
}

// pair readies a client and a server that are connected, and runs the server.
// served gives the number of pings that it answered, and its error.
func pair(t testing.TB, clientSize, serverSize int, seen func([]byte)) (c *Client, conn *cm.Conn, served func() (int, error), taps [2]*tap) {
	t.Helper()
	r := rnic(t)
	c, err := NewClient(r, clientSize)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s, err := NewServer(r, serverSize)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	conn, _, taps[0], taps[1] = connect(t, r, c.QP(), s.QP())
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := s.Serve(t.Context(), seen)
		if err != nil {
			s.QP().Abort()
		}
		done <- result{n, err}
	}()
	return c, conn, func() (int, error) { r := <-done; return r.n, r.err }, taps
}

func TestPingsComeBackAsTheyWereSent(t *testing.T) {
	for _, size := range []int{MinSize, 27, DefaultSize, 4095, 60000, MaxSize} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var seen []string
			c, conn, served, _ := pair(t, size, 0, func(b []byte) { seen = append(seen, string(b)) })
			for n := range 60 {
				sent, echo, err := c.Ping(t.Context(), n)
				if err == nil {
					err = Compare(sent, echo)
				}
				if err != nil {
					t.Fatalf("ping %d: %v", n, err)
				}
			}
			if err := conn.Shutdown(t.Context()); err != nil {
				t.Errorf("closing: %v", err)
			}
			if n, err := served(); n != 60 || err != nil {
				t.Errorf("the server answered %d pings and ended with %v, want 60 and nil", n, err)
			}
			want := make([]byte, size)
			for n, got := range seen {
				if Fill(want, n); got != string(want) {
					t.Errorf("the server read %q in ping %d, want %q", got, n, want)
				}
			}
		})
	}
}

// The golden octets are a session between two Linux hosts; STags and the
// addresses behind them are what each side has.
func TestSessionHasTheOctetsOfTheOriginal(t *testing.T) {
	c, conn, served, taps := pair(t, DefaultSize, 0, nil)
	if _, _, err := c.Ping(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := conn.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := served(); err != nil {
		t.Fatal(err)
	}
	text := "72646d612d70696e672d303a20" + // rdma-ping-0: ABC...
		"4142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172" + "00"
	source := hex.EncodeToString(AppendInfo(nil, Info{RKey: uint32(c.source.mr.STag()), Size: DefaultSize}))
	sink := hex.EncodeToString(AppendInfo(nil, Info{RKey: uint32(c.data.mr.STag()), Size: DefaultSize}))
	const to = "0000000000000000" // our tagged offsets count from 0
	stag := func(info string) string { return info[16:24] }

	got := taps[1].String()
	want := strings.Join([]string{
		"4d504120494420526570204672616d65" + "1002" + "0004" + "00010001", // MPA Reply, enhanced, IRD and ORD 1
		"002e" + "4141" + "00000000" + "00000001" + "00000001" + "00000000" + // RDMA Read Request
			"SINKSTAG" + to + "00000040" + stag(source) + to + "00000000",
		"0022" + "4143" + "00000000" + "00000000" + "00000001" + "00000000" + // Send: go ahead
			strings.Repeat("0", 32) + "00000000",
		"004e" + "c140" + stag(sink) + to + text + "00000000", // RDMA Write
		"0022" + "4143" + "00000000" + "00000000" + "00000002" + "00000000" + // Send: done
			strings.Repeat("0", 32) + "00000000",
	}, "")
	at := strings.Index(want, "SINKSTAG")
	if len(got) < at+8 {
		t.Fatalf("the server wrote only %s", got)
	}
	serverSTag := got[at : at+8]
	if want = strings.Replace(want, "SINKSTAG", serverSTag, 1); got != want {
		t.Errorf("the server wrote\n%s, want\n%s", got, want)
	}

	want = strings.Join([]string{
		"4d504120494420526571204672616d65" + "1002" + "0004" + "00010001",                         // MPA Request
		"0022" + "4143" + "00000000" + "00000000" + "00000001" + "00000000" + source + "00000000", // Send
		"004e" + "c142" + serverSTag + to + text + "00000000",                                     // RDMA Read Response
		"0022" + "4143" + "00000000" + "00000000" + "00000002" + "00000000" + sink + "00000000",   // Send
	}, "")
	if got := taps[0].String(); got != want {
		t.Errorf("the client wrote\n%s, want\n%s", got, want)
	}
}

func TestServerStopsAtAPingLargerThanItsBuffer(t *testing.T) {
	c, _, served, _ := pair(t, 65, 64, nil)
	if _, _, err := c.Ping(t.Context(), 0); err == nil {
		t.Error("the client did not notice")
	}
	if n, err := served(); n != 0 || err == nil || !strings.Contains(err.Error(), "larger -S") {
		t.Errorf("the server answered %d pings and ended with %v", n, err)
	}
}

// A scripted client plays its messages against a server.
func TestBrokenClientsEndTheSessionWithAnError(t *testing.T) {
	for _, tt := range []struct {
		name string
		play func(t *testing.T, c *Client, conn *cm.Conn) error
		want string
	}{
		{"a message that is too short", func(t *testing.T, c *Client, _ *cm.Conn) error {
			return c.do(t.Context(), "", verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{c.out.mr.SGE(0, 15)}})
		}, "15 octets"},
		{"a message of nothing", func(t *testing.T, c *Client, _ *cm.Conn) error {
			return c.do(t.Context(), "", verbs.SendWR{Op: verbs.OpSend})
		}, "0 octets"},
		{"a source that is not there", func(t *testing.T, c *Client, _ *cm.Conn) error {
			AppendInfo(c.out.octets[:0], Info{RKey: uint32(c.source.mr.STag()) + 1, Size: 64})
			return c.send(t.Context(), "")
		}, "reading the source"},
		{"a source beyond its end", func(t *testing.T, c *Client, _ *cm.Conn) error {
			AppendInfo(c.out.octets[:0], Info{RKey: uint32(c.source.mr.STag()), Buf: 1, Size: 64})
			return c.send(t.Context(), "")
		}, "reading the source"},
		{"a source of 4 GiB", func(t *testing.T, c *Client, _ *cm.Conn) error {
			AppendInfo(c.out.octets[:0], Info{RKey: uint32(c.source.mr.STag()), Size: 1<<32 - 1})
			return c.send(t.Context(), "")
		}, "larger -S"},
		{"a sink that is too small", func(t *testing.T, c *Client, _ *cm.Conn) error {
			Fill(c.source.octets, 0)
			if err := c.advertise(t.Context(), c.source, ""); err != nil {
				return err
			}
			if _, err := c.recv(t.Context(), ""); err != nil {
				return err
			}
			AppendInfo(c.out.octets[:0], Info{RKey: uint32(c.data.mr.STag()), Size: 63})
			return c.send(t.Context(), "")
		}, "sink has 63 octets"},
		{"an end in the middle of a ping", func(t *testing.T, c *Client, conn *cm.Conn) error {
			if err := c.advertise(t.Context(), c.source, ""); err != nil {
				return err
			}
			if _, err := c.recv(t.Context(), ""); err != nil {
				return err
			}
			return conn.Shutdown(t.Context())
		}, "closed the connection"},
		{"a reset", func(t *testing.T, c *Client, _ *cm.Conn) error {
			c.QP().Abort()
			return nil
		}, "source's advertisement"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, conn, served, _ := pair(t, DefaultSize, 0, nil)
			if err := tt.play(t, c, conn); err != nil {
				t.Fatalf("the client's part: %v", err)
			}
			if n, err := served(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the server answered %d pings and ended with %v, want an error with %q", n, err, tt.want)
			}
		})
	}
}

// Data without a NUL, which the original never sends, is echoed whole.
func TestServerEchoesDataWithoutNULWhole(t *testing.T) {
	c, conn, served, _ := pair(t, DefaultSize, 0, nil)
	for i := range c.source.octets {
		c.source.octets[i] = 'x'
	}
	for _, b := range []buffer{c.source, c.data} {
		if err := c.advertise(t.Context(), b, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := c.recv(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := Compare(c.source.octets, c.data.octets); err != nil {
		t.Error(err)
	}
	conn.Shutdown(t.Context())
	if n, err := served(); n != 1 || err != nil {
		t.Errorf("the server answered %d pings and ended with %v", n, err)
	}
}

// A queue pair is Idle again after a graceful close, and holds what is posted.
func TestPingAfterTheServerHasClosedFails(t *testing.T) {
	r := rnic(t)
	c, err := NewClient(r, DefaultSize)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := NewServer(r, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, server, _, _ := connect(t, r, c.QP(), s.QP())
	closed := make(chan error, 1)
	go func() { closed <- server.Shutdown(t.Context()) }()
	_, err = c.QP().WaitState(t.Context(), verbs.Idle)
	if err := errors.Join(err, <-closed); err != nil {
		t.Fatalf("closing: %v", err)
	}
	if _, _, err := c.Ping(t.Context(), 0); !errors.Is(err, errClosed) {
		t.Errorf("a ping after the end returned %v, want %v", err, errClosed)
	}
}

func TestPingEndsWithItsContext(t *testing.T) {
	r := rnic(t)
	c, err := NewClient(r, DefaultSize)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := NewServer(r, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	connect(t, r, c.QP(), s.QP()) // and nobody serves
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.Ping(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Ping returned %v, want %v", err, context.Canceled)
	}
}

// Neither side does its part here: the other runs out of patience with it.
func TestASilentPeerBreaksTheSession(t *testing.T) {
	r := rnic(t)
	c, err := NewClient(r, DefaultSize)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := NewServer(r, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	connect(t, r, c.QP(), s.QP())
	c.Patience, s.Patience = time.Millisecond, time.Millisecond
	const want = "the peer has been silent for 1ms"
	if n, err := s.Serve(t.Context(), nil); n != 0 || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Serve returned %d and %v, want an error with %q", n, err, want)
	}
	if _, _, err := c.Ping(t.Context(), 0); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Ping returned %v, want an error with %q", err, want)
	}
}

func TestSizesOutsideTheLimitsAreRefused(t *testing.T) {
	r := rnic(t)
	for _, size := range []int{-1, 0, MinSize - 1, MaxSize + 1} {
		if c, err := NewClient(r, size); err == nil {
			c.Close()
			t.Errorf("a client of %d octets was made", size)
		}
		if s, err := NewServer(r, size); err == nil && size != 0 {
			t.Errorf("a server of %d octets was made", size)
		} else if err == nil {
			s.Close()
		}
	}
}

func TestCompareNamesTheFirstOctetThatDiffers(t *testing.T) {
	if err := Compare([]byte("abc"), []byte("abc")); err != nil {
		t.Error(err)
	}
	if err := Compare([]byte("abcd"), []byte("abXX")); err == nil || !strings.Contains(err.Error(), "octet 2 of 4") {
		t.Errorf("%v", err)
	}
	if Compare([]byte("ab"), []byte("abc")) == nil {
		t.Error("lengths differ, and Compare did not see it")
	}
}
