package rpcrdma

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// patience limits waits. A passing test does not come near it.
const patience = 20 * time.Second

// closeTimeout is how long a stream may take to end if its peer does not end it.
const closeTimeout = 100 * time.Millisecond

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// A serving is a server under test. At the end it must have freed everything.
type serving struct {
	t      testing.TB
	rnic   *verbs.RNIC
	server *Server
	ended  sync.WaitGroup // connections
}

// serve starts a server, for EXCHANGE unless cfg has another Handler.
func serve(t testing.TB, cfg ServerConfig) *serving {
	t.Helper()
	return serveWithin(t, verbs.Limits{}, cfg)
}

// serveWithin starts a server whose RNIC has limits.
func serveWithin(t testing.TB, limits verbs.Limits, cfg ServerConfig) *serving {
	t.Helper()
	if cfg.Handler == nil {
		cfg.Handler = oncrpc.Mux{{Prog: exchange.Program, Low: exchange.Version, High: exchange.Version, Handler: oncrpc.HandlerFunc(serveExchange)}}
	}
	if cfg.Bindings == nil {
		cfg.Bindings = exchange.Bindings
	}
	s := &serving{t: t, rnic: must(verbs.Open(verbs.Config{CloseTimeout: closeTimeout, Limits: limits}))(t)}
	s.server = must(NewServer(s.rnic, cfg))(t)
	t.Cleanup(s.close)
	return s
}

// close ends the server, and checks that nothing is left.
func (s *serving) close() {
	if err := s.server.Close(); err != nil {
		s.t.Errorf("closing the server: %v", err)
	}
	s.ended.Wait()
	if u := s.rnic.Usage(); u != (verbs.Usage{}) {
		s.t.Errorf("the server has left %+v", u)
	}
	_ = s.rnic.Close()
}

// connect connects a peer with private data d, nil for none.
func (s *serving) connect(d *wire.PrivateData, cfg verbs.QPConfig) *testPeer {
	s.t.Helper()
	a, b := iwarptest.BufferedPipe(1 << 20)
	return s.connectOver(a, b, d, cfg)
}

func (s *serving) connectOver(a, b net.Conn, d *wire.PrivateData, cfg verbs.QPConfig) *testPeer {
	s.t.Helper()
	over := make(chan error, 1)
	s.ended.Go(func() {
		req, err := cm.Receive(context.Background(), b, mpa.Config{})
		if err == nil {
			err = s.server.ServeConn(req)
		}
		over <- err
	})
	p := newTestPeer(s.t, cfg)
	p.over = over
	params := cm.Params{}
	if d != nil {
		params.PrivateData = d.Append(nil)
	}
	p.conn = must(cm.Connect(s.t.Context(), p.qp, a, params))(s.t)
	return p
}

// full is a peer that can do everything: 4096 octets both ways, Send with
// Invalidate, 8 RDMA Reads.
func (s *serving) full() *testPeer {
	s.t.Helper()
	return s.connect(&wire.PrivateData{RemoteInvalidation: true, SendSize: 4096, ReceiveSize: 4096}, verbs.QPConfig{IRD: 8, ORD: 8})
}

// A testPeer is a requester that the test controls; it can make mistakes.
type testPeer struct {
	t        testing.TB
	rnic     *verbs.RNIC
	pd       *verbs.PD
	sendCQ   *verbs.CQ
	recvCQ   *verbs.CQ
	qp       *verbs.QP
	conn     *cm.Conn
	out, in  []byte
	outMR    *verbs.MR
	inMR     *verbs.MR
	sent     int
	over     <-chan error // how the connection ended at the server
	nextSTag byte
	seen     func(*incoming) // called for each message that arrives; may be nil
}

const (
	peerReceives = 128
	peerSize     = 8192
)

