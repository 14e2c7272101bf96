package verbs_test

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// A culprit is a work request that fails.
type culprit struct {
	name   string
	status verbs.Status
	// begin posts to a's queue pair, whose peer is b's, the request with ID 7:
	// to the send queue, or to the receive queue and has b send to it.
	begin func(a, b *side)
	wire  [3]uint8 // layer, error type and code of the Terminate to b; 0/0/00 for a request of a's own
	mode  verbs.Mode
	cfg   verbs.QPConfig // of a's queue pair
}

// sendCulprit is one in the send queue.
func sendCulprit(name string, status verbs.Status, cfg verbs.QPConfig, wr func(a, b *side) verbs.SendWR) culprit {
	return culprit{name: name, status: status, cfg: cfg, begin: func(a, b *side) {
		w := wr(a, b)
		w.ID = 7
		a.post(w)
	}}
}

// fastCulprit is a Fast-Register, with a change, of a region of two entries
// without remote rights; it would else be in order.
func fastCulprit(name string, status verbs.Status, change func(a *side, f *verbs.FastRegister)) culprit {
	return sendCulprit("Fast-Register: "+name, status, verbs.QPConfig{Privileged: true}, func(a, _ *side) verbs.SendWR {
		mr := must(a.pd.AllocMR(2, false))(a.t)
		f := verbs.FastRegister{STag: mr.STag() | 9, List: *list(2, 0, 5000), Access: verbs.LocalRead, VA: 1 << 20}
		change(a, &f)
		return verbs.SendWR{Op: verbs.OpFastRegister, FastRegister: &f}
	})
}

// bindCulprit is a Bind, with a change, of a window to a region of 100 octets at
// 4096; it would else be in order.
func bindCulprit(name string, status verbs.Status, change func(a *side, b *verbs.Binding)) culprit {
	return sendCulprit("Bind: "+name, status, verbs.QPConfig{BindWindows: true}, func(a, _ *side) verbs.SendWR {
		mr := must(a.pd.RegisterMR(verbs.MRConfig{Buf: a.buf[:100], VA: 4096, Access: allRights | verbs.BindWindow}))(a.t)
		binding := must(a.pd.AllocMW())(a.t).Binding(mr, 0, 100, verbs.RemoteRead)
		change(a, &binding)
		return verbs.SendWR{Op: verbs.OpBind, Bind: &binding}
	})
}

// recvCulprit is a receive, for the message of a work request of the peer's.
func recvCulprit(name string, status verbs.Status, wire [3]uint8, sgl func(a *side) []verbs.SGE, wr func(a, b *side) verbs.SendWR) culprit {
	return culprit{name: "Receive: " + name, status: status, wire: wire, begin: func(a, b *side) {
		check(a.t, a.qp.PostRecv(verbs.RecvWR{ID: 7, SGL: sgl(a)}))
		b.post(wr(a, b))
	}}
}

