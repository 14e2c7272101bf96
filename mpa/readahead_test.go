// The read-ahead buffer: what is there between one read and the next.

package mpa

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"
)

// put reads octets into the room of a.
func put(a *readAhead, octets []byte) { a.grown(copy(a.room(), octets)) }

func TestAReaderAtRestHasNoBuffer(t *testing.T) {
	a := newReadAhead(nil, 0)
	put(&a, pattern(100, 1))
	a.rest()
	if a.buf == nil || !bytes.Equal(a.unread(), pattern(100, 1)) {
		t.Fatal("octets that were not handed up are gone")
	}
	a.start = 100
	a.rest()
	if a.buf != nil || len(a.unread()) != 0 {
		t.Errorf("it rests with a buffer of %d octets, %d of them unread", len(a.buf), len(a.unread()))
	}
	put(&a, pattern(100, 2))
	if !bytes.Equal(a.unread(), pattern(100, 2)) {
		t.Error("after it rested it has not what was read")
	}
}

func TestTheNextBufferIsLargeIfTheLastWasFilledAndSmallIfLittleOfItWasUsed(t *testing.T) {
	a := newReadAhead(nil, 1<<20)
	for i, octets := range []int{0, 16 << 10, 32 << 10, 64 << 10, 20, 16 << 10, 20, 20, 20, 20, 20} {
		n := []int{0, 16, 32, 64, 128, 64, 64, 32, 16, 16, 16}[i] << 10
		put(&a, pattern(octets, i))
		if i > 0 && len(a.buf) != n {
			t.Errorf("read %d, of %d octets, is into a buffer of %d, expected %d", i, octets, len(a.buf), n)
		}
		a.start = a.end
		a.rest()
	}
}

// What was read before the stream began may be of any length, and is the
// consumer's memory.
func TestEarlyOctetsComeFirst(t *testing.T) {
	for _, n := range []int{0, 1, 100, firstReadBuffer, 60000} {
		early := pattern(n, 1)
		a := newReadAhead(early[:n:n], 1)
		put(&a, pattern(100, 2))
		if want := append(pattern(n, 1), pattern(100, 2)...); !bytes.Equal(a.unread(), want) {
			t.Errorf("%d early octets: %d unread, expected %d, or they differ", n, len(a.unread()), len(want))
		}
	}
	a := newReadAhead(pattern(3<<20, 1), 1)
	a.start = a.end // all was handed up
	if put(&a, pattern(100, 2)); len(a.buf) != firstReadBuffer {
		t.Errorf("what follows early octets is in a buffer of %d octets, expected %d", len(a.buf), firstReadBuffer)
	}
}

func TestAStreamThatWaitsForTheNextFrameHasNoBuffer(t *testing.T) {
	_, wire, ends := wireOf(Params{CRC: true}, 64, 60000, 500, 506, 64)
	synctest.Test(t, func(t *testing.T) {
		x, y := net.Pipe()
		c := NewConn(y, Params{CRC: true, Initiator: true})
		s := &collector{}
		go func() { _ = c.Receive(s) }()
		from := 0
		for i, end := range ends {
			if _, err := x.Write(wire[from:end]); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if from = end; len(s.got) != i+1 || c.reader.buf != nil && !c.transport.(*stream).more {
				t.Errorf("after frame %d there are %d ULPDUs, and a buffer of %d octets", i, len(s.got), len(c.reader.buf))
			}
		}
		_ = x.Close()
		synctest.Wait()
		if err := c.Receive(s); err != io.EOF {
			t.Error(err)
		}
	})
}
