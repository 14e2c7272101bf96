// A Conn as what DDP asks of the protocol below it (RFC 5041 §3).

package mpa

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
)

// What was appended under a larger MULPDU stays as it is when that shrinks.
//
// Claims: DDP-3-2
func TestShrinkingMULPDULeavesWhatWasAppended(t *testing.T) {
	a, b := tcpPair(t)
	out, in := NewConn(a, Params{Initiator: true, CRC: true, MaxULPDU: 9000}), NewConn(b, Params{CRC: true})
	want := [][]byte{pattern(9000, 1), pattern(8999, 2), pattern(128, 3)}
	out.Append(want[0], nil)
	out.Append(want[1][:18], [][]byte{want[1][18:]})
	out.mulpdu = 128
	if n := out.MULPDU(); n != 128 {
		t.Fatalf("MULPDU is %d, expected 128", n)
	}
	out.Append(want[2], nil)
	if _, err := flushAll(out); err != nil {
		t.Fatal(err)
	}
	if err := out.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	s := &collector{}
	if err := in.Receive(s); err != io.EOF {
		t.Fatal(err)
	}
	for i := range want {
		if i >= len(s.got) || !bytes.Equal(s.got[i], want[i]) {
			t.Fatalf("%d ULPDUs arrived, number %d differs", len(s.got), i)
		}
	}
}

// A ULPDU that is not wholly written is never counted as written, and Flush
// tells, from then on each time.
//
// Claims: DDP-3-3
func TestWhatCannotBeSentIsTold(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	c := NewConn(a, Params{Initiator: true, CRC: true})
	for i := range 3 {
		c.Append(pattern(100, i), nil)
	}
	go func() {
		_, _ = io.ReadFull(b, make([]byte, 110)) // 108 octets are the first FPDU
		b.Close()
	}()
	for range 2 {
		drained, err := flushAll(c)
		var e *Error
		if drained || !errors.As(err, &e) || e.Code != CodeClosed {
			t.Errorf("drained %t, %v; expected an error of a closed connection", drained, err)
		}
		if c.Written() != 1 || c.Appended() != 3 {
			t.Errorf("%d of %d written, expected 1 of 3", c.Written(), c.Appended())
		}
	}
}

// chopped passes on what is read in pieces of random size, from one octet on.
type chopped struct {
	net.Conn
	r *rand.Rand
}

func (c chopped) Read(p []byte) (int, error) {
	return c.Conn.Read(p[:1+c.r.IntN(len(p))])
}

func (c chopped) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		var m int
		m, err = c.Conn.Write(p[:1+c.r.IntN(len(p))])
		n, p = n+m, p[m:]
	}
	return n, err
}

// However the stream is cut up on its way, each ULPDU arrives once, with the
// length it had: pad of 0 to 3 octets, CRC and markers are not DDP's.
//
// Claims: DDP-3-4 DDP-3-8 DDP-3-13
func TestEachULPDUArrivesOnceWithItsLength(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		markers, crc := seed&1 != 0, seed&2 != 0
		a, b := net.Pipe()
		out := NewConn(chopped{a, r}, Params{Initiator: true, CRC: crc, SendMarkers: markers})
		in := NewConn(chopped{b, rand.New(rand.NewPCG(seed, 2))}, Params{CRC: crc, RecvMarkers: markers})
		var want [][]byte
		for i := range 40 {
			want = append(want, pattern(14+i, i))
		}
		// The same again: two that are equal are two.
		want = append(want, want[0], want[0], pattern(5000, 9))
		failed := make(chan error, 1)
		go func() {
			for _, u := range want {
				out.Append(u[:14], [][]byte{u[14:]})
			}
			_, err := flushAll(out)
			failed <- errors.Join(err, out.CloseWrite())
		}()
		s := &collector{}
		if err := in.Receive(s); err != io.EOF {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := nettest.Await(t, failed); err != nil {
			t.Fatal(err)
		}
		if len(s.got) != len(want) {
			t.Fatalf("seed %d: %d ULPDUs arrived, expected %d", seed, len(s.got), len(want))
		}
		for i := range want {
			if !bytes.Equal(s.got[i], want[i]) {
				t.Errorf("seed %d: ULPDU %d is %x, expected %x", seed, i, s.got[i], want[i])
			}
		}
	}
}

