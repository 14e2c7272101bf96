package socket

import (
	"bytes"
	"os"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"
)

// pair is two ends that do not wait.
func pair(t *testing.T) (a, b uintptr) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(fds[0]), unix.Close(fds[1]) })
	return uintptr(fds[0]), uintptr(fds[1])
}

// Pieces arrive in order, whether they are few or many, and those of no octets do no harm.
func TestPiecesPassInOrder(t *testing.T) {
	a, b := pair(t)
	var v Vector
	for _, pieces := range [][]string{{"one"}, {"one", "", "two"}, {"a", "b", "", "c", "d", "e", "f"}} {
		var out, in [][]byte
		for _, p := range pieces {
			out = append(out, []byte(p))
			in = append(in, make([]byte, len(p)))
		}
		want := bytes.Join(out, nil)
		if n, errno := v.Write(a, out); n != len(want) || errno != 0 {
			t.Fatalf("%q: %d octets written, %v", pieces, n, errno)
		}
		if !Readable(b) {
			t.Errorf("%q: nothing to be read", pieces)
		}
		if n, errno := v.Read(b, in); n != len(want) || errno != 0 || !bytes.Equal(bytes.Join(in, nil), want) {
			t.Errorf("%q: %d octets %q read, %v", pieces, n, in, errno)
		}
	}
}

// EAGAIN, the end, and memory that faults are reported.
func TestNothingWaits(t *testing.T) {
	a, b := pair(t)
	var v Vector
	p := make([]byte, 64<<10)
	if _, errno := Read(b, p); errno != unix.EAGAIN || Readable(b) {
		t.Errorf("nothing to be read: %v", errno)
	}
	for errno := error(nil); errno != unix.EAGAIN; {
		if _, e := v.Write(a, [][]byte{p, p}); e != 0 {
			errno = e
		}
	}
	for {
		if _, errno := v.Read(b, [][]byte{p}); errno != 0 {
			break
		}
	}
	_ = unix.Shutdown(int(a), unix.SHUT_WR)
	if n, errno := Read(b, p); n != 0 || errno != 0 || !Readable(b) {
		t.Errorf("the end: %d octets, %v", n, errno)
	}
}

// A peer that is gone is an error and no signal: in a library, as the drop-in libibverbs is
// one, the signal would be its program's.
func TestAPeerThatIsGoneRaisesNoSignal(t *testing.T) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, unix.SIGPIPE, unix.SIGWINCH)
	defer signal.Stop(signals)
	for _, pieces := range [][][]byte{{{1}}, {{1}, {2}}} {
		a, b := pair(t)
		if err := unix.Shutdown(int(b), unix.SHUT_RDWR); err != nil {
			t.Fatal(err)
		}
		if n, errno := new(Vector).Write(a, pieces); n != 0 || errno != unix.EPIPE {
			t.Errorf("%d pieces: %d octets, %v", len(pieces), n, errno)
		}
	}
	// One of a higher number that is raised now comes behind.
	if err := unix.Kill(unix.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	if s := <-signals; s != unix.SIGWINCH {
		t.Errorf("signal %v", s)
	}
}
