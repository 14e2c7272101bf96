package rpcrdma

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// offers counts the regions that the server has for its peers.
func (s *serving) offers() (n int) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	for c := range s.server.conns {
		c.r.mu.Lock()
		n += len(c.r.offers)
		c.r.mu.Unlock()
	}
	return n
}

// regions counts what is registered.
func (s *serving) regions() int { return s.rnic.Usage().Regions }

// Claims: P-3.8-6 P-5.1-4 P-11-9
func TestAReplyIsFetchedAndThenWithdrawn(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, ServerConfig{ReadReplies: ReadReplies{Enabled: true}})
	p := s.full()
	p.alive()
	before := s.regions()
	for xid := range uint32(50) {
		p.send(wire.Header{XID: xid}, exchangeMessage(xid, "abcd", nil, 9001))
		m := p.next()
		if m.Proc != wire.ProcNoMsg || len(m.Reads) == 0 || m.HasReply || m.Credits != DefaultCredits-1 {
			t.Fatalf("got %+v", m.Header)
		}
		b, err := p.fetch(m.Reads)
		if want := exchange.Reply(xid, "abcd", exchangeResult(nil, 9001)); err != nil || !bytes.Equal(b, want) {
			t.Fatalf("fetched %x, %v, want %x", b, err, want)
		}
		p.raw(wire.AppendDone(nil, xid, 1))
		p.raw(wire.AppendDone(nil, xid, 1)) // once more does nothing
		p.alive()
		if _, err := p.rnic.Query(); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.offers(); n != 0 {
		t.Errorf("%d replies are still there", n)
	}
	if n := s.regions(); n > before+2 { // of the pool
		t.Errorf("%d regions, there were %d", n, before)
	}
}

// Claims: P-3.8-6 P-3.8-10 P-11-4 P8166-8.1.1-1 S-6.4.5-1
func TestWhatWasWithdrawnCannotBeRead(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, ServerConfig{ReadReplies: ReadReplies{Enabled: true}})
	p, other := s.full(), s.full()
	p.send(wire.Header{XID: 3}, exchangeMessage(3, "abcd", nil, 9001))
	m := p.next()
	// Nor can another client read it.
	if _, err := other.fetch(m.Reads); err == nil {
		t.Error("another client has read the reply")
	}
	p.raw(wire.AppendDone(nil, 3, 1))
	p.alive()
	if _, err := p.fetch(m.Reads); err == nil {
		t.Error("the reply was read after its RDMA_DONE")
	}
	p.end()
	other.end()
}

// Memory of replies is used again, and what was in it is behind what is there now.
//
// Claims: S-A-2 P-11-4 S-6.3.2-1 V-10.3-9
func TestAReplyIsLentWithoutWhatIsBehindIt(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, ServerConfig{ReadReplies: ReadReplies{Enabled: true}})
	p := s.full()
	for _, n := range []int{9001, 5001} {
		p.send(wire.Header{XID: 3}, exchangeMessage(3, "abcd", nil, n))
		m := p.next()
		b, err := p.fetch(m.Reads)
		if want := exchange.Reply(3, "abcd", exchangeResult(nil, n)); err != nil || !bytes.Equal(b, want) {
			t.Fatalf("fetched %x, %v, want %x", b, err, want)
		}
		if n == 9001 {
			p.raw(wire.AppendDone(nil, 3, 1))
			p.alive()
			continue
		}
		m.Reads[len(m.Reads)-1].Length++
		if _, err := p.fetch(m.Reads); err == nil {
			t.Error("what is behind the reply was read")
		}
	}
	p.end()
}

func TestACallThatIsSentAgainWithdrawsTheReplyBefore(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, ServerConfig{ReadReplies: ReadReplies{Enabled: true}})
	p := s.full()
	for range 3 {
		p.send(wire.Header{XID: 3}, exchangeMessage(3, "abcd", nil, 9001))
		p.next()
	}
	if n := s.offers(); n != 1 {
		t.Errorf("%d replies are held, want 1", n)
	}
}