// No bit of a segment, of the pad behind it or of the CRC can change without
// being noticed.
//
// Claims: DDP-3-7
func TestEveryBitOfASegmentIsProtected(t *testing.T) {
	for _, n := range []int{14, 15, 16, 17, 600} {
		for _, markers := range []bool{false, true} {
			wire := encode(0, pattern(n, 1), markers, true)
			// A changed length or marker may be noticed as another error.
			first := 2
			if markers {
				first = 6
			}
			for bit := first * 8; bit < len(wire)*8; bit++ {
				if at := bit / 8; markers && at >= 512 && at < 516 {
					continue // the second marker
				}
				wire[bit/8] ^= 0x80 >> (bit % 8)
				got, err := decode(wire, markers, true)
				wire[bit/8] ^= 0x80 >> (bit % 8)
				if len(got) > 0 || !hasCode(err, CodeCRC) {
					t.Fatalf("ULPDU of %d octets, markers %t, bit %d: %d handed up, %v; expected a CRC error", n, markers, bit, len(got), err)
				}
			}
		}
	}
}

// After an error the receiving half hands up nothing more, whatever arrives;
// once the stream is reset nothing is sent either.
//
// Claims: DDP-3-9 DDP-3-10
func TestStreamInErrorTransfersNothingMore(t *testing.T) {
	eachMedium(t, func(t *testing.T, a, b net.Conn) {
		out, in := NewConn(a, Params{Initiator: true}), NewConn(b, Params{})
		sent := make(chan error, 1)
		go func() {
			for i := range 3 {
				out.Append(pattern(20, i), nil)
			}
			_, err := flushAll(out)
			sent <- err
		}()
		bad := errors.New("bad segment")
		s := &collector{refuse: bad}
		for range 2 {
			if err := in.Receive(s); err != bad || len(s.got) != 1 {
				t.Fatalf("%v and %d ULPDUs, expected %v and 1", err, len(s.got), bad)
			}
		}
		if err := in.Reset(); err != nil {
			t.Fatal(err)
		}
		nettest.Await(t, sent) // with an error or without: it may have left before
		in.Append([]byte("more"), nil)
		if drained, err := flushAll(in); drained || err == nil {
			t.Errorf("drained %t, %v after a reset, expected an error", drained, err)
		}
		if err := in.Receive(s); err != bad || len(s.got) != 1 {
			t.Errorf("%v and %d ULPDUs after a reset, expected %v and 1", err, len(s.got), bad)
		}
	})
}

// Claims: DDP-3-11
func TestGracefulEndIsToldFromALostConnection(t *testing.T) {
	for _, graceful := range []bool{true, false} {
		a, b := tcpPair(t)
		out, in := NewConn(a, Params{Initiator: true}), NewConn(b, Params{})
		end := out.Reset
		if graceful {
			end = out.CloseWrite
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		err := in.Receive(&collector{})
		if graceful && err != io.EOF || !graceful && !hasCode(err, CodeClosed) {
			t.Errorf("graceful %t: %v", graceful, err)
		}
	}
}

// counted counts how often the connection is closed.
type counted struct {
	net.Conn
	closed *int
}

func (c counted) Close() error { *c.closed++; return c.Conn.Close() }

// One connection carries one stream, and ends with it in any way.
//
// Claims: DDP-3-12
func TestConnectionEndsWithItsStream(t *testing.T) {
	for name, end := range map[string]func(c *Conn) error{
		"gracefully": func(c *Conn) error { return errors.Join(c.CloseWrite(), c.Drain(), c.Close()) },
		"in error":   (*Conn).Reset,
	} {
		t.Run(name, func(t *testing.T) {
			a, b := net.Pipe()
			defer b.Close()
			closed := 0
			if err := end(NewConn(counted{a, &closed}, Params{Initiator: true})); err != nil {
				t.Error(err)
			}
			if closed == 0 {
				t.Error("the connection was left open")
			}
			if _, err := b.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("the peer reads %v, expected the end", err)
			}
		})
	}
}
