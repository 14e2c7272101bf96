package rpcrdma

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

func TestAForwardedCallKeepsItsXIDAndGetsAnyReply(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{}, &both)
	forward := func() *oncrpc.ClientCall {
		q := everything()
		q.XID, q.Forward = 0x1234, true
		return q
	}
	first := a.start(t.Context(), forward())
	p := a.peer()
	m := p.next()
	if m.XID != 0x1234 {
		t.Errorf("XID %#x, want 0x1234", m.XID)
	}
	// The same XID is not sent twice at a time.
	checkEnded(t, within(t, "end", a.start(t.Context(), forward())), oncrpc.ErrXIDInUse)
	denied, _ := (&oncrpc.Reply{XID: m.XID, Stat: oncrpc.MsgDenied, Reject: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}).Append(nil)
	h := untouched(&m.Header)
	h.Credits = 8
	p.send(h, denied)
	r := within(t, "reply", first)
	checkEnded(t, r, nil)
	if r.err == nil && !bytes.Equal(r.reply.Message, denied) {
		t.Errorf("got % x, want % x", r.reply.Message, denied)
	}

	// Nor while the reply to one that was given up is to come.
	ctx, cancel := context.WithCancel(context.Background())
	given := a.start(ctx, forward())
	m = p.next()
	cancel()
	checkEnded(t, within(t, "end", given), context.Canceled)
	checkEnded(t, within(t, "end", a.start(t.Context(), forward())), oncrpc.ErrXIDInUse)
	p.send(untouched(&m.Header), exchange.Reply(m.XID, "abcd"))
	null := a.start(t.Context(), nullClientCall()) // behind that reply, to be sure that it has come
	n := p.next()
	p.send(wire.Header{XID: n.XID}, exchangeNull(n.XID))
	checkEnded(t, within(t, "reply", null), nil)
	again := a.start(t.Context(), forward())
	m = p.next()
	p.send(untouched(&m.Header), exchange.Reply(m.XID, "abcd"))
	checkEnded(t, within(t, "reply", again), nil)
}

// gss is an RPCSEC_GSS credential.
func gss(proc, service uint32) oncrpc.OpaqueAuth {
	return oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorGSS, Body: bytes.Join([][]byte{exchange.Word(1), exchange.Word(proc), exchange.Word(9), exchange.Word(service), exchange.Word(0)}, nil)}
}

