package polled_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/polled"
)

// kept are the descriptors that the poller has.
var kept []int

func TestMain(m *testing.M) {
	err := polled.Start(func(fd int) { kept = append(kept, fd) }, func(attend func() bool) (done bool) {
		defer func() { _ = recover() }()
		return attend()
	})
	if err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// Start reports the poller's two descriptors.
func TestStartTellsOfDescriptors(t *testing.T) {
	if len(kept) != 2 {
		t.Fatalf("descriptors %v were reported, expected two", kept)
	}
	for i, want := range []string{"anon_inode:[eventpoll]", "anon_inode:[timerfd]"} {
		if is, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", kept[i])); err != nil || is != want {
			t.Errorf("descriptor %d is %s, %v, expected %s", kept[i], is, err, want)
		}
	}
}

// A panic of what attends ends neither the program nor the wait, nor the poller.
func TestPanicOfAttendIsContained(t *testing.T) {
	c, peer := pair(t)
	attended := make(chan struct{}, 2)
	c.ReceiveWith(func() bool {
		attended <- struct{}{}
		panic("a defect")
	})
	rc, _ := c.SyscallConn()
	for range 2 {
		looks := 0
		err := rc.Read(func(fd uintptr) bool {
			var one [1]byte
			if looks++; looks == 1 {
				_, err := peer.Write([]byte{1}) // the wait is about to begin
				return err != nil
			}
			n, _ := unix.Read(int(fd), one[:])
			return n == 1
		})
		if err != nil || looks != 2 {
			t.Errorf("the read looked %d times, %v, expected 2", looks, err)
		}
		<-attended
	}
}

// pair returns a connection of this package, and its peer.
func pair(t *testing.T) (*polled.Conn, *net.TCPConn) {
	t.Helper()
	a, b := nettest.TCPPair(t, "tcp4")
	c, err := polled.New(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, b
}

func TestOctetsGoBothWays(t *testing.T) {
	c, peer := pair(t)
	large := bytes.Repeat([]byte("0123456789"), 1<<20) // more than a socket takes at once
	sent := make(chan error, 2)
	go func() {
		_, err := c.Write(large)
		sent <- errors.Join(err, c.CloseWrite())
	}()
	go func() {
		_, err := peer.Write(large)
		sent <- errors.Join(err, peer.CloseWrite())
	}()
	got := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(peer)
		got <- all
	}()
	all, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(all, large) {
		t.Errorf("%d octets came in, %v, expected %d", len(all), err, len(large))
	}
	if all := <-got; !bytes.Equal(all, large) {
		t.Errorf("%d octets went out, expected %d", len(all), len(large))
	}
	for range 2 {
		if err := <-sent; err != nil {
			t.Error(err)
		}
	}
}

// A wait ends with its deadline, with one that has passed, and with Close; what is called
// later fails, until the deadline is lifted.
func TestWaitsEnd(t *testing.T) {
	for _, v := range []struct {
		name string
		end  func(c *polled.Conn) error
		want error
	}{
		{"a deadline", func(c *polled.Conn) error { return c.SetReadDeadline(time.Now().Add(time.Millisecond)) }, os.ErrDeadlineExceeded},
		{"one that has passed", func(c *polled.Conn) error { return c.SetDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		{"Close", (*polled.Conn).Close, net.ErrClosed},
	} {
		t.Run(v.name, func(t *testing.T) {
			c, peer := pair(t)
			began, ended := make(chan struct{}), make(chan error, 1)
			go func() {
				close(began)
				_, err := c.Read(make([]byte, 1))
				ended <- err
			}()
			<-began
			if err := v.end(c); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; !errors.Is(err, v.want) {
				t.Errorf("the wait ended with %v, expected %v", err, v.want)
			}
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, v.want) {
				t.Errorf("another ended with %v, expected %v", err, v.want)
			}
			if v.want == net.ErrClosed {
				if _, err := peer.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("the peer read %v, expected the end", err)
				}
				return
			}
			if err := c.SetDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			if _, err := peer.Write([]byte{1}); err != nil {
				t.Fatal(err)
			}
			if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
				t.Errorf("read %d octets, %v", n, err)
			}
		})
	}
}