// culprits are requests for the errors of figure 23.
func culprits() []culprit {
	none := verbs.QPConfig{}
	send := func(sge func(a *side) verbs.SGE) func(a, b *side) verbs.SendWR {
		return func(a, _ *side) verbs.SendWR { return verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{sge(a)}} }
	}
	foreign := func(a *side) *verbs.MR { return must(must(a.rnic.AllocPD())(a.t).Register(a.buf[:8], allRights))(a.t) }
	whole := func(a *side) []verbs.SGE { return []verbs.SGE{a.mr.SGE(0, 8)} }
	plain := func(a, b *side) verbs.SendWR { return verbs.SendWR{Op: verbs.OpSend, SGL: whole(b)} }
	invalidate := func(tag func(a *side) memory.STag) func(a, b *side) verbs.SendWR {
		return func(a, b *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpSendInvalidate, SGL: whole(b), Invalidate: tag(a)}
		}
	}
	own := [3]uint8{}
	return []culprit{
		sendCulprit("Send: unknown STag", verbs.InvalidSTag, none, send(func(a *side) verbs.SGE { return verbs.SGE{STag: 0x100, Length: 8} })),
		sendCulprit("Send: a window", verbs.InvalidSTag, none, send(func(a *side) verbs.SGE {
			return verbs.SGE{STag: must(a.pd.AllocMW())(a.t).STag(), Length: 8}
		})),
		sendCulprit("Send: STag zero without the right to it", verbs.InvalidSTag, none, send(func(a *side) verbs.SGE { return verbs.SGE{Length: 8} })),
		sendCulprit("Send: bounds", verbs.BaseBounds, none, send(func(a *side) verbs.SGE { return a.region(0, 8, allRights).SGE(1, 8) })),
		sendCulprit("Send: no right", verbs.AccessViolation, none, send(func(a *side) verbs.SGE { return a.region(0, 8, verbs.LocalWrite).SGE(0, 8) })),
		sendCulprit("Send: another domain", verbs.InvalidPD, none, send(func(a *side) verbs.SGE { return foreign(a).SGE(0, 8) })),
		sendCulprit("Send: wrap", verbs.WrapError, none, send(func(a *side) verbs.SGE { return verbs.SGE{STag: a.mr.STag(), TO: 1<<64 - 4, Length: 8} })),
		sendCulprit("Send: too long", verbs.InvalidLength, none, func(a, _ *side) verbs.SendWR {
			half := verbs.SGE{STag: a.mr.STag(), Length: 1 << 31}
			return verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{half, half}}
		}),
		sendCulprit("RDMA Write to STag zero", verbs.InvalidSTag, none, func(a, _ *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpWrite, SGL: whole(a)}
		}),
		sendCulprit("RDMA Read from STag zero", verbs.InvalidSTag, reads, func(a, _ *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpRead, SGL: whole(a)}
		}),
		sendCulprit("RDMA Read into STag zero", verbs.InvalidSTag, verbs.QPConfig{ORD: 4, Privileged: true}, func(_, b *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{{Length: 8}}, Remote: b.mr.Remote(0)}
		}),
		sendCulprit("RDMA Read without ORD", verbs.ZeroReadResources, none, func(a, b *side) verbs.SendWR { return a.read(7, b, 0, 8) }),
		sendCulprit("Invalidate: unknown STag", verbs.InvalidSTag, none, func(_, _ *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpInvalidate, Invalidate: 0x100}
		}),
		sendCulprit("Invalidate: another domain", verbs.InvalidPD, none, func(a, _ *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpInvalidate, Invalidate: foreign(a).STag()}
		}),

		bindCulprit("no such window", verbs.InvalidWindow, func(a *side, b *verbs.Binding) { b.Window = a.mr.STag() }),
		bindCulprit("no such region", verbs.InvalidRegion, func(_ *side, b *verbs.Binding) { b.Region ^= 1 }),
		bindCulprit("the region is Invalid", verbs.InvalidRegion, func(a *side, b *verbs.Binding) { b.Region = must(a.pd.AllocMR(1, true))(a.t).STag() }),
		bindCulprit("bounds", verbs.BaseBounds, func(_ *side, b *verbs.Binding) { b.Length = 101 }),
		bindCulprit("wrap", verbs.WrapError, func(_ *side, b *verbs.Binding) { b.VA = 1<<64 - 1 }),
		bindCulprit("another domain", verbs.InvalidPD, func(a *side, b *verbs.Binding) {
			b.Region = must(must(a.rnic.AllocPD())(a.t).RegisterMR(verbs.MRConfig{Buf: a.buf[:100], VA: 4096, Access: allRights | verbs.BindWindow}))(a.t).STag()
		}),
		bindCulprit("a region that may not be bound to", verbs.AccessViolation, func(a *side, b *verbs.Binding) { b.Region = a.mr.STag() }),
		bindCulprit("the window is bound", verbs.STagNotInvalid, func(a *side, b *verbs.Binding) {
			a.post(verbs.SendWR{ID: 1, Op: verbs.OpBind, Bind: b})
		}),
		{name: "Bind: not enabled", status: verbs.AccessViolation, begin: bindCulprit("", 0, func(*side, *verbs.Binding) {}).begin},

		fastCulprit("unknown STag", verbs.InvalidSTag, func(_ *side, f *verbs.FastRegister) { f.STag += 0x100 }),
		fastCulprit("another domain", verbs.InvalidPD, func(a *side, f *verbs.FastRegister) {
			f.STag = must(must(a.rnic.AllocPD())(a.t).AllocMR(2, false))(a.t).STag()
		}),
		fastCulprit("the region is Valid", verbs.STagNotInvalid, func(a *side, f *verbs.FastRegister) { f.STag = a.mr.STag() }),
		fastCulprit("page size", verbs.InvalidPageSize, func(_ *side, f *verbs.FastRegister) { f.List.Size = 3000 }),
		fastCulprit("an entry of another size", verbs.InvalidBufferListEntry, func(_ *side, f *verbs.FastRegister) { f.List.Buffers[1] = f.List.Buffers[1][1:] }),
		fastCulprit("offset behind the page", verbs.InvalidFBO, func(_ *side, f *verbs.FastRegister) { f.List.FBO = memory.MinPageSize }),
		fastCulprit("length", verbs.InvalidFRLength, func(_ *side, f *verbs.FastRegister) { f.List.Length = 2*memory.MinPageSize + 1 }),
		fastCulprit("rights", verbs.InvalidFRAccess, func(_ *side, f *verbs.FastRegister) { f.Access |= verbs.RemoteRead }),
		fastCulprit("too many pages", verbs.BufferListTooLong, func(_ *side, f *verbs.FastRegister) { f.List = *list(3, 0, 3*memory.MinPageSize) }),
		fastCulprit("a VA that does not fit", verbs.InvalidVA, func(_ *side, f *verbs.FastRegister) { f.VA++ }),
		fastCulprit("wrap", verbs.WrapError, func(_ *side, f *verbs.FastRegister) { f.VA = 1<<64 - memory.MinPageSize }),
		{name: "Fast-Register: not privileged", status: verbs.NotPrivileged, begin: fastCulprit("", 0, func(*side, *verbs.FastRegister) {}).begin},
		{name: "Fast-Register: block size", status: verbs.InvalidBufferSize, mode: verbs.BlockMode, cfg: verbs.QPConfig{Privileged: true},
			begin: fastCulprit("", 0, func(_ *side, f *verbs.FastRegister) { f.List.Size = 63 }).begin},

		recvCulprit("unknown STag", verbs.InvalidSTag, own, func(*side) []verbs.SGE { return []verbs.SGE{{STag: 0x100, Length: 8}} }, plain),
		recvCulprit("bounds", verbs.BaseBounds, own, func(a *side) []verbs.SGE { return []verbs.SGE{a.region(0, 8, allRights).SGE(1, 8)} }, plain),
		recvCulprit("no right", verbs.AccessViolation, own, func(a *side) []verbs.SGE { return []verbs.SGE{a.region(0, 8, verbs.LocalRead).SGE(0, 8)} }, plain),
		recvCulprit("another domain", verbs.InvalidPD, own, func(a *side) []verbs.SGE { return []verbs.SGE{foreign(a).SGE(0, 8)} }, plain),
		recvCulprit("wrap", verbs.WrapError, own, func(a *side) []verbs.SGE { return []verbs.SGE{{STag: a.mr.STag(), TO: 1<<64 - 4, Length: 8}} }, plain),
		recvCulprit("too long", verbs.InvalidLength, own, func(a *side) []verbs.SGE {
			half := verbs.SGE{STag: a.mr.STag(), Length: 1 << 31}
			return []verbs.SGE{half, half}
		}, plain),
		recvCulprit("longer than the receive", verbs.BaseBounds, [3]uint8{1, 2, 5}, func(a *side) []verbs.SGE { return []verbs.SGE{a.mr.SGE(0, 7)} }, plain),
		recvCulprit("invalidates an unknown STag", verbs.InvalidateRefused, [3]uint8{0, 1, 0}, whole, invalidate(func(*side) memory.STag { return 0x100 })),
		recvCulprit("invalidates what is local", verbs.InvalidateRefused, [3]uint8{0, 1, 2}, whole, invalidate(func(a *side) memory.STag {
			return a.region(0, 8, verbs.LocalRead).STag()
		})),
		recvCulprit("invalidates what is of another domain", verbs.InvalidateRefused, [3]uint8{0, 1, 9}, whole, invalidate(func(a *side) memory.STag { return foreign(a).STag() })),
		recvCulprit("invalidates what is Shared", verbs.InvalidateRefused, [3]uint8{0, 1, 9}, whole, invalidate(func(a *side) memory.STag {
			return must(a.mr.RegisterShared(a.pd, verbs.SharedConfig{Access: allRights}))(a.t).STag()
		})),
	}
}

