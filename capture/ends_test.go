package capture

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
)

func TestEndsAreRecordedAsTheyCame(t *testing.T) {
	open := []string{">S", "<SA", ">A"}
	for _, c := range []struct {
		name string
		do   func(c net.Conn, peer *iwarptest.Conn)
		want []string
	}{
		{"nothing said", func(c net.Conn, _ *iwarptest.Conn) { c.Close() }, []string{">FA", "<A"}},
		{"closed twice", func(c net.Conn, _ *iwarptest.Conn) { c.Close(); c.Close() }, []string{">FA", "<A"}},
		{"half closed, then closed", func(c net.Conn, peer *iwarptest.Conn) {
			c.(halfCloser).CloseWrite()
			say(t, peer, "late")
			hear(t, c, "late")
			peer.CloseWrite()
			c.Read(make([]byte, 1))
			c.Read(make([]byte, 1)) // the end again is no other end
			c.Close()
		}, []string{">FA", "<A", "<FA", ">A"}},
		{"reset by the peer", func(c net.Conn, peer *iwarptest.Conn) {
			say(t, c, "x")
			peer.Reset()
			c.Read(make([]byte, 1))
			c.Close()
		}, []string{"<RA"}},
		{"reset seen by a write", func(c net.Conn, peer *iwarptest.Conn) {
			say(t, c, "x")
			peer.Reset()
			c.Write(nil)
			c.Write([]byte("y"))
			c.Close()
		}, []string{"<RA"}},
		{"reset by SetLinger", func(c net.Conn, peer *iwarptest.Conn) {
			say(t, c, "x")
			c.(interface{ SetLinger(int) error }).SetLinger(0)
			c.Close()
		}, []string{">RA"}},
		{"reset below the wrapper", func(c net.Conn, peer *iwarptest.Conn) {
			say(t, c, "x")
			inner := c.(interface{ NetConn() net.Conn }).NetConn().(*iwarptest.Conn)
			inner.Reset()
			c.Close()
		}, []string{">RA"}},
	} {
		a, b := iwarptest.Pipe()
		k := assemble(t, record(t, func(w *Writer) { c.do(Conn(a, w), b) }))[0]
		if want := append(slices.Clone(open), c.want...); !slices.Equal(k.flags, want) {
			t.Errorf("%s: %q, want %q", c.name, k.flags, want)
		}
	}
}

func TestWhatIsWrittenAfterTheEndIsNotRecorded(t *testing.T) {
	a, _ := iwarptest.Pipe()
	k := assemble(t, record(t, func(w *Writer) {
		c := Conn(a, w)
		say(t, c, "before")
		c.(halfCloser).CloseWrite()
		if _, err := c.Write([]byte("after")); err == nil {
			t.Error("written after the end")
		}
		c.Close()
	}))[0]
	if got := string(k.sent[k.client]); got != "before" {
		t.Errorf("recorded %q", got)
	}
}

func TestCloseWriteIsThereOnlyIfItWorks(t *testing.T) {
	w, err := NewWriter(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := net.Pipe()
	half, _ := iwarptest.Pipe()
	for _, c := range []struct {
		name string
		nc   net.Conn
		want bool
	}{{"net.Pipe", whole, false}, {"memory", half, true}, {"tls", tls.Client(half, &tls.Config{}), true}} {
		got := Conn(c.nc, w)
		if _, ok := got.(halfCloser); ok != c.want {
			t.Errorf("%s: CloseWrite is there: %v", c.name, ok)
		}
		if got.(interface{ NetConn() net.Conn }).NetConn() != c.nc {
			t.Errorf("%s: NetConn is another", c.name)
		}
	}
	if err := Conn(whole, w).(interface{ SetLinger(int) error }).SetLinger(0); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("SetLinger of net.Pipe: %v", err)
	}
}