// What is attended to does not wake a read, unless that is asked for.
func TestWhatComesIsAttendedTo(t *testing.T) {
	c, peer := pair(t)
	attended := make(chan byte)
	c.ReceiveWith(func() bool {
		var one [1]byte
		rc, _ := c.SyscallConn()
		_ = rc.Control(func(fd uintptr) { _, _ = unix.Read(int(fd), one[:]) })
		attended <- one[0]
		return one[0] != 3
	})
	steps := make(chan struct{}, 10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		rc, _ := c.SyscallConn()
		_ = rc.Read(func(uintptr) bool {
			steps <- struct{}{}
			return len(steps) == 2
		})
	}()
	for i := byte(1); i <= 3; i++ {
		if _, err := peer.Write([]byte{i}); err != nil {
			t.Fatal(err)
		}
		if got := <-attended; got != i {
			t.Fatalf("octet %d was attended to, expected %d", got, i)
		}
	}
	<-ended
	if n := len(steps); n != 2 {
		t.Errorf("the read looked %d times, expected 2: at first, and for the octet that was left to it", n)
	}
}

// What could not be attended to wakes a read, also if visitors have come meanwhile: they do
// not find the octets any more.
func TestWhatIsLeftWakesAReadThatVisitorsHave(t *testing.T) {
	c, peer := pair(t)
	attended := make(chan struct{})
	c.ReceiveWith(func() bool {
		var one [1]byte
		rc, _ := c.SyscallConn()
		_ = rc.Control(func(fd uintptr) { _, _ = unix.Read(int(fd), one[:]) })
		c.Visit()
		if _, ok := c.Hold(); !ok {
			t.Error("it cannot be held")
		}
		close(attended)
		return false
	})
	looks := 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		rc, _ := c.SyscallConn()
		_ = rc.Read(func(uintptr) bool {
			looks++
			return looks == 2
		})
	}()
	if _, err := peer.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	<-attended
	c.Release()
	c.EndLease()
	<-ended
}

// A read is not woken while visitors come; it is when they stay away, and when it is told to
// look.
func TestVisitorsComeFirst(t *testing.T) {
	c, peer := pair(t)
	read := make(chan byte, 1)
	one := func() {
		var b [1]byte
		_, _ = c.Read(b[:])
		read <- b[0]
	}
	go one()
	fd, ok := c.Hold()
	if !ok {
		t.Fatal("it cannot be held")
	}
	c.Visit()
	if _, err := peer.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		if n, err := unix.Poll(ready, -1); n == 1 {
			break
		} else if err != unix.EINTR {
			t.Fatal(err)
		}
	}
	c.Release()
	// Nobody visits any more.
	if got := <-read; got != 1 {
		t.Errorf("read %d, expected 1", got)
	}
	go one()
	c.Visit()
	if _, err := peer.Write([]byte{2}); err != nil {
		t.Fatal(err)
	}
	c.EndLease()
	if got := <-read; got != 2 {
		t.Errorf("read %d, expected 2", got)
	}
}

// WakeReader has a read that is about to wait look again.
func TestAWakeupBeforeTheWaitIsNotLost(t *testing.T) {
	c, _ := pair(t)
	rc, _ := c.SyscallConn()
	looks := 0
	err := rc.Read(func(uintptr) bool {
		looks++
		if looks == 1 {
			c.WakeReader() // before the wait begins
		}
		return looks == 2
	})
	if err != nil || looks != 2 {
		t.Errorf("%d looks, %v, expected 2", looks, err)
	}
}

// Close makes a descriptor that is held readable, and waits until it is dropped.
func TestCloseWaitsForWhoHolds(t *testing.T) {
	c, _ := pair(t)
	fd, ok := c.Hold()
	if !ok {
		t.Fatal("it cannot be held")
	}
	closed := make(chan error)
	go func() { closed <- c.Close() }()
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		if n, err := unix.Poll(ready, -1); n == 1 {
			break
		} else if err != unix.EINTR {
			t.Fatal(err)
		}
	}
	select {
	case err := <-closed:
		t.Errorf("it was closed, %v, while the descriptor was held", err)
	default:
	}
	c.Release()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, ok := c.Hold(); ok {
		t.Error("it can be held after Close")
	}
}
