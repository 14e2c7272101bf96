// What a Conn moves, beside plain TCP in the same file.

package mpa

import (
	"fmt"
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/mpa/internal/fpdu"
)

// BenchmarkStream moves messages of some size one way, in FPDUs as long as the
// connection likes, a batch a flush; the figure is of payload.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{64, 4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%d/tcp", size), func(b *testing.B) { benchTCP(b, size) })
		for _, crc := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/crc=%t", size, crc), func(b *testing.B) {
				benchConn(b, size, Params{Revision: Revision1, CRC: crc, Initiator: true})
			})
		}
	}
}

func benchTCP(b *testing.B, size int) {
	out, in := tcpPair(b)
	reno(b, out)
	payload := pattern(size, 1)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	done := make(chan error)
	go func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{in}, make([]byte, max(size, 256<<10)))
		done <- err
	}()
	for b.Loop() {
		if _, err := out.Write(payload); err != nil {
			b.Fatal(err)
		}
	}
	out.CloseWrite()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

func benchConn(b *testing.B, size int, p Params) {
	x, y := tcpPair(b)
	reno(b, x)
	out, in := NewConn(x, p), NewConn(y, p)
	payload := pattern(size, 1)
	header := pattern(18, 1)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	done := make(chan error)
	go func() { done <- in.Receive(&placing{place: make([]byte, MaxMULPDU)}) }()
	list := make([][]byte, 1)
	for b.Loop() {
		for rest := payload; len(rest) > 0; {
			n := min(len(rest), out.MULPDU()-len(header))
			list[0] = rest[:n]
			rest = rest[n:]
			out.Append(header, list)
			if !out.Room() {
				if _, err := flushAll(out); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	flushAll(out)
	out.CloseWrite()
	if err := <-done; err != io.EOF {
		b.Fatal(err)
	}
}

// reno sets a congestion control that loopback does not slow down.
func reno(b testing.TB, c *net.TCPConn) {
	b.Helper()
	rc, err := c.SyscallConn()
	if err != nil {
		b.Fatal(err)
	}
	if err := rc.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
	}); err != nil {
		b.Fatal(err)
	}
	if err != nil {
		b.Logf("reno congestion control: %v", err)
	}
}

// BenchmarkCopyLimit shows from which length on a piece of payload is better
// referred to than copied, in batches, without CRC and with it.
func BenchmarkCopyLimit(b *testing.B) {
	for _, crc := range []bool{false, true} {
		for _, n := range []int{256, 512, 1024, 2048, 4096, 8192, 16384} {
			for _, refer := range []bool{false, true} {
				b.Run(fmt.Sprintf("%d/crc=%t/refer=%t", n, crc, refer), func(b *testing.B) { benchCopyLimit(b, n, crc, refer) })
			}
		}
	}
}

func benchCopyLimit(b *testing.B, n int, crc, refer bool) {
	x, y := tcpPair(b)
	reno(b, x)
	go io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{y}, make([]byte, 1<<20))
	t := NewConn(x, Params{Initiator: true}).transport
	batch := fpdu.Batch{CRC: crc}
	if refer {
		batch.Refer = 1
	}
	header := pattern(18, 1)
	const set = 64
	var memory [set][][]byte // more than the first cache holds
	for i := range memory {
		memory[i] = [][]byte{pattern(n, i)}
	}
	b.SetBytes(int64(n))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		batch.Add(18+n, header, memory[i%set], batch.Refers(18+n))
		i++
		if !batch.Room() {
			if err := t.flush(&batch, nil, true); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// An echo answers each ULPDU at once.
type echo struct {
	placing
	c *Conn
}

func (e *echo) ULPDU(u []byte) error {
	e.c.Append(u, nil)
	_, err := flushAll(e.c)
	return err
}

// A pinger sends another ULPDU when one has come, n in all.
type pinger struct {
	echo
	n int
}

func (p *pinger) ULPDU(u []byte) error {
	if p.n--; p.n < 0 {
		return io.EOF
	}
	return p.echo.ULPDU(u)
}

// BenchmarkRoundTrip is a message of 64 octets to and fro between two
// goroutines of one process, which a poller shares with its peer.
func BenchmarkRoundTrip(b *testing.B) {
	b.Run("tcp", func(b *testing.B) {
		x, y := tcpPair(b)
		go func() {
			buf := make([]byte, 64)
			for {
				if _, err := io.ReadFull(y, buf); err != nil {
					return
				}
				y.Write(buf)
			}
		}()
		buf := make([]byte, 64)
		b.SetBytes(2 * 64)
		b.ReportAllocs()
		for b.Loop() {
			x.Write(buf)
			if _, err := io.ReadFull(x, buf); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("mpa", func(b *testing.B) {
		b.SetBytes(2 * 64)
		b.ReportAllocs()
		x, y := tcpPair(b)
		p := Params{Initiator: true, CRC: true}
		here, there := NewConn(x, p), NewConn(y, p)
		go there.Receive(&echo{c: there})
		ping := &pinger{echo: echo{c: here}, n: b.N}
		if err := ping.echo.ULPDU(pattern(64, 1)); err != nil {
			b.Fatal(err)
		}
		if err := here.Receive(ping); err != io.EOF {
			b.Fatal(err)
		}
	})
}