func TestWhatRPCSECGSSProtectsIsTold(t *testing.T) {
	version := gss(0, 1)
	version.Body[3] = 2
	for _, test := range []struct {
		name string
		cred oncrpc.OpaqueAuth
		want bool
	}{
		{"AUTH_NONE", oncrpc.OpaqueAuth{}, false},
		{"AUTH_SYS", oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorSys, Body: make([]byte, 20)}, false},
		{"no service", gss(0, 1), false},
		{"integrity", gss(0, 2), true},
		{"privacy", gss(0, 3), true},
		{"a service that does not exist", gss(0, 4), true},
		{"the making of a context", gss(1, 1), true},
		{"another version", version, true},
		{"half a credential", oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorGSS, Body: exchange.Word(1)}, true},
	} {
		if got := payload.Protected(&test.cred); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// Claims: P-11-1 P8166-8.2.2.3-1 P8166-8.2.2.3-2
func TestNothingOfAProtectedCallIsReduced(t *testing.T) {
	nettest.CheckLeaks(t)
	for service, reduced := range map[uint32]bool{1: true, 2: false, 3: false} {
		a := answer(t, ClientConfig{}, &both)
		q := everything()
		q.Cred, q.MaxReply = gss(0, service), 5000
		ended := a.start(t.Context(), q)
		p := a.peer()
		m := p.next()
		if got := len(m.Writes) > 0; got != reduced || reduced == (m.Proc == wire.ProcNoMsg) || !m.HasReply {
			t.Errorf("service %d: %v with %d Write chunks, Reply chunk %v", service, m.Proc, len(m.Writes), m.HasReply)
		}
		for _, s := range m.Reads {
			if got := s.Position != 0; got != reduced {
				t.Errorf("service %d: a Read chunk at position %d", service, s.Position)
			}
		}
		if room := m.Reply.Length(); !reduced && room < 10040 {
			t.Errorf("service %d: a Reply chunk of %d octets, and with what the sinks would take it can be longer", service, room)
		}
		p.send(untouched(&m.Header), exchange.Reply(m.XID, "abcd"))
		checkEnded(t, within(t, "reply", ended), nil)
	}
}

// Claims: P8166-4.5.4-1
func TestACallWithoutResourcesFailsAloneAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnic := must(verbs.Open(verbs.Config{Limits: verbs.Limits{Regions: 6}}))(t)
		s := serve(t, ServerConfig{})
		c := callServer(s, ClientConfig{})
		defer rnic.Close()
		limited := must(NewClient(ClientConfig{RNIC: rnic, Bindings: exchange.Bindings, Dial: c.cfg.Dial}))(t)
		null := func() {
			t.Helper()
			if _, err := limited.Call(t.Context(), nullClientCall()); err != nil {
				t.Error(err)
			}
			synctest.Wait() // its Send has completed, too
		}
		null()
		before := rnic.Usage().Regions // of the receives, and of a Send
		var items [][]byte
		for range 8 {
			items = append(items, exchange.Pattern(1, 5000))
		}
		for range 3 {
			if _, err := limited.Call(t.Context(), exchange.Call(exchange.Args("", items))); !errors.Is(err, verbs.ErrResources) {
				t.Errorf("got %v, want %v", err, verbs.ErrResources)
			}
			null()
		}
		if n := rnic.Usage().Regions; n != before {
			t.Errorf("%d regions, want %d as before", n, before)
		}
		if err := limited.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCallsThatAreNoneEndBeforeTheyAreSent(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{}, &both)
	p := a.grants(1)
	for _, test := range []struct {
		name string
		call *oncrpc.ClientCall
		want error
	}{
		{"arguments of another procedure", exchange.Call([][]byte{exchange.Word(5)}), &wire.Error{Fault: wire.FaultStream}},
		{"octets that are no words", &oncrpc.ClientCall{Args: [][]byte{{1}}}, &wire.Error{Fault: wire.FaultLocal}},
		{"too long a credential", &oncrpc.ClientCall{Call: oncrpc.Call{Cred: oncrpc.OpaqueAuth{Body: make([]byte, 401)}}}, oncrpc.ErrLimit},
		{"more than chunks may hold", exchange.Call(exchange.Args("", [][]byte{make([]byte, wire.DefaultOctets+1)})), &wire.Error{Fault: wire.FaultLocal}},
	} {
		r := within(t, "end", a.start(t.Context(), test.call))
		if !errors.Is(r.err, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, r.err, test.want)
		}
	}
	// Each has given its credit back.
	ended := a.start(t.Context(), nullClientCall())
	m := p.next()
	p.send(wire.Header{XID: m.XID}, exchangeNull(m.XID))
	checkEnded(t, within(t, "reply", ended), nil)
}

func TestAClientHasToKnowWhomToCall(t *testing.T) {
	if _, err := NewClient(ClientConfig{}); err == nil {
		t.Error("a client of nobody was made")
	}
}

// Claims: P-3.1-1 P8166-4.3.3-2
func TestACallOfProcedureZeroNeedsNoChunk(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{Bindings: payload.Bindings{}}, nil)
	ended := a.start(t.Context(), nullClientCall())
	p := a.peer()
	m := p.next()
	if m.HasReply || m.wc.Bytes != 68 {
		t.Errorf("%d octets, Reply chunk %v, want 68 and none", m.wc.Bytes, m.HasReply)
	}
	p.send(wire.Header{XID: m.XID}, exchangeNull(m.XID))
	checkEnded(t, within(t, "reply", ended), nil)
}
