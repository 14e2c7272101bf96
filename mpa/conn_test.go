package mpa

// A Conn as its user sees it, over TCP and over any net.Conn.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
)

// tcpPair is the two ends of a loopback connection.
func tcpPair(t testing.TB) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(); p.Close() })
	return d.(*net.TCPConn), p.(*net.TCPConn)
}

// A collector keeps copies of the ULPDUs that it is handed.
type collector struct {
	got    [][]byte
	refuse error // what ULPDU returns
	idles  int
}

func (c *collector) ULPDU(u []byte) error {
	c.got = append(c.got, bytes.Clone(u))
	return c.refuse
}
func (c *collector) Begin([]byte, int) (int, bool, error) { return 0, false, nil }
func (c *collector) Window(dst [][]byte, _ int) ([][]byte, error) {
	return dst, errors.New("not asked for")
}
func (c *collector) Release()   {}
func (c *collector) End() error { return errors.New("nothing begun") }
func (c *collector) Idle()      { c.idles++ }

// A placer has the Conn place the ULPDUs that it is asked about.
type placer struct {
	collector
	skip   int
	place  []byte
	placed int
	held   bool
	gone   error // what Window returns
}

func (p *placer) Begin(head []byte, length int) (int, bool, error) {
	p.place = make([]byte, length)
	copy(p.place, head[:p.skip])
	return p.skip, true, nil
}

func (p *placer) Window(dst [][]byte, off int) ([][]byte, error) {
	if p.gone != nil {
		return dst, p.gone
	}
	if p.held {
		return dst, errors.New("window asked for while one is held")
	}
	p.held = true
	// Two pieces, as memory may have.
	mid := off + (len(p.place)-off)/3
	return append(dst, p.place[off:mid], p.place[mid:]), nil
}

func (p *placer) Release() { p.held = false }

func (p *placer) End() error {
	p.got = append(p.got, p.place)
	p.placed++
	return nil
}

func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return b
}

func TestULPDUsArriveWholeAndInOrder(t *testing.T) {
	terms := []Params{{}, {CRC: true}, {SendMarkers: true, RecvMarkers: true}, {CRC: true, SendMarkers: true, RecvMarkers: true}}
	for _, p := range terms {
		for _, medium := range []string{"tcp", "pipe"} {
			t.Run(fmt.Sprintf("%s/crc=%t/markers=%t", medium, p.CRC, p.SendMarkers), func(t *testing.T) {
				var a, b net.Conn
				if medium == "tcp" {
					a, b = tcpPair(t)
				} else {
					a, b = net.Pipe()
				}
				p.Revision, p.Initiator = Revision1, true
				out, in := NewConn(a, p), NewConn(b, p)
				var want [][]byte
				for i := range 300 {
					n := []int{1, 2, 3, 4, 18, 100, 511, 1500, 4096, 32000, 64768}[i%11]
					want = append(want, pattern(n, i))
				}
				done := make(chan error)
				go func() {
					for _, u := range want {
						h := min(len(u), 18)
						for !out.Room() {
							if _, err := out.Flush(true); err != nil {
								done <- err
								return
							}
						}
						out.Append(u[:h], [][]byte{u[h:]})
					}
					_, err := out.Flush(true)
					done <- errors.Join(err, out.CloseWrite())
				}()
				s := &placer{skip: 14}
				if err := in.Receive(s); err != io.EOF {
					t.Errorf("Receive: %v, expected EOF", err)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				if len(s.got) != len(want) {
					t.Fatalf("%d ULPDUs arrived, expected %d", len(s.got), len(want))
				}
				for i := range want {
					if !bytes.Equal(s.got[i], want[i]) {
						t.Fatalf("ULPDU %d of %d octets differs", i, len(want[i]))
					}
				}
				if out.Written() != 300 || in.Stats().FPDUsIn != 300 {
					t.Errorf("counted %d out, %d in, expected 300", out.Written(), in.Stats().FPDUsIn)
				}
				t.Logf("placed %d; out %+v in %+v", s.placed, out.Stats(), in.Stats())
			})
		}
	}
}
