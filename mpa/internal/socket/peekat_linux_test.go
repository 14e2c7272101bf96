package socket

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A peek at a position finds what is there, and leaves it to be read.
func TestAPeekAtAPositionReadsNothing(t *testing.T) {
	a, b := pair(t)
	p := make([]byte, 3)
	if _, errno := PeekAt(b, 0, p); errno != unix.EAGAIN {
		t.Fatalf("nothing to be read: %v", errno)
	}
	var v Vector
	if _, errno := v.Write(a, [][]byte{[]byte("abcdefgh")}); errno != 0 {
		t.Fatal(errno)
	}
	for _, c := range []struct {
		at   int
		want string
	}{{0, "abc"}, {5, "fgh"}, {1, "bcd"}, {6, "gh"}, {0, "abc"}} {
		if n, errno := PeekAt(b, c.at, p); errno != 0 || string(p[:n]) != c.want {
			t.Errorf("at %d: %q, %v, expected %q", c.at, p[:n], errno, c.want)
		}
	}
	if _, errno := PeekAt(b, 8, p); errno != unix.EAGAIN {
		t.Errorf("behind the end: %v", errno)
	}
	if n, errno := Read(b, p); errno != 0 || string(p[:n]) != "abc" {
		t.Errorf("read %q, %v", p[:n], errno)
	}
	if n, errno := PeekAt(b, 1, p); errno != 0 || string(p[:n]) != "efg" {
		t.Errorf("after a read: %q, %v", p[:n], errno)
	}
}