func newTestPeer(t testing.TB, cfg verbs.QPConfig) *testPeer {
	t.Helper()
	p := &testPeer{t: t, rnic: must(verbs.Open(verbs.Config{CloseTimeout: closeTimeout}))(t), out: make([]byte, peerReceives*peerSize), in: make([]byte, peerReceives*peerSize)}
	t.Cleanup(func() { _ = p.rnic.Close() })
	p.pd = must(p.rnic.AllocPD())(t)
	p.sendCQ = must(p.rnic.CreateCQ(verbs.CQConfig{Entries: 2 * peerReceives}))(t)
	p.recvCQ = must(p.rnic.CreateCQ(verbs.CQConfig{Entries: 2 * peerReceives}))(t)
	p.outMR = must(p.pd.Register(p.out, verbs.LocalRead))(t)
	p.inMR = must(p.pd.Register(p.in, verbs.LocalWrite))(t)
	cfg.SendCQ, cfg.RecvCQ, cfg.SendDepth, cfg.RecvDepth = p.sendCQ, p.recvCQ, peerReceives, peerReceives
	cfg.ReadSinkLocalWrite = true
	p.qp = must(p.pd.CreateQP(cfg))(t)
	for i := range peerReceives {
		p.receive(i)
	}
	return p
}

func (p *testPeer) receive(i int) {
	p.t.Helper()
	err := p.qp.PostRecv(verbs.RecvWR{ID: uint64(i), SGL: []verbs.SGE{p.inMR.SGE(i*peerSize, peerSize)}})
	if err != nil && !errors.Is(err, verbs.ErrState) { // else the server is closing the connection
		p.t.Fatal(err)
	}
}

// raw sends octets.
func (p *testPeer) raw(b []byte) {
	p.t.Helper()
	at := p.sent % peerReceives * peerSize
	p.sent++
	if n := copy(p.out[at:][:peerSize], b); n != len(b) {
		p.t.Fatalf("message of %d octets", len(b))
	}
	if err := p.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{p.outMR.SGE(at, len(b))}}); err != nil {
		p.t.Fatal(err)
	}
}

// send sends a message.
func (p *testPeer) send(h wire.Header, payload ...[]byte) {
	p.t.Helper()
	if h.Credits == 0 {
		h.Credits = 32
	}
	p.raw(append(h.Append(nil), bytes.Join(payload, nil)...))
}

// An incoming is a message that a testPeer has received.
type incoming struct {
	wire.Header
	payload []byte
	wc      verbs.WC
}

// next waits for a message.
func (p *testPeer) next() *incoming {
	p.t.Helper()
	m, ok := p.nextOrEnd()
	if !ok {
		p.t.Fatalf("the connection has ended: %v", p.qp.Err())
	}
	return m
}

// nextOrEnd waits for a message, and reports false if the connection ends before
// one comes.
func (p *testPeer) nextOrEnd() (*incoming, bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.recvCQ.Wait(ctx); err != nil {
		p.t.Fatalf("waiting for a message: %v", err)
	}
	wc := must(p.recvCQ.PollOne())(p.t)
	if wc.Status != verbs.Success {
		return nil, false
	}
	m := &incoming{wc: wc}
	b := bytes.Clone(p.in[int(wc.ID)*peerSize:][:wc.Bytes])
	var err error
	if m.payload, err = m.Parse(b, &wire.Rules{MSGP: true, ReadRead: true}); err != nil {
		p.t.Fatalf("parsing what the server sent, %x: %v", b, err)
	}
	if m.Credits == 0 {
		p.t.Errorf("message %v of XID %#x grants no credit", m.Proc, m.XID)
	}
	if p.seen != nil {
		p.seen(m)
	}
	p.receive(int(wc.ID))
	return m, true
}

// alive checks that the server still serves the connection.
func (p *testPeer) alive() {
	p.t.Helper()
	p.send(wire.Header{XID: 0xa11fe}, nullCall(0xa11fe))
	if m := p.next(); m.XID != 0xa11fe || m.Proc != wire.ProcMsg {
		p.t.Fatalf("got %v of XID %#x, want the reply to a NULL call", m.Proc, m.XID)
	}
}

// end waits until the server is done with the connection, and returns why.
func (p *testPeer) end() error {
	p.t.Helper()
	select {
	case err := <-p.over:
		return err
	case <-time.After(patience):
		p.t.Fatal("the server does not let go of the connection")
		return nil
	}
}

