package rpcrdma

import (
	"context"
	"encoding/binary"
	"io"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// BenchmarkServeNull is one NULL call at a time over TCP, and for orientation
// an echo of as many octets without any of it.
func BenchmarkServeNull(b *testing.B) {
	b.Run("echo", func(b *testing.B) {
		x, y := nettest.TCPPair(b, "tcp4")
		go func() { _, _ = io.Copy(y, struct{ io.Reader }{y}) }()
		buf := make([]byte, 68)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = x.Write(buf)
			_, _ = io.ReadFull(x, buf)
		}
	})
	b.Run("rpc", func(b *testing.B) {
		p := benchPeer(b, ServerConfig{})
		message := (&wire.Header{XID: 5, Credits: 1}).Append(nil)
		message = append(message, nullCall(5)...)
		b.ReportAllocs()
		for b.Loop() {
			p.raw(message)
			p.reply()
		}
	})
}

// BenchmarkServeResult is calls whose result is placed, several at a time, from
// the handler's memory.
func BenchmarkServeResult(b *testing.B) {
	const size, depth = 1 << 20, 8
	data := exchange.Pattern(1, size)
	handler := oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		e := r.Accept(size + 64)
		e.Uint32(0)
		e.Uint32(1)
		e.Opaque(data, size)
		e.Opaque(nil, 4)
		return e.Finish()
	})
	p := benchPeer(b, ServerConfig{Handler: handler})
	mem := p.lend(make([]byte, size), verbs.RemoteWrite)
	message := (&wire.Header{Credits: 1, Writes: []wire.WriteChunk{{mem}}}).Append(nil)
	at := len(message)
	message = append(message, exchangeMessage(0, "", nil, size)...)
	b.SetBytes(size)
	b.ReportAllocs()
	p.repeat(b, message, at, depth)
}

// BenchmarkServeArgument is calls whose argument is fetched, several at a time.
func BenchmarkServeArgument(b *testing.B) {
	const size, depth = 1 << 20, 8
	handler := oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		e := r.Accept(0)
		return e.Finish()
	})
	p := benchPeer(b, ServerConfig{Handler: handler})
	stream := exchangeMessage(0, "abcd", [][]byte{exchange.Pattern(1, size)})
	mem := p.lend(stream[position:][:size], verbs.RemoteRead)
	message := (&wire.Header{Credits: 1, Reads: reads(position, mem)}).Append(nil)
	at := len(message)
	message = append(message, without(stream, position, size)...)
	b.SetBytes(size)
	b.ReportAllocs()
	p.repeat(b, message, at, depth)
}

// repeat makes a call again and again, with XIDs of their own at the beginning
// of message and at octet at, depth at a time.
func (p *testPeer) repeat(b *testing.B, message []byte, at, depth int) {
	xid := uint32(0)
	call := func() {
		xid++
		binary.BigEndian.PutUint32(message, xid)
		binary.BigEndian.PutUint32(message[at:], xid)
		p.raw(message)
	}
	call()
	p.reply() // grants more
	for range depth - 1 {
		call()
	}
	for b.Loop() {
		call()
		p.reply()
	}
}

// benchPeer is a peer over TCP, that invalidates nothing.
func benchPeer(b *testing.B, cfg ServerConfig) *testPeer {
	x, y := nettest.TCPPair(b, "tcp4")
	return serve(b, cfg).connectOver(x, y, &wire.PrivateData{SendSize: 4096, ReceiveSize: 4096}, verbs.QPConfig{IRD: 8, ORD: 8})
}

// reply waits for a message and does not look at it.
func (p *testPeer) reply() {
	var wc [1]verbs.WC
	for p.recvCQ.Poll(wc[:]) == 0 {
		_ = p.recvCQ.Wait(context.Background())
	}
	if wc[0].Status != verbs.Success {
		p.t.Fatalf("%v; server: %v", p.qp.Err(), p.end())
	}
	_ = p.qp.PostRecv(verbs.RecvWR{ID: wc[0].ID, SGL: []verbs.SGE{p.inMR.SGE(int(wc[0].ID)*peerSize, peerSize)}})
}
