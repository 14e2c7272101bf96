package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/rping"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// A writer is a function that takes what is written.
type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

// The server shows a ping's data in the middle of the ping: that is when the
// client is interrupted. Both ends must end well, the client's status saying
// whether it had been told how often to ping.
func TestAnInterruptLetsThePingUnderWayComeToItsEnd(t *testing.T) {
	for count, want := range map[string]int{"0": 0, "1000000": exitFailed} {
		t.Run("-C "+count, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			heard, stderr := io.Pipe()
			served := make(chan int, 1)
			go func() {
				shown := writer(func([]byte) { interrupt() })
				served <- run(t.Context(), []string{"ping", "-s", "-v", "-a", "127.0.0.1", "-p", "0"}, shown, stderr)
				stderr.Close()
			}()
			lines := bufio.NewReader(heard)
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			_, port, err := net.SplitHostPort(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			var errs bytes.Buffer
			args := []string{"ping", "-c", "-a", "127.0.0.1", "-p", port, "-C", count}
			if status := run(ctx, args, io.Discard, &errs); status != want {
				t.Errorf("the client ended with status %d, want %d: %s", status, want, &errs)
			}
			rest, _ := io.ReadAll(lines)
			if status := nettest.Await(t, served); status != 0 {
				t.Errorf("the server ended with status %d: %s", status, rest)
			}
		})
	}
}

// A client that wants to make more Reads at a time than rping does is let, up to a
// bound (RFC 6581 §9.1).
func TestAPingServerTakesTheReadsThatItsClientWants(t *testing.T) {
	for wanted, want := range map[int]int{0: 0, 1: 1, 9: 9, 16: 16, 40: 16} {
		ctx, stop := context.WithCancel(t.Context())
		heard, stderr := io.Pipe()
		served := make(chan int, 1)
		go func() {
			served <- run(ctx, []string{"ping", "-s", "-a", "127.0.0.1", "-p", "0"}, io.Discard, stderr)
			stderr.Close()
		}()
		line, err := bufio.NewReader(heard).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, heard)
		rnic, err := verbs.Open(verbs.Config{})
		if err != nil {
			t.Fatal(err)
		}
		pd, err := rnic.AllocPD()
		if err != nil {
			t.Fatal(err)
		}
		cq, err := rnic.CreateCQ(verbs.CQConfig{Entries: 4})
		if err != nil {
			t.Fatal(err)
		}
		qp, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, IRD: 1, ORD: wanted})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := cm.Dial(t.Context(), qp, "tcp", strings.TrimSpace(strings.TrimPrefix(line, "listening on ")), cm.Params{})
		if err != nil {
			t.Fatal(err)
		}
		if conn.ORD() != want {
			t.Errorf("with an ORD of %d the client may make %d Reads at a time, expected %d", wanted, conn.ORD(), want)
		}
		if err := conn.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		rnic.Close()
		if status := nettest.Await(t, served); status != 0 {
			t.Errorf("the server ended with status %d", status)
		}
		stop()
	}
}

// Linux siw overlooks a first message that comes too soon, until more comes.
func TestAPingIsAnsweredByAServerThatLeftItsBeginningUnread(t *testing.T) {
	ln := nettest.Listen(t, "tcp4")
	rnic, err := verbs.Open(verbs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer rnic.Close()
	served := make(chan error, 1)
	go func() {
		served <- func() error {
			s, err := rping.NewServer(rnic, 0)
			if err != nil {
				return err
			}
			nc, err := ln.Accept()
			if err != nil {
				return err
			}
			req, err := cm.Receive(t.Context(), nettest.Sluggish(nc.(*net.TCPConn), 1), mpa.Config{})
			if err != nil {
				return err
			}
			if _, err := req.Accept(t.Context(), s.QP(), cm.Params{}); err != nil {
				return err
			}
			_, err = s.Serve(t.Context(), nil)
			return errors.Join(err, s.Close())
		}()
	}()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	var errs bytes.Buffer
	if status := run(t.Context(), []string{"ping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "2"}, io.Discard, &errs); status != 0 {
		t.Errorf("status %d: %s", status, &errs)
	}
	if err := nettest.Await(t, served); err != nil {
		t.Error(err)
	}
}

// Sessions that are opened and never ping do not keep others from it.
func TestSilentSessionsMakePlaceForThoseThatPing(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	heard, stderr := io.Pipe()
	p := &ping{
		server: true, persistent: true, address: "127.0.0.1", size: rping.DefaultSize, revision: 2, timeout: timeout{true, time.Minute},
		sessions: 4, cmd: newPing(),
	}
	p.cmd.SetErr(stderr)
	p.cmd.SetOut(io.Discard)
	served := make(chan error, 1)
	go func() {
		served <- p.run(ctx)
		stderr.Close()
	}()
	lines := bufio.NewReader(heard)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, lines)
	addr := strings.TrimSpace(strings.TrimPrefix(line, "listening on"))
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 * p.sessions {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.Write([]byte("MPA ID Req Frame\x40\x01\x00\x00")) // RFC 5044 §7.1.1
		if _, err := io.ReadFull(nc, make([]byte, 20)); err != nil {
			t.Fatalf("a session is not opened: %v", err)
		}
	}
	var errs bytes.Buffer
	if status := run(t.Context(), []string{"ping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "3"}, io.Discard, &errs); status != 0 {
		t.Errorf("the client ended with status %d: %s", status, &errs)
	}
	interrupt()
	if err := nettest.Await(t, served); err != nil {
		t.Error(err)
	}
}

func TestWhatOutlastsAContextIsDoneAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		longer, stop := outlast(ctx, time.Second)
		defer stop()
		cancel()
		time.Sleep(time.Second - 1)
		if longer.Err() != nil {
			t.Error("it is done too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !errors.Is(longer.Err(), context.Canceled) {
			t.Error("it is not done")
		}
	})
}