// lend registers memory for the server.
func (p *testPeer) lend(b []byte, access memory.Access) wire.Segment {
	p.t.Helper()
	p.nextSTag++
	mr := must(p.pd.RegisterMR(verbs.MRConfig{Buf: b, Access: access | verbs.LocalRead | verbs.LocalWrite, VA: 0x10000, Key: p.nextSTag}))(p.t)
	return wire.Segment{Handle: uint32(mr.STag()), Length: uint32(len(b)), Offset: mr.Base()}
}

func nullCall(xid uint32) []byte { return callMessage(xid, 0, nil) }

// callMessage is a call of the program of these tests.
func callMessage(xid, proc uint32, args []byte) []byte {
	call := oncrpc.Call{XID: xid, Prog: exchange.Program, Vers: exchange.Version, Proc: proc}
	b, _ := call.Append(nil)
	return append(b, args...)
}

// exchangeMessage is a call of EXCHANGE, whole.
func exchangeMessage(xid uint32, tag string, items [][]byte, wanted ...int) []byte {
	return callMessage(xid, exchange.Proc, bytes.Join(exchange.Args(tag, items, wanted...), nil))
}

// serveExchange executes EXCHANGE: the result for a wanted length is the first
// item continued with a pattern, or cut.
func serveExchange(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	d := oncrpc.NewDecoder(r.Args, "EXCHANGE")
	tag := d.Opaque(exchange.MaxTag)
	var items [][]byte
	for range d.Count(exchange.MaxItems, 4) {
		items = append(items, d.Opaque(exchange.MaxItem))
	}
	var results [][]byte
	size := 128
	for range d.Count(exchange.MaxItems, 4) {
		n := int(d.Uint32())
		if d.Err() != nil || n > exchange.MaxItem {
			break
		}
		results = append(results, exchangeResult(items, n))
		size += n + 8
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return append(r.Buffer(size), exchange.Reply(r.XID, string(tag), results...)...), nil
}

// exchangeResult is what EXCHANGE returns for a wanted length.
func exchangeResult(items [][]byte, n int) []byte {
	b := exchange.Pattern(77, n)
	if len(items) > 0 {
		copy(b, items[0])
	}
	return b
}

// replyStat is the accept_stat of a reply message.
func replyStat(t testing.TB, payload []byte) oncrpc.AcceptStat {
	t.Helper()
	var r oncrpc.Reply
	if _, err := r.Parse(payload); err != nil {
		t.Fatalf("reply %x: %v", payload, err)
	}
	return r.Accept
}

// cut makes segments of a run of memory, at the given lengths.
func segments(s wire.Segment, lengths ...int) (list []wire.Segment) {
	at := 0
	for _, n := range lengths {
		list = append(list, s.Cut(at, n))
		at += n
	}
	return list
}

// reads makes a Read chunk.
func reads(position int, list ...wire.Segment) (chunk []wire.ReadSegment) {
	for _, s := range list {
		chunk = append(chunk, wire.ReadSegment{Position: uint32(position), Segment: s})
	}
	return chunk
}

// without is a stream without n octets at position at.
func without(stream []byte, at, n int) []byte {
	return append(bytes.Clone(stream[:at]), stream[at+n:]...)
}

// fetch reads the server's memory, and fails if the server does not let it.
func (p *testPeer) fetch(list []wire.ReadSegment) (b []byte, err error) {
	p.t.Helper()
	for _, s := range list {
		part := make([]byte, s.Length)
		mr := must(p.pd.Register(part, verbs.LocalWrite))(p.t)
		err := p.qp.PostSend(verbs.SendWR{Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{mr.SGE(0, len(part))}, Remote: verbs.Remote{STag: memory.STag(s.Handle), TO: s.Offset}})
		if err == nil {
			if err = p.sendCQ.Wait(p.t.Context()); err == nil {
				var wc verbs.WC
				if wc, err = p.sendCQ.PollOne(); err == nil {
					err = wc.Err()
				}
			}
		}
		if err != nil {
			return nil, err
		}
		b = append(b, part...)
	}
	return b, nil
}