// A requester that sends no RDMA_DONE holds limited memory for a limited time.
//
// Claims: P-3.8-9 P-11-6 P-11-7 P-11-9 P-11-10 P-11-11 P-11-12
func TestRepliesThatAreNotFetchedAreBounded(t *testing.T) {
	for _, c := range []struct {
		name    string
		read    ReadReplies
		credits int
		offers  int // at a time
	}{
		{"by their number", ReadReplies{Enabled: true, Replies: 3}, 64, 3},
		{"by their octets", ReadReplies{Enabled: true, Octets: 25000}, 64, 2},
		{"by the credits", ReadReplies{Enabled: true}, 4, 3},
		{"one whatever its size", ReadReplies{Enabled: true, Octets: 1}, 64, 1},
		{"one whatever the credits", ReadReplies{Enabled: true}, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, ServerConfig{ReadReplies: c.read, Credits: c.credits})
				p := s.full()
				began := time.Now()
				calls := uint32(min(10, c.credits))
				for xid := range calls {
					p.send(wire.Header{XID: xid}, exchangeMessage(xid, "abcd", nil, 9001))
				}
				synctest.Wait()
				for i := range int(calls) {
					if n := s.offers(); n > c.offers {
						t.Errorf("%d replies are held, want %d", n, c.offers)
					}
					m := p.next() // waits for the timer when it has to
					if m.Proc != wire.ProcNoMsg {
						t.Fatalf("got %+v", m.Header)
					}
					if waited, want := time.Since(began), time.Duration(i/c.offers)*10*time.Second; waited != want {
						t.Errorf("reply %d came after %v, want %v", i, waited, want)
					}
				}
				if c.credits > 1 { // else there was one call
					time.Sleep(10 * time.Second)
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if n := s.offers(); n != 0 {
					t.Errorf("%d replies are left", n)
				}
				p.alive()
				p.close()
			})
		})
	}
}

// close ends the peer's side, as a bubble ends only when nothing of it runs.
func (p *testPeer) close() { _ = p.rnic.Close() }

// Claims: P-3.8-8 P-11-6 P-11-8
func TestAReplyThatIsNotFetchedEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, ServerConfig{ReadReplies: ReadReplies{Enabled: true, Close: true, Timeout: 15 * time.Second}})
		p := s.full()
		began := time.Now()
		p.send(wire.Header{XID: 3}, exchangeMessage(3, "abcd", nil, 9001))
		p.next()
		if err := p.end(); err != errNotFetched {
			t.Errorf("ended with %v", err)
		}
		if waited := time.Since(began); waited != 15*time.Second {
			t.Errorf("it took %v", waited)
		}
		p.close()
	})
}

func TestARDMA_DONESendsWhatWasHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, ServerConfig{ReadReplies: ReadReplies{Enabled: true, Replies: 1}})
		p := s.full()
		for xid := range uint32(3) {
			p.send(wire.Header{XID: xid}, exchangeMessage(xid, "abcd", nil, 9001))
		}
		seen := map[uint32]bool{}
		began := time.Now()
		for range 3 {
			m := p.next()
			if b, err := p.fetch(m.Reads); err != nil || binary.BigEndian.Uint32(b) != m.XID || seen[m.XID] {
				t.Fatalf("XID %d: fetched %x, %v", m.XID, b, err)
			}
			seen[m.XID] = true
			synctest.Wait()
			if n := s.offers(); n != 1 {
				t.Errorf("%d replies are held", n)
			}
			p.raw(wire.AppendDone(nil, m.XID, 1))
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it took %v", waited)
		}
		p.close()
	})
}

// A connection that ends gives back what its peer has not fetched, and what was
// held back.
func TestTheEndWithdrawsReplies(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, ServerConfig{ReadReplies: ReadReplies{Enabled: true, Replies: 1}})
	p := s.full()
	for xid := range uint32(3) {
		p.send(wire.Header{XID: xid}, exchangeMessage(xid, "abcd", nil, 9001))
	}
	p.next()
	p.qp.Abort()
	p.end()
}

func TestAReplyToFetchThatComesAfterTheEndIsNotKept(t *testing.T) {
	nettest.CheckLeaks(t)
	entered := make(chan struct{})
	var rnic *verbs.RNIC
	s := serve(t, ServerConfig{
		ReadReplies: ReadReplies{Enabled: true},
		Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			close(entered)
			<-ctx.Done()
			for len(rnic.QPs()) > 0 || rnic.Usage().CQs > 0 { // until the connection is gone
				runtime.Gosched()
			}
			return exchange.Reply(r.XID, "abcd", exchangeResult(nil, 9000)), nil
		}),
	})
	rnic = s.rnic
	p := s.full()
	p.send(wire.Header{XID: 3}, exchangeMessage(3, "abcd", nil, 9000))
	nettest.Await(t, entered)
	p.qp.Abort()
	p.end()
}

