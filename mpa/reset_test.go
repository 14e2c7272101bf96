// Ends that the peer must not take for graceful ones.

package mpa

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
)

// unixPair is a connection over a socket that knows no RST.
func unixPair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	dir, err := os.MkdirTemp("", "mpa") // the name of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ln, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if a, err = net.Dial("unix", ln.Addr().String()); err == nil {
		b, err = ln.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// secured is TLS over a connection, after its handshake.
func secured(t *testing.T, a, b net.Conn) (client, server net.Conn) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(a, &tls.Config{InsecureSkipVerify: true})
	s := tls.Server(b, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}})
	done := make(chan error, 1)
	go func() { done <- s.Handshake() }()
	if err := errors.Join(c.Handshake(), nettest.Await(t, done)); err != nil {
		t.Fatal(err)
	}
	return c, s
}

// breakable are connections of all kinds.
func breakable() map[string]func(*testing.T) (a, b net.Conn) {
	pipes := func(t *testing.T) (a, b net.Conn) { nc, p := pipe(t); return nc, p.nc }
	tcp := func(t *testing.T) (a, b net.Conn) { x, y := tcpPair(t); return x, y }
	over := func(below func(*testing.T) (a, b net.Conn)) func(t *testing.T) (a, b net.Conn) {
		return func(t *testing.T) (a, b net.Conn) {
			x, y := below(t)
			return secured(t, x, y)
		}
	}
	return map[string]func(*testing.T) (a, b net.Conn){
		"TCP": tcp, "TLS over TCP": over(tcp),
		"a pipe": pipes, "TLS over a pipe": over(pipes),
		"a Unix socket": unixPair, "TLS over a Unix socket": over(unixPair),
	}
}

func TestAResetIsNoGracefulEnd(t *testing.T) {
	for name, pair := range breakable() {
		for _, markers := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				a, b := pair(t)
				x := NewConn(a, Params{Initiator: true, CRC: true, SendMarkers: markers})
				y := NewConn(b, Params{CRC: true, RecvMarkers: markers})
				x.Append([]byte("last"), nil)
				end := make(chan error, 1)
				s := &collector{}
				go func() { end <- y.Receive(s) }()
				if _, err := flushAll(x); err != nil {
					t.Fatal(err)
				}
				if err := x.Reset(); err != nil {
					t.Error(err)
				}
				if err := nettest.Await(t, end); !hasCode(err, CodeClosed) {
					t.Errorf("the peer's stream ended with %v, expected code 1", err)
				}
				if _, err := a.Write([]byte{0}); err == nil {
					t.Error("the connection is open")
				}
			})
		}
	}
}

// A write that waits for the peer is ended by a reset, and what of its FPDU has
// left does not become whole.
func TestAResetEndsAWriteWithinItsFPDU(t *testing.T) {
	for _, read := range []int{0, 1, 100} {
		synctest.Test(t, func(t *testing.T) {
			nc, p := pipe(t)
			c := NewConn(nc, Params{Initiator: true})
			c.Append(pattern(1000, 1), nil)
			written := make(chan error, 1)
			go func() {
				_, err := flushAll(c)
				written <- err
			}()
			if _, err := io.ReadFull(p.nc, make([]byte, read)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			rest := make(chan int, 1)
			begun := time.Now()
			if read == 0 {
				go func() { // it reads again, later
					time.Sleep(cutTimeout / 2)
					b, _ := io.ReadAll(p.nc)
					rest <- len(b)
				}()
			} else {
				rest <- 0
			}
			if err := c.Reset(); err != nil {
				t.Error(err)
			}
			if err := <-written; !hasCode(err, CodeClosed) {
				t.Errorf("%d octets read: the write ended with %v", read, err)
			}
			if n := <-rest; read == 0 && n != 1 {
				t.Errorf("the peer read %d octets of an FPDU, expected 1", n)
			}
			if took := time.Since(begun); took > cutTimeout {
				t.Errorf("%d octets read: the reset took %v, expected %v at most", read, took, cutTimeout)
			}
		})
	}
}

// slowlyClosed is a connection that has something happen before it is closed.
type slowlyClosed struct {
	net.Conn
	before func()
}

func (c slowlyClosed) Close() error {
	c.before()
	return c.Conn.Close()
}

// Whoever sends while the connection is being reset does not go on with the FPDU
// within which it ends.
func TestNothingFollowsAReset(t *testing.T) {
	nc, p := pipe(t)
	var c *Conn
	c = NewConn(slowlyClosed{nc, func() {
		c.Append(pattern(100, 1), nil)
		if _, err := flushAll(c); !hasCode(err, CodeClosed) {
			t.Errorf("the write ended with %v, expected code 1", err)
		}
	}}, Params{Initiator: true})
	read := make(chan int, 1)
	go func() {
		b, _ := io.ReadAll(p.nc)
		read <- len(b)
	}()
	if err := c.Reset(); err != nil {
		t.Error(err)
	}
	if n := nettest.Await(t, read); n != 1 {
		t.Errorf("the peer read %d octets, expected 1", n)
	}
}

// A peer that reads nothing, or a connection without deadlines, does not hold up a
// reset.
func TestAResetDoesNotWaitForThePeer(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"silent":            func(nc net.Conn) net.Conn { return nc },
		"without deadlines": func(nc net.Conn) net.Conn { return timeless{nc} },
	} {
		for _, busy := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				nc, p := pipe(t)
				c := NewConn(wrap(nc), Params{Initiator: true})
				if busy {
					c.Append(pattern(1000, 1), nil)
					go flushAll(c)
					synctest.Wait()
				}
				begun := time.Now()
				if err := c.Reset(); err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); took > cutTimeout {
					t.Errorf("%s, busy %t: it took %v", name, busy, took)
				}
				p.seesEnd() // which it could not be told
			})
		}
	}
}

// lateConn is a connection whose writes return late.
type lateConn struct {
	net.Conn
	delay time.Duration
}

func (c lateConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	time.Sleep(c.delay)
	return n, err
}

// An Initiator that has the Reply is in Full Operation, whatever the Responder then
// thinks of the time.
func TestAnAcceptanceThatIsTakenBackIsNoGracefulEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc, p := pipe(t)
		r := awaits(t, lateConn{nc, time.Second}, p, Config{DecisionTimeout: time.Second}, p2pRequest)
		seen := make(chan error, 1)
		go func() {
			_, _, err := readFrame(p.nc, ReplyFrame)
			seen <- err
			seen <- NewConn(p.nc, Params{Initiator: true}).Receive(&collector{})
		}()
		time.Sleep(time.Second / 2)
		if _, err := r.Accept(t.Context(), Config{}, nil); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("accepted: %v", err)
		}
		if err := <-seen; err != nil {
			t.Fatal(err)
		}
		if err := <-seen; !hasCode(err, CodeClosed) {
			t.Errorf("the peer's stream ended with %v, expected code 1", err)
		}
	})
}
