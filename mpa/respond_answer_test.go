// The decision about a Request, and what can go wrong until it is on its way.

package mpa

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
)

func TestADecisionThatDoesNotComeClosesTheConnection(t *testing.T) {
	for _, c := range []struct{ set, want time.Duration }{{0, DefaultDecisionTimeout}, {time.Second, time.Second}} {
		for name, answer := range map[string]func(*Request) error{
			"accepted": func(r *Request) error { _, err := r.Accept(context.Background(), Config{}, nil); return err },
			"rejected": func(r *Request) error { return r.Reject(nil) },
		} {
			for _, when := range []string{"too late", "and not read"} {
				synctest.Test(t, func(t *testing.T) {
					nc, p := pipe(t)
					r := awaits(t, nc, p, Config{DecisionTimeout: c.set}, p2pRequest)
					start := time.Now()
					if when == "too late" {
						p.seesEnd()
						if d := time.Since(start); d != c.want {
							t.Errorf("closed after %v, want %v", d, c.want)
						}
					}
					if err := answer(r); !hasCode(err, CodeClosed) || !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("%s %s: %v", name, when, err)
					}
					if d := time.Since(start); d != c.want {
						t.Errorf("%s %s: over after %v, want %v", name, when, d, c.want)
					}
					p.seesEnd()
				})
			}
		}
	}
}

// OnExpiry reports the end of the time, also one that is past.
func TestTheEndOfTheTimeForADecisionIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc, p := pipe(t)
		r := awaits(t, nc, p, Config{DecisionTimeout: time.Second}, p2pRequest)
		start, over := time.Now(), make(chan bool)
		report := func() { over <- r.Expired() }
		r.OnExpiry(report)
		if !<-over || time.Since(start) != time.Second {
			t.Errorf("reported after %v, expected 1s", time.Since(start))
		}
		r.OnExpiry(report)
		if !<-over {
			t.Error("the time is not over")
		}
		p.seesEnd()
	})
}

func TestADecisionInTimeStopsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc, p := pipe(t)
		r := awaits(t, nc, p, Config{}, p2pRequest)
		go func() { p.gets(repHex + "70 02 0004 8000 c000"); p.seesSilence() }()
		time.Sleep(DefaultDecisionTimeout - time.Second)
		if err := r.RejectWith(Config{RTR: RTRWrite | RTRRead}, nil); err != nil {
			t.Error(err)
		}
		time.Sleep(48 * time.Hour)
	})
}

// Claims: MPA-7.1.1-14 MPA-7.1.2-4 MPA-7.1.5-1
func TestOctetsBehindTheRequestCloseTheConnection(t *testing.T) {
	answers := map[string]func(*Request) error{
		"accepted": func(r *Request) error { _, err := r.Accept(context.Background(), Config{}, nil); return err },
		"rejected": func(r *Request) error { return r.Reject(nil) },
	}
	for name, answer := range answers {
		t.Run("in memory, "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // a glance is as long as it takes
				nc, p := pipe(t)
				r := awaits(t, nc, p, Config{}, p2pRequest+"00")
				if err := answer(r); !isStartup(err) {
					t.Error(err)
				}
				p.seesEnd()
			})
		})
		t.Run("over TCP, "+name, func(t *testing.T) {
			a, b := tcpPair(t)
			p := peer{t, b}
			p.sendsHex(p2pRequest + "00")
			r, err := Await(t.Context(), a, Config{})
			if err != nil {
				t.Fatal(err)
			}
			if err := answer(r); !isStartup(err) {
				t.Error(err)
			}
			// Input that was not read makes the close a reset.
			if rest, _ := io.ReadAll(b); len(rest) > 0 {
				t.Errorf("peer got % x", rest)
			}
		})
	}
}

// A timeless connection has no deadlines, as the channels of SSH have none.
type timeless struct{ net.Conn }

func (timeless) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (timeless) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (timeless) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// Where a look behind the Request would have to wait, there is none.
func TestAResponderNeedsNoDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc, p := pipe(t)
		r := awaits(t, timeless{nc}, p, Config{}, p2pRequest)
		replied := make(chan error)
		go func() {
			_, _, err := readFrame(p.nc, ReplyFrame)
			replied <- err
		}()
		_, err := r.Accept(t.Context(), Config{}, nil)
		if err := errors.Join(err, <-replied); err != nil {
			t.Error(err)
		}
	})
}