// Claims: P-3.9-5 P-3.9-6
func TestServerTakesPadsOut(t *testing.T) {
	nettest.CheckLeaks(t)
	item := exchange.Pattern(1, 600)
	stream := exchangeMessage(4, "abcd", [][]byte{item}, 600)
	padded := func(align, threshold uint32, items ...int) []byte {
		h := wire.Header{XID: 4, Proc: wire.ProcMsgP, Align: align, Threshold: threshold}
		body := bytes.Clone(stream)
		for _, at := range items { // ascending, in the padded stream
			off := h.Len() + at
			pad := (int(align) - off%int(align)) % int(align)
			body = append(body[:at:at], append(bytes.Repeat([]byte{0xee}, pad), body[at:]...)...)
		}
		return onWire(h, body)
	}
	p := serve(t, ServerConfig{Rules: wire.Rules{MSGP: true}}).full()
	want := exchange.Reply(4, "abcd", item)
	for _, c := range []struct {
		name    string
		message []byte
		want    any
	}{
		{"no alignment", padded(0, 0), want},
		{"alignment of one", padded(1, 0), want},
		{"no item as long as the threshold", padded(256, 601), want},
		{"one item above the threshold", padded(256, 599, position), want},
		{"at the threshold", padded(256, 600, position), want},
		{"at the threshold, read as exceeds", padded(256, 600), want},
		{"pads where none belong", padded(256, 601, position), oncrpc.GarbageArgs},
		{"pads missing", padded(256, 100), oncrpc.GarbageArgs},
		{"alignment beyond the limit", onWire(wire.Header{XID: 4, Proc: wire.ProcMsgP, Align: wire.MaxAlign + 1}, stream), wire.ErrChunk},
		{"with a Read list", onWire(wire.Header{XID: 4, Proc: wire.ProcMsgP, Align: 256, Reads: reads(position, p.lend(item, verbs.RemoteRead))}, without(stream, position, 600)), wire.ErrChunk},
	} {
		p.raw(c.message)
		m := p.next()
		switch want := c.want.(type) {
		case []byte:
			if !bytes.Equal(m.payload, want) {
				t.Errorf("%s: got %+v %x", c.name, m.Header, m.payload)
			}
		case oncrpc.AcceptStat:
			if m.Proc != wire.ProcMsg || replyStat(t, m.payload) != want {
				t.Errorf("%s: got %+v %x", c.name, m.Header, m.payload)
			}
		case wire.ErrorCode:
			if m.Proc != wire.ProcError || m.Err != want {
				t.Errorf("%s: got %+v", c.name, m.Header)
			}
		}
	}
	// Without the program's binding its items are not known.
	null := oncrpc.Call{XID: 4, Prog: exchange.Program, Vers: 2}
	b, _ := null.Append(nil)
	p.raw(onWire(wire.Header{XID: 4, Proc: wire.ProcMsgP, Align: 256}, b))
	if m := p.next(); replyStat(t, m.payload) != oncrpc.GarbageArgs {
		t.Errorf("got %+v", m)
	}
}

// confMessage is M15 with other arguments.
func confMessage(xid uint32, proc uint32, args []byte) []byte {
	call := oncrpc.Call{XID: xid, Prog: wire.ConfProgram, Vers: wire.ConfVersion, Proc: proc}
	b, _ := call.Append(nil)
	return onWire(wire.Header{XID: xid, Credits: 1}, b, args)
}

