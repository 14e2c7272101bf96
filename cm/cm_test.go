package cm_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// An end is one side of a connection with all that belongs to it.
type end struct {
	rnic *verbs.RNIC
	pd   *verbs.PD
	cq   *verbs.CQ
	qp   *verbs.QP
	mr   *verbs.MR
	buf  []byte
}

func newEnd(t testing.TB, cfg verbs.QPConfig) *end {
	t.Helper()
	return newEndOf(t, verbs.Config{}, cfg)
}

func newEndOf(t testing.TB, rnic verbs.Config, cfg verbs.QPConfig) *end {
	t.Helper()
	e := &end{buf: make([]byte, 1<<20)}
	var err error
	if e.rnic, err = verbs.Open(rnic); err != nil {
		t.Fatal(err)
	}
	if e.pd, err = e.rnic.AllocPD(); err != nil {
		t.Fatal(err)
	}
	if e.cq, err = e.rnic.CreateCQ(verbs.CQConfig{Entries: 4096}); err != nil {
		t.Fatal(err)
	}
	all := verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic
	if e.mr, err = e.pd.Register(e.buf, all); err != nil {
		t.Fatal(err)
	}
	cfg.SendCQ, cfg.RecvCQ = e.cq, e.cq
	if cfg.IRD == 0 {
		cfg.IRD, cfg.ORD = 4, 4
	}
	cfg.Extensions = true
	if e.qp, err = e.pd.CreateQP(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.rnic.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// next waits for one completion.
func (e *end) next(t testing.TB) verbs.WC {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := e.cq.Wait(ctx); err != nil {
		t.Fatalf("waiting for a completion: %v (queue pair %v: %v)", err, e.qp.State(), e.qp.Err())
	}
	var wc [1]verbs.WC
	e.cq.Poll(wc[:])
	return wc[0]
}

func connect(t testing.TB, a, b *end, pa, pb cm.Params) (ca, cb *cm.Conn) {
	t.Helper()
	ctx := t.Context()
	ln, err := cm.Listen(ctx, b.rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{MPA: pb.MPA})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	done := make(chan error, 1)
	go func() {
		req, err := ln.Accept(ctx)
		if err == nil {
			cb, err = req.Accept(ctx, b.qp, pb)
		}
		done <- err
	}()
	ca, err = cm.Dial(ctx, a.qp, "tcp", ln.Addr().String(), pa)
	if err := errors.Join(err, nettest.Await(t, done)); err != nil {
		t.Fatal(err)
	}
	return ca, cb
}

// Claims: V-6.2.2-3
func TestEveryOperationMovesItsOctets(t *testing.T) {
	for _, tt := range []struct {
		name string
		pa   mpa.Config
		pb   mpa.Config
	}{
		{name: "CRC"},
		{name: "no CRC", pa: mpa.Config{NoCRC: true}, pb: mpa.Config{NoCRC: true}},
		{name: "markers", pa: mpa.Config{Markers: true}, pb: mpa.Config{Markers: true}},
		{name: "peer to peer", pa: mpa.Config{PeerToPeer: true}},
		{name: "peer to peer, Read", pa: mpa.Config{PeerToPeer: true, RTR: mpa.RTRRead}},
		{name: "peer to peer, Send", pa: mpa.Config{PeerToPeer: true, RTR: mpa.RTRSend}},
		{name: "revision 1", pa: mpa.Config{Profile: mpa.ProfileRFC5044}},
		{name: "RDMA Consortium", pa: mpa.Config{Profile: mpa.ProfileRDMAC}, pb: mpa.Config{Profile: mpa.ProfileRDMAC}},
		{name: "small segments", pa: mpa.Config{MaxULPDU: 128}, pb: mpa.Config{MaxULPDU: 128}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
			for i := range a.buf {
				a.buf[i] = byte(i * 7)
			}
			b.buf[900000] = 5
			if err := b.qp.PostRecv(verbs.RecvWR{ID: 100, SGL: []verbs.SGE{b.mr.SGE(0, 200000)}}); err != nil {
				t.Fatal(err)
			}
			ca, cb := connect(t, a, b, cm.Params{MPA: tt.pa, PrivateData: []byte("hello")}, cm.Params{MPA: tt.pb})
			if string(cb.PrivateData()) != "hello" {
				t.Errorf("private data %q", cb.PrivateData())
			}
			post := func(wr verbs.SendWR) {
				t.Helper()
				wr.Flags |= verbs.Signaled
				if err := a.qp.PostSend(wr); err != nil {
					t.Fatal(err)
				}
			}
			want := func(wc verbs.WC, op verbs.Op, id uint64) {
				t.Helper()
				if wc.Op != op || wc.ID != id || wc.Status != verbs.Success {
					t.Fatalf("completion %v %d: %v, want %v %d; %v %v", wc.Op, wc.ID, wc.Status, op, id, a.qp.Err(), b.qp.Err())
				}
			}
			post(verbs.SendWR{ID: 1, Op: verbs.OpSend, SGL: []verbs.SGE{a.mr.SGE(0, 70000), a.mr.SGE(70000, 100000)}})
			want(a.next(t), verbs.OpSend, 1)
			wc := b.next(t)
			want(wc, verbs.OpRecv, 100)
			if wc.Bytes != 170000 || !bytes.Equal(a.buf[:170000], b.buf[:170000]) {
				t.Fatalf("received %d octets, or others", wc.Bytes)
			}
			post(verbs.SendWR{ID: 2, Op: verbs.OpWrite, SGL: []verbs.SGE{a.mr.SGE(5, 300000)}, Remote: b.mr.Remote(500001)})
			want(a.next(t), verbs.OpWrite, 2)
			post(verbs.SendWR{ID: 3, Op: verbs.OpRead, SGL: []verbs.SGE{a.mr.SGE(400000, 300000)}, Remote: b.mr.Remote(500001)})
			want(a.next(t), verbs.OpRead, 3)
			if !bytes.Equal(a.buf[5:300005], a.buf[400000:700000]) {
				t.Fatal("written or read octets differ")
			}
			post(verbs.SendWR{ID: 4, Op: verbs.OpRead, SGL: []verbs.SGE{{}}})
			want(a.next(t), verbs.OpRead, 4)
			if tt.name == "RDMA Consortium" {
				goto end
			}
			post(verbs.SendWR{ID: 5, Op: verbs.OpFetchAdd, SGL: []verbs.SGE{a.mr.SGE(16, 8)}, Remote: b.mr.Remote(900000), Atomic: verbs.Atomic{Data: 3}})
			want(a.next(t), verbs.OpFetchAdd, 5)
			if found := binary.NativeEndian.Uint64(a.buf[16:]); found != binary.NativeEndian.Uint64([]byte{5, 7: 0}) {
				t.Fatalf("FetchAdd found %x", found)
			}
			b.qp.PostRecv(verbs.RecvWR{ID: 101})
			post(verbs.SendWR{ID: 6, Op: verbs.OpImmediateSE, Immediate: [8]byte{1, 2, 3}})
			want(a.next(t), verbs.OpImmediateSE, 6)
			wc = b.next(t)
			want(wc, verbs.OpRecvImmediate, 101)
			if wc.Immediate != [8]byte{1, 2, 3} || !wc.Solicited {
				t.Fatalf("%+v", wc)
			}
		end:
			sub, err := b.pd.Register(b.buf[:100], verbs.LocalWrite|verbs.RemoteWrite)
			if err != nil {
				t.Fatal(err)
			}
			b.qp.PostRecv(verbs.RecvWR{ID: 102, SGL: []verbs.SGE{b.mr.SGE(0, 10)}})
			post(verbs.SendWR{ID: 7, Op: verbs.OpSendInvalidate, Invalidate: sub.STag(), SGL: []verbs.SGE{a.mr.SGE(0, 10)}})
			want(a.next(t), verbs.OpSendInvalidate, 7)
			wc = b.next(t)
			want(wc, verbs.OpRecv, 102)
			if !wc.HasInvalidated || wc.Invalidated != sub.STag() || sub.Valid() {
				t.Fatalf("%+v, STag valid: %v", wc, sub.Valid())
			}
			if err := ca.Shutdown(t.Context()); err != nil {
				t.Fatalf("close: %v; the other side: %v %v", err, b.qp.State(), b.qp.Err())
			}
			if s, err := b.qp.WaitState(t.Context(), verbs.Idle, verbs.Error); s != verbs.Idle || err != nil {
				t.Fatalf("the other side is %v, %v", s, b.qp.Err())
			}
		})
	}
}