func TestAPeerThatIsGoneBeforeTheAnswerIsReported(t *testing.T) {
	t.Run("in memory", func(t *testing.T) {
		nc, p := pipe(t)
		r := awaits(t, nc, p, Config{}, p2pRequest)
		p.nc.Close()
		if _, err := r.Accept(t.Context(), Config{}, nil); !hasCode(err, CodeClosed) || !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
	t.Run("over TCP", func(t *testing.T) {
		a, b := tcpPair(t)
		p := peer{t, b}
		p.sendsHex(p2pRequest)
		r, err := Await(t.Context(), a, Config{})
		if err != nil {
			t.Fatal(err)
		}
		b.CloseWrite()
		nettest.Until(t, func() bool { return checkSilence(a) != nil }) // the end has arrived
		if _, err := r.Accept(t.Context(), Config{}, nil); !hasCode(err, CodeClosed) || !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		p.seesEnd()
	})
}

// Over TCP the look behind the Request neither waits nor takes anything.
func TestASilentPeerOverTCPIsAccepted(t *testing.T) {
	a, b := tcpPair(t)
	p := peer{t, b}
	p.sendsHex(reqHex + "50 02 0004 0005 0003")
	r, err := Await(t.Context(), a, Config{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := r.Accept(t.Context(), Config{IRD: 16, ORD: 16}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.gets(repHex + "50 02 0004 0010 0005")
	p.sendsHex("000ec140 00000000 00000000 00000000 a30572ab") // a Write of no octets
	b.CloseWrite()
	var c collector
	if err := conn.Receive(&c); err != io.EOF || len(c.got) != 1 {
		t.Errorf("%x, %v", c.got, err)
	}
}

// Claims: MPA-7.1.2-5 MPA-7.1.2-6 MPA-7.1.2-2 ME-9.1-9 ME-10-1 ME-10-2 ME-9.2-4
func TestARejectionLeavesTheConnectionToTheRespondersCaller(t *testing.T) {
	for _, c := range []struct {
		name     string
		cfg      Config
		req, rep string
	}{
		{"revision 1", Config{}, "40 01 0000", "60 01 0002 6e6f"},
		{"enhanced, needs ORD 8", Config{IRD: 1, ORD: 8, RTR: RTRWrite | RTRRead}, "50 02 0004 c005 c003", "70 02 0006 8001 c008 6e6f"},
		{"client-server", Config{IRD: 1, ORD: 8}, "50 02 0004 0005 0003", "70 02 0006 0001 0008 6e6f"},
		{"RDMA Consortium", Config{Profile: ProfilePermissive}, "c0 00 0000", "e0 00 0002 6e6f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nc, p := pipe(t)
				r := awaits(t, nc, p, c.cfg, reqHex+c.req)
				go func() {
					if err := r.Reject([]byte("no")); err != nil {
						t.Error(err)
					}
				}()
				p.gets(repHex + c.rep)
				p.streams(nc)
			})
		})
	}
}

// Claims: MPA-7.1.1-15 ME-7-2 ME-9-2
func TestWhatCannotBeAnsweredLeavesTheRequestOpen(t *testing.T) {
	for _, c := range []struct {
		req   string
		limit int
	}{{"40 01 0000", 512}, {"50 02 0004 0005 0003", 508}} {
		synctest.Test(t, func(t *testing.T) {
			nc, p := pipe(t)
			r := awaits(t, nc, p, Config{}, reqHex+c.req)
			if _, err := r.Accept(t.Context(), Config{}, make([]byte, c.limit+1)); !errors.Is(err, ErrPrivateData) {
				t.Error(err)
			}
			if err := r.Reject(make([]byte, c.limit+1)); !errors.Is(err, ErrPrivateData) {
				t.Error(err)
			}
			if _, err := r.Accept(t.Context(), Config{IRD: 0x4000}, nil); err == nil {
				t.Error("IRD 0x4000 passed")
			}
			if err := r.RejectWith(Config{ORD: 0x4000}, nil); err == nil {
				t.Error("ORD 0x4000 passed")
			}
			go io.Copy(io.Discard, p.nc)
			if _, err := r.Accept(t.Context(), Config{}, make([]byte, c.limit)); err != nil {
				t.Error(err)
			}
			nc.Close()
		})
	}
	if _, err := Await(t.Context(), nil, Config{IRD: 0x4000}); err == nil {
		t.Error("IRD 0x4000 passed")
	}
}

func TestARequestIsAnsweredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc, p := pipe(t)
		r := awaits(t, nc, p, Config{}, p2pRequest)
		got := make(chan []byte)
		go func() { b, _ := io.ReadAll(p.nc); got <- b }()
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				switch i % 2 {
				case 0:
					_, errs[i] = r.Accept(t.Context(), Config{}, nil)
				case 1:
					errs[i] = r.Reject(nil)
				}
			})
		}
		wg.Wait()
		answered := 0
		for _, err := range errs {
			if err == nil {
				answered++
			} else if err != ErrAnswered {
				t.Error(err)
			}
		}
		if err := r.Close(); err != ErrAnswered {
			t.Error(err)
		}
		nc.Close()
		if b := <-got; answered != 1 || len(b) != 24 {
			t.Errorf("answered %d times, with % x", answered, b)
		}
	})
}

func TestClosingARequestEndsTheConnectionWithoutAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc, p := pipe(t)
		r := awaits(t, nc, p, Config{}, p2pRequest)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		p.seesEnd()
		if err := r.Reject(nil); err != ErrAnswered {
			t.Error(err)
		}
	})
}