// Claims: P-6.1-1 P-6.2-5 P-6.2-8 P-6.2-12 P-6-3 P-6-4 P-11-13
func TestServerIsConfiguredByWhoMay(t *testing.T) {
	nettest.CheckLeaks(t)
	everybody := func(*oncrpc.Call) bool { return true }
	p := serve(t, ServerConfig{ReceiveSize: 8192, SendSize: 8192, Configure: &Configurator{Allow: everybody, Align: 256}}).full()
	p.raw(confMessage(1, wire.ConfNull, nil))
	if m := p.next(); replyStat(t, m.payload) != oncrpc.Success {
		t.Errorf("NULL: got %x", m.payload)
	}
	p.raw(confMessage(2, wire.ConfRDMA, wire.ConfCall{MaxCallSendSize: 4096, MaxReplySendSize: 6000, MaxRDMARead: 16}.Append(nil)))
	m := p.next()
	var reply wire.ConfReply
	if err := reply.Parse(m.payload[24:]); err != nil || reply != (wire.ConfReply{MaxCallSendSize: 8192, Align: 256, MaxRDMARead: 1}) {
		t.Errorf("got %+v, %v", reply, err)
	}
	// Replies are as long now as the client takes them.
	fixed := 28 + len(exchange.Reply(3, "abcd", nil))
	for _, n := range []int{6000 - fixed, 6000 - fixed + 4} {
		p.send(wire.Header{XID: 3}, exchangeMessage(3, "abcd", nil, n))
		if m := p.next(); (m.Proc == wire.ProcMsg) != (n == 6000-fixed) {
			t.Errorf("result of %d octets: %v", n, m.Proc)
		}
	}
	// The second replaces the first. No RDMA Read goes to a client that serves none.
	p.raw(confMessage(4, wire.ConfRDMA, wire.ConfCall{}.Append(nil)))
	p.next()
	item := exchange.Pattern(1, 100)
	p.send(wire.Header{XID: 5, Reads: reads(position, p.lend(item, verbs.RemoteRead))}, without(exchangeMessage(5, "abcd", [][]byte{item}), position, 100))
	if m := p.next(); m.Proc != wire.ProcError || m.Err != wire.ErrChunk {
		t.Errorf("got %+v", m)
	}
	for proc, want := range map[uint32]oncrpc.AcceptStat{wire.ConfRDMA: oncrpc.GarbageArgs, 2: oncrpc.ProcUnavail} {
		p.raw(confMessage(6, proc, make([]byte, 8)))
		if m := p.next(); replyStat(t, m.payload) != want {
			t.Errorf("procedure %d: got %x", proc, m.payload)
		}
	}

	for _, allow := range []func(*oncrpc.Call) bool{nil, func(c *oncrpc.Call) bool { return c.Cred.Flavor == oncrpc.FlavorGSS }} {
		p := serve(t, ServerConfig{Configure: &Configurator{Allow: allow}}).full()
		p.raw(confMessage(7, wire.ConfRDMA, wire.ConfCall{}.Append(nil)))
		var r oncrpc.Reply
		if _, err := r.Parse(p.next().payload); err != nil || r.Stat != oncrpc.MsgDenied || r.Auth != oncrpc.AuthTooWeak {
			t.Errorf("got %+v, %v, want AUTH_TOOWEAK", r, err)
		}
	}
	p = serve(t, ServerConfig{}).full()
	p.raw(confMessage(8, wire.ConfRDMA, wire.ConfCall{}.Append(nil)))
	if m := p.next(); replyStat(t, m.payload) != oncrpc.ProgUnavail {
		t.Errorf("got %x", m.payload)
	}
}

// Where the upper layer does not permit it, no peer gets a reply by Read list, whether or
// not it follows RFC 8166.
//
// Claims: P-3.8-11 P-3.8-12 P8166-4.3.1-1
func TestOnlyWhereTheUpperLayerPermitsAReplyIsFetched(t *testing.T) {
	nettest.CheckLeaks(t)
	handler := oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		e := r.Accept(9000)
		e.Fixed(make([]byte, 9000))
		return e.Finish()
	})
	for _, c := range []struct {
		name string
		cfg  ServerConfig
		peer verbs.QPConfig
	}{
		{"not enabled", ServerConfig{}, verbs.QPConfig{IRD: 8, ORD: 8}},
		{"no binding", ServerConfig{ReadReplies: ReadReplies{Enabled: true}, Bindings: payload.Bindings{}}, verbs.QPConfig{IRD: 8, ORD: 8}},
		{"not permitted", ServerConfig{ReadReplies: ReadReplies{Enabled: true}, Bindings: payload.Bindings{{Prog: exchange.Program, Vers: exchange.Version}: neverRead{}}}, verbs.QPConfig{IRD: 8, ORD: 8}},
		{"a client that cannot read", ServerConfig{ReadReplies: ReadReplies{Enabled: true}}, verbs.QPConfig{IRD: 8}},
	} {
		c.cfg.Handler = handler
		p := serve(t, c.cfg).connect(nil, c.peer)
		p.send(wire.Header{XID: 1}, exchangeMessage(1, "", nil))
		if m := p.next(); m.Proc != wire.ProcError || m.Err != wire.ErrChunk {
			t.Errorf("%s: got %+v", c.name, m)
		}
	}
}

type neverRead struct{ exchange.Binding }

func (neverRead) ReadRead(uint32) bool { return false }
