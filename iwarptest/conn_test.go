package iwarptest

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func write(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
		t.Fatalf("wrote %d of %d octets: %v", n, len(s), err)
	}
}

// reads reads until an error, and returns what each Read got.
func reads(c net.Conn) (got []string, err error) {
	buf := make([]byte, 1000)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return got, err
		}
		got = append(got, string(buf[:n]))
	}
}

func TestReadsComeInTheSizesOrdered(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes func() int
		want  []string
	}{
		{"any, writes merged", nil, []string{"hello world"}},
		{"one", Sizes(1), []string{"h", "e", "l", "l", "o", " ", "w", "o", "r", "l", "d"}},
		{"in turn", Sizes(3, 1), []string{"hel", "l", "o w", "o", "rld"}},
		{"at least one", Sizes(0, 10), []string{"h", "ello world"}},
	} {
		a, b := Pipe()
		b.ReadSizes(c.sizes)
		write(t, a, "hello ")
		write(t, a, "world")
		a.CloseWrite()
		if got, err := reads(b); !slices.Equal(got, c.want) || err != io.EOF {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

func TestRandomSizesRepeatThemselves(t *testing.T) {
	one, two := RandomSizes(5, 9), RandomSizes(5, 9)
	seen := map[int]bool{}
	for range 200 {
		n := one()
		if n < 1 || n > 9 || n != two() {
			t.Fatalf("size %d", n)
		}
		seen[n] = true
	}
	if len(seen) != 9 {
		t.Errorf("%d sizes of 9 came up", len(seen))
	}
}

func TestFaultsHitTheOctetsOrdered(t *testing.T) {
	const sent = "abcdefghij"
	for _, c := range []struct {
		name  string
		order func(c *Conn)
		got   string
		err   error
	}{
		{"none", func(*Conn) {}, sent, io.EOF},
		{"corrupt first and last", func(c *Conn) { c.Corrupt(0, 0x20); c.Corrupt(9, 0x20) }, "AbcdefghiJ", io.EOF},
		{"corrupt at the seam", func(c *Conn) { c.Corrupt(3, 0x20); c.Corrupt(4, 0x20) }, "abcDEfghij", io.EOF},
		{"end at once", func(c *Conn) { c.FinAfter(0) }, "", io.EOF},
		{"end in the first write", func(c *Conn) { c.FinAfter(2) }, "ab", io.EOF},
		{"end at the seam", func(c *Conn) { c.FinAfter(4) }, "abcd", io.EOF},
		{"end in the second write", func(c *Conn) { c.FinAfter(9) }, "abcdefghi", io.EOF},
		{"reset at once", func(c *Conn) { c.ResetAfter(0) }, "", syscall.ECONNRESET},
		{"reset in the second write", func(c *Conn) { c.ResetAfter(5) }, "abcde", syscall.ECONNRESET},
	} {
		a, b := Pipe()
		c.order(a)
		write(t, a, sent[:4])
		write(t, a, sent[4:])
		a.CloseWrite()
		if n := a.Written(); n != 10 {
			t.Errorf("%s: %d octets written", c.name, n)
		}
		got, err := io.ReadAll(struct{ io.Reader }{b})
		if c.err == io.EOF && err == nil {
			err = io.EOF
		}
		if string(got) != c.got || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
		if _, err := b.Write([]byte("x")); (err == nil) != (c.err == io.EOF) {
			t.Errorf("%s: the other direction: %v", c.name, err)
		}
	}
}

func TestCutLateComesAfterWhatWasWritten(t *testing.T) {
	a, b := Pipe()
	write(t, a, "abc")
	a.FinAfter(1)
	if got, err := reads(b); !slices.Equal(got, []string{"abc"}) || err != io.EOF {
		t.Errorf("%q, %v", got, err)
	}
	write(t, a, "def")
	if got, err := reads(b); len(got) != 0 || err != io.EOF {
		t.Errorf("%q, %v, after the end", got, err)
	}
}

func TestHalfCloseLeavesTheOtherHalf(t *testing.T) {
	a, b := Pipe()
	write(t, a, "request")
	a.CloseWrite()
	if _, err := a.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write after CloseWrite: %v", err)
	}
	if got, err := reads(b); !slices.Equal(got, []string{"request"}) || err != io.EOF {
		t.Errorf("%q, %v", got, err)
	}
	write(t, b, "reply")
	b.Close()
	if got, err := reads(a); !slices.Equal(got, []string{"reply"}) || err != io.EOF {
		t.Errorf("%q, %v", got, err)
	}
}

func TestEndsShowAsTheyDoWithTCP(t *testing.T) {
	for _, c := range []struct {
		name     string
		end      func(a *Conn) error
		unread   bool // a has not read what b wrote
		read     string
		readErr  error
		writeErr error // what b's writes get
	}{
		{"close", (*Conn).Close, false, "data", io.EOF, syscall.ECONNRESET},
		{"close one by one", func(a *Conn) error { return errors.Join(a.CloseWrite(), a.Close()) }, false, "data", io.EOF, syscall.ECONNRESET},
		{"close with unread input", (*Conn).Close, true, "data", syscall.ECONNRESET, syscall.ECONNRESET},
		{"reset", (*Conn).Reset, false, "", syscall.ECONNRESET, syscall.ECONNRESET},
		{"reset while held", func(a *Conn) error { a.Hold(); return a.Reset() }, false, "", syscall.ECONNRESET, syscall.ECONNRESET},
		{"close without linger", func(a *Conn) error { return errors.Join(a.SetLinger(0), a.Close()) }, false, "", syscall.ECONNRESET, syscall.ECONNRESET},
	} {
		a, b := Pipe()
		write(t, b, "input")
		if !c.unread {
			if _, err := io.ReadFull(a, make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
		}
		write(t, a, "data")
		if err := c.end(a); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := c.end(a); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s, twice: %v", c.name, err)
		}
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: own read: %v", c.name, err)
		}
		if _, err := a.Write(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: own write: %v", c.name, err)
		}
		if _, err := b.Write(make([]byte, 1)); !errors.Is(err, c.writeErr) {
			t.Errorf("%s: peer's write: %v", c.name, err)
		}
		got, err := reads(b)
		if strings.Join(got, "") != c.read || !errors.Is(err, c.readErr) {
			t.Errorf("%s: peer read %q, %v", c.name, got, err)
		}
	}
}

func TestWriteWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := BufferedPipe(4)
		done := make(chan error, 1)
		go func() {
			_, err := a.Write([]byte("abcdefghij"))
			done <- err
		}()
		synctest.Wait()
		if n := b.Unread(); n != 4 {
			t.Errorf("%d octets in a buffer of 4", n)
		}
		got := make([]byte, 10)
		if _, err := io.ReadFull(b, got); err != nil || string(got) != "abcdefghij" {
			t.Errorf("%q, %v", got, err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestHeldOctetsArriveMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := BufferedPipe(4)
		a.Hold()
		write(t, a, "ab")
		write(t, a, "cd")
		var got []byte
		go func() {
			got = make([]byte, 10)
			n, _ := b.Read(got)
			got = got[:n]
		}()
		blocked := make(chan struct{})
		go func() {
			_, _ = a.Write([]byte("e"))
			close(blocked)
		}()
		synctest.Wait()
		select {
		case <-blocked:
			t.Error("written beyond the buffer")
		default:
		}
		if len(got) != 10 {
			t.Errorf("read %q in spite of Hold", got)
		}
		a.Resume()
		<-blocked
		synctest.Wait()
		if string(got) != "abcd" {
			t.Errorf("read %q", got)
		}
	})
}

func TestDelayedOctetsArriveThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe()
		start := time.Now()
		a.Delay(3 * time.Second)
		write(t, a, "ab")
		time.Sleep(time.Second)
		write(t, a, "cd")
		a.Close()
		for _, c := range []struct {
			want string
			at   time.Duration
			err  error
		}{{"ab", 3 * time.Second, nil}, {"cd", 4 * time.Second, nil}, {"", 4 * time.Second, io.EOF}} {
			buf := make([]byte, 10)
			n, err := b.Read(buf)
			if string(buf[:n]) != c.want || time.Since(start) != c.at || err != c.err {
				t.Errorf("%q after %v, %v; want %q after %v", buf[:n], time.Since(start), err, c.want, c.at)
			}
		}
	})
}

func TestDeadlinesEndWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := BufferedPipe(1)
		write(t, a, "x")
		for _, c := range []struct {
			name string
			set  func(time.Time) error
			wait func() (int, error)
			wake func()
		}{
			{"read", a.SetReadDeadline, func() (int, error) { return a.Read(make([]byte, 1)) }, func() { write(t, b, "y") }},
			{"write", a.SetWriteDeadline, func() (int, error) { return a.Write([]byte("z")) }, func() { _, _ = b.Read(make([]byte, 1)) }},
		} {
			start := time.Now()
			_ = c.set(start.Add(time.Minute))
			_, err := c.wait()
			var timeout net.Error
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() || time.Since(start) != time.Minute {
				t.Errorf("%s: %v after %v", c.name, err, time.Since(start))
			}
			// A deadline that is past counts, too; one that is moved ends the wait.
			if _, err = c.wait(); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s after the deadline: %v", c.name, err)
			}
			_ = c.set(time.Time{})
			done := make(chan error, 1)
			go func() {
				_, err := c.wait()
				done <- err
			}()
			synctest.Wait()
			_ = a.SetDeadline(time.Now())
			if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s while the deadline moves: %v", c.name, err)
			}
			_ = a.SetDeadline(time.Time{})
			c.wake()
			if n, err := c.wait(); n != 1 || err != nil {
				t.Errorf("%s after the deadline has gone: %v", c.name, err)
			}
		}
	})
}

func TestEndsWakeWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, own := range []bool{true, false} {
			a, b := BufferedPipe(1)
			write(t, a, "x")
			errs := make(chan error, 2)
			go func() { _, err := a.Read(make([]byte, 1)); errs <- err }()
			go func() { _, err := a.Write([]byte("y")); errs <- err }()
			synctest.Wait()
			want := syscall.ECONNRESET
			if own {
				a.Close()
			} else {
				b.Reset()
			}
			for range 2 {
				if err := <-errs; own && !errors.Is(err, net.ErrClosed) || !own && !errors.Is(err, want) {
					t.Errorf("closed by own side %v: %v", own, err)
				}
			}
		}
	})
}
