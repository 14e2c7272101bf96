package rpctcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/oncrpc"
)

// echo answers every call with its arguments.
var echo = oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	e := r.Accept(len(r.Args))
	e.Fixed(r.Args)
	return e.Finish()
})

// newServer makes a server that ends with the test, after which it has given
// back all its memory.
func newServer(t testing.TB, cfg ServerConfig) *Server {
	t.Helper()
	s, err := NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		checkPools(t, &s.setting)
	})
	return s
}

// newClient makes a client that ends with the test, after which it has given back
// all its memory.
func newClient(t testing.TB, cfg ClientConfig) *Client {
	t.Helper()
	c, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		checkPools(t, &c.setting)
	})
	return c
}

func checkPools(t testing.TB, s *setting) {
	t.Helper()
	for _, m := range []*fairness.Memory{s.in, s.out, s.own} {
		if n := m.Used(); n != 0 {
			t.Errorf("%d octets of messages have not been given back", n)
		}
	}
}

// A peer is a hand-made end of a connection.
type peer struct {
	*iwarptest.Conn
	t   testing.TB
	in  *oncrpc.RecordReader
	out *oncrpc.RecordWriter
}

func newPeer(t testing.TB, c *iwarptest.Conn) *peer {
	return &peer{Conn: c, t: t, in: oncrpc.NewRecordReader(c, oncrpc.RecordLimits{}), out: oncrpc.NewRecordWriter(c, 0)}
}

// callOf is a whole call message.
func callOf(xid uint32, args string) []byte {
	c := oncrpc.Call{XID: xid, Prog: 7, Vers: 1, Proc: 1}
	b, err := c.Append(nil)
	if err != nil {
		panic(err)
	}
	return append(b, args...)
}

// replyOf is a whole reply message.
func replyOf(xid uint32, results string) []byte {
	r := oncrpc.Reply{XID: xid}
	b, err := r.Append(nil)
	if err != nil {
		panic(err)
	}
	return append(b, results...)
}

// record puts a mark before a message.
func record(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, 1<<31|uint32(len(message))), message...)
}

// send sends a record; what becomes of it does not matter.
func (p *peer) send(message []byte) { _ = p.out.WriteRecord(message) }

// receive returns the next record, or nil where the connection ends.
func (p *peer) receive() []byte {
	p.t.Helper()
	b, err := p.in.AppendRecord(nil)
	if err != nil {
		return nil
	}
	return b
}

// expect checks the next record.
func (p *peer) expect(want []byte) {
	p.t.Helper()
	if got := p.receive(); !bytes.Equal(got, want) {
		p.t.Errorf("received % x, want % x", got, want)
	}
}

// xid is the XID of the next record.
func (p *peer) xid() uint32 {
	p.t.Helper()
	b := p.receive()
	if len(b) < 4 {
		p.t.Errorf("received % x, want a call", b)
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

// serveOne has a server serve a connection. The error is that of ServeConn.
func serveOne(t testing.TB, s *Server) (p *peer, done <-chan error) {
	ours, theirs := iwarptest.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeConn(context.Background(), theirs) }()
	return newPeer(t, ours), ended
}

// A dialer hands out connections to hand-made servers.
type dialer struct {
	t     testing.TB
	peers chan *peer // the other ends
	fail  error      // instead of a connection
}

func newDialer(t testing.TB) *dialer { return &dialer{t: t, peers: make(chan *peer, 100)} }

func (d *dialer) dial(context.Context) (net.Conn, error) {
	if d.fail != nil {
		return nil, d.fail
	}
	ours, theirs := iwarptest.Pipe()
	d.peers <- newPeer(d.t, theirs)
	return ours, nil
}

// A result is what a call came back with.
type result struct {
	results []byte
	err     error
}

// call makes a call in a goroutine of its own.
func call(ctx context.Context, c oncrpc.Caller, args string) <-chan result {
	done := make(chan result, 1)
	go func() {
		r, err := c.Call(ctx, &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 7, Vers: 1, Proc: 1}, Args: [][]byte{[]byte(args)}})
		if err != nil {
			done <- result{err: err}
			return
		}
		results := bytes.Clone(r.Results)
		r.Release()
		done <- result{results: results}
	}()
	return done
}

// want checks what a call came back with.
func (r result) want(t testing.TB, results string, err error) {
	t.Helper()
	if string(r.results) != results || !errors.Is(r.err, err) {
		t.Errorf("the call returned %q, %v, want %q, %v", r.results, r.err, results, err)
	}
}

// drain reads what comes until the connection ends.
func (p *peer) drain() { _, _ = io.Copy(io.Discard, p.Conn) }