// Each completion error ends the stream: the queue pair goes to Terminate and on
// to Error, the peer gets a Terminate message, and Query returns it in both states
// (Verbs §8.3.2, figure 23). No event does (Verbs §6.2.3).
//
// Claims: V-8.3.2-1 V-8.1.3.2-2 V-8.1.3.2.1-1 V-8.1.3.2.1-2 V-6.2.3-13
// Claims: V-7.10.2-9 V-7.3.2.5-6 V-7.8-8 V-9.3.1.1-14
// Claims: V-9.2.5.2-5 V-6.2.2.3-2
// Claims: V-9.5.2-6 V-9.5.2-7 V-9.5.2-8 V-9.5.2-9 V-9.5.2-10 V-9.5.2-11 V-9.5.2-12 V-9.5.2-13 V-9.5.2-14 V-9.5.2-15 V-9.5.2-16 V-9.5.2-17 V-9.5.2-18
// Claims: V-9.5.2-19 V-9.5.2-20 V-9.5.2-21 V-9.5.2-22 V-9.5.2-23 V-9.5.2-24 V-9.5.2-25 V-8.3-1 V-8.3.2-2 V-8.3.2-3 V-8.3.2-4 V-8.3.2-7
func TestEachCompletionErrorEndsTheStream(t *testing.T) {
	seen := map[verbs.Status]bool{
		verbs.Success: true, verbs.Flushed: true,
		verbs.InvalidWQE:        true,                                // of RFC 7306, over a stream that does not have it
		verbs.LocalCatastrophic: true, verbs.RemoteTermination: true, // which have tests of their own
	}
	for _, tt := range culprits() {
		seen[tt.status] = true
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := newSideOf(t, verbs.Config{Mode: tt.mode}, tt.cfg), newSide(t, reads)
				x, y := iwarptest.Pipe()
				join(t, b.qp, a.qp, y, x, cm.Params{})
				b.post(verbs.SendWR{Op: verbs.OpWrite}) // so that a may send
				quiesce()
				x.Hold() // the Terminate message
				tt.begin(a, b)
				quiesce()
				cq := a.sendCQ
				if tt.name[:4] == "Rece" {
					cq = a.recvCQ
				}
				wantDone(t, cq, done{7, tt.status})
				var query [2]verbs.QPAttributes
				for i, state := range []verbs.State{verbs.Terminate, verbs.Error} {
					if i == 1 {
						x.Resume()
						quiesce()
					}
					query[i] = must(a.qp.Query())(t)
					if query[i].State != state {
						t.Fatalf("the queue pair is %v, expected %v", query[i].State, state)
					}
				}
				received, ok := b.qp.Err().(*rdmap.TerminateError)
				if !ok || [3]uint8{received.Layer, received.EType, received.Code} != tt.wire {
					t.Fatalf("the peer was told %v, expected %v", b.qp.Err(), tt.wire)
				}
				if tt.wire == [3]uint8{} && (received.DDPHeader != nil || received.ReadRequest != nil) {
					t.Errorf("the Terminate names a segment: %v", received)
				}
				wantTerminateQueried(t, query[0], received, true)
				wantTerminateQueried(t, query[1], received, true)
				wantTerminateQueried(t, must(b.qp.Query())(t), received, false)
				a.wantEvents()
			})
		})
	}
	for s := verbs.Success; s.String() != "unknown status"; s++ {
		if !seen[s] {
			t.Errorf("%v was not had", s)
		}
	}
}

// wantTerminateQueried compares the Terminate message that Query returns with the one that
// the peer received.
func wantTerminateQueried(t *testing.T, q verbs.QPAttributes, received *rdmap.TerminateError, local bool) {
	t.Helper()
	if !bytes.Equal(q.Terminate, received.Raw) || q.TerminateLocal != local || q.TerminateError == nil || q.TerminateError.Layer != received.Layer ||
		q.TerminateError.EType != received.EType || q.TerminateError.Code != received.Code {
		t.Errorf("in %v Query returns Terminate % x, local %v (%v), expected % x, local %v", q.State, q.Terminate, q.TerminateLocal, q.TerminateError, received.Raw, local)
	}
}
