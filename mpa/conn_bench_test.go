package mpa

// What a Conn moves, beside plain TCP in the same file.

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
)

// A discard takes ULPDUs as a protocol above would, into one buffer.
type discard struct {
	place  []byte
	octets int
}

func (d *discard) ULPDU(u []byte) error {
	d.octets += copy(d.place, u[18:])
	return nil
}

func (d *discard) Begin(head []byte, length int) (int, bool, error) { return 18, true, nil }

func (d *discard) Window(dst [][]byte, off int) ([][]byte, error) {
	return append(dst, d.place[off-18:][:int(binary.BigEndian.Uint32(d.place[len(d.place)-4:]))-off]), nil
}
func (d *discard) Release()   {}
func (d *discard) End() error { return nil }
func (d *discard) Idle()      {}

// placing wraps a discard so that it knows the length begun.
type placing struct {
	discard
	length  int
	windows [1][]byte
}

func (p *placing) Begin(head []byte, length int) (int, bool, error) {
	p.length = length
	return 18, true, nil
}

func (p *placing) Window(dst [][]byte, off int) ([][]byte, error) {
	return append(dst, p.place[off-18:p.length-18]), nil
}

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
	go func() { done <- in.Receive(&placing{discard: discard{place: make([]byte, MaxMULPDU)}}) }()
	list := make([][]byte, 1)
	for b.Loop() {
		for rest := payload; len(rest) > 0; {
			n := min(len(rest), out.MULPDU()-len(header))
			list[0] = rest[:n]
			rest = rest[n:]
			out.Append(header, list)
			if !out.Room() {
				if _, err := out.Flush(true); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	out.Flush(true)
	out.CloseWrite()
	if err := <-done; err != io.EOF {
		b.Fatal(err)
	}
}

var _ net.Conn
