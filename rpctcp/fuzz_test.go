package rpctcp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/oncrpc"
)

// FuzzServer has a server take any octets off a connection: it ends, in time,
// without anything left, and sends nothing but replies.
func FuzzServer(f *testing.F) {
	f.Add(record(callOf(1, "args")), uint8(0))
	f.Add(append(record(replyOf(1, "results.")), record(callOf(2, ""))...), uint8(3))
	f.Add([]byte("\x00\x00\x00\x08\x00\x00\x00\x01\x00\x00\x00\x00\x80\x00\x00\x00"), uint8(1))
	f.Fuzz(func(t *testing.T, sent []byte, size uint8) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, ServerConfig{Handler: echo, Record: oncrpc.RecordLimits{Record: 1 << 16, Fragments: 8}, Stall: time.Minute})
			p, done := serveOne(t, s)
			if size > 0 {
				p.Conn.ReadSizes(func() int { return int(size) })
			}
			go func() {
				_, _ = p.Write(sent)
				_ = p.CloseWrite()
			}()
			for message := p.receive(); message != nil; message = p.receive() {
				if _, kind, err := oncrpc.ParsePrefix(message); err != nil || kind != oncrpc.MsgReply {
					t.Errorf("the server sent % x", message)
				}
			}
			p.Close()
			<-done
			s.Close()
		})
	})
}

// FuzzClient has a server send any octets to a client with a call under way: that
// comes to an end, by a reply or otherwise.
func FuzzClient(f *testing.F) {
	const xid = 5
	f.Add(record(replyOf(xid, "results.")))
	f.Add(append(record(callOf(1, "args")), record(replyOf(xid, ""))...))
	f.Add(record(replyOf(xid, ""))[:20])
	f.Fuzz(func(t *testing.T, sent []byte) {
		synctest.Test(t, func(t *testing.T) {
			d := newDialer(t)
			c := newClient(t, ClientConfig{Dial: d.dial, Attempts: 1, Record: oncrpc.RecordLimits{Record: 1 << 16, Fragments: 8}})
			c.nextXID = xid
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			answer := call(ctx, c, "args")
			p := <-d.peers
			p.xid()
			go func() {
				_, _ = p.Write(sent)
				_ = p.CloseWrite()
			}()
			r := <-answer
			if r.err == nil && len(sent) < len(record(replyOf(xid, string(r.results)))) {
				t.Errorf("the call returned %q, which was not sent", r.results)
			}
			c.Close()
			p.Close()
			for len(d.peers) > 0 {
				(<-d.peers).Close()
			}
		})
	})
}
