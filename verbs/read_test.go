package verbs_test

import (
	"bytes"
	"testing"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// wantTold fails the test unless the peer of a queue pair that failed by itself received
// a Terminate for a local catastrophic error, without the headers of a segment.
func wantTold(t *testing.T, peer *side) {
	t.Helper()
	reach(t, peer.qp, verbs.Error)
	events := peer.wantEvents(verbs.EventTerminateReceived)
	term, ok := events[0].Err.(*rdmap.TerminateError)
	if !ok || !term.Remote || term.Layer != rdmap.LayerRDMA || term.EType != rdmap.LocalCatastrophic || term.DDPHeader != nil || term.ReadRequest != nil {
		t.Errorf("the peer got %v", events[0].Err)
	}
	if peer.qp.Err() != events[0].Err {
		t.Errorf("the queue pair's error is %v, the event's %v", peer.qp.Err(), events[0].Err)
	}
}

// A work request that names the wrong memory completes in error. The requests behind it
// are flushed, the peer receives a Terminate message without headers, and no event is
// raised (Verbs §8.3.2, figure 23).
//
// Claims: R-7.1-2 R-5.4-4 R-5.4-5
// Claims: V-8.1.3.2-1
// Claims: V-6.2.2.3-5 V-6.2.3-8 V-6.2.4-3 V-7.4.1-2
// Claims: V-9.1-4 V-9.1-5
// Claims: V-9.5.2-6 V-9.5.2-7 V-9.5.2-8 V-9.5.2-9 V-9.5.2-10 V-8.3.2-4 P-7-1
func TestAWorkRequestThatNamesTheWrongMemoryFailsAlone(t *testing.T) {
	type mistake struct {
		name string
		wr   func(a, b *side) verbs.SendWR
		want verbs.Status
	}
	foreign := func(a *side) *verbs.MR { return must(must(a.rnic.AllocPD())(a.t).Register(a.buf, allRights))(a.t) }
	sgl := func(mr *verbs.MR, to uint64, n uint32) []verbs.SGE {
		return []verbs.SGE{{STag: mr.STag(), TO: to, Length: n}}
	}
	var mistakes []mistake
	for _, op := range []verbs.Op{verbs.OpSend, verbs.OpWrite, verbs.OpFetchAdd} {
		reads := op == verbs.OpFetchAdd
		n := uint32(8)
		add := func(name string, want verbs.Status, list func(a *side) []verbs.SGE) {
			mistakes = append(mistakes, mistake{op.String() + ": " + name, func(a, b *side) verbs.SendWR {
				return verbs.SendWR{ID: 2, Op: op, SGL: list(a), Remote: b.mr.Remote(0)}
			}, want})
		}
		add("unknown STag", verbs.InvalidSTag, func(a *side) []verbs.SGE { return []verbs.SGE{{STag: 0x100, Length: n}} })
		add("wrong key", verbs.InvalidSTag, func(a *side) []verbs.SGE { return []verbs.SGE{{STag: a.mr.STag() ^ 1, Length: n}} })
		add("deallocated", verbs.InvalidSTag, func(a *side) []verbs.SGE {
			mr := a.region(0, 100, allRights)
			check(a.t, mr.Deallocate())
			return sgl(mr, 0, n)
		})
		add("one octet over the end", verbs.BaseBounds, func(a *side) []verbs.SGE { return sgl(a.region(0, 100, allRights), 93, n) })
		add("wrap", verbs.WrapError, func(a *side) []verbs.SGE { return sgl(a.mr, 1<<64-7, n) })
		add("another domain", verbs.InvalidPD, func(a *side) []verbs.SGE { return sgl(foreign(a), 0, n) })
		rights := verbs.LocalWrite | verbs.RemoteWrite // for what is sent
		if reads {
			rights = verbs.LocalRead | verbs.RemoteRead // for what is put in place
		}
		add("no right", verbs.AccessViolation, func(a *side) []verbs.SGE { return sgl(a.region(0, 100, rights), 0, n) })
		if !reads {
			add("second element", verbs.InvalidSTag, func(a *side) []verbs.SGE {
				return append(sgl(a.mr, 0, 5), verbs.SGE{STag: 0x100, Length: 1})
			})
		}
	}
	for _, status := range []verbs.Status{verbs.InvalidSTag, verbs.InvalidPD} {
		mistakes = append(mistakes, mistake{"invalidation: " + status.String(), func(a, b *side) verbs.SendWR {
			wr := verbs.SendWR{ID: 2, Op: verbs.OpInvalidate, Invalidate: 0x100}
			if status == verbs.InvalidPD {
				wr.Invalidate = foreign(a).STag()
			}
			return wr
		}, status})
	}
	for _, op := range []verbs.Op{verbs.OpRead, verbs.OpReadInvalidate, verbs.OpFetchAdd, verbs.OpWrite} {
		mistakes = append(mistakes, mistake{op.String() + ": of STag zero", func(a, b *side) verbs.SendWR {
			return verbs.SendWR{ID: 2, Op: op, SGL: sgl(a.mr, 0, 8)}
		}, verbs.InvalidSTag})
	}
	for _, op := range []verbs.Op{verbs.OpRead, verbs.OpReadInvalidate} {
		mistakes = append(mistakes, mistake{op.String() + ": into STag zero", func(a, b *side) verbs.SendWR {
			return verbs.SendWR{ID: 2, Op: op, SGL: []verbs.SGE{{Length: 8}}, Remote: b.mr.Remote(0)}
		}, verbs.InvalidSTag})
	}
	for _, tt := range mistakes {
		t.Run(tt.name, func(t *testing.T) {
			overWires(t, func(t *testing.T, w wire) {
				a, b := linked(t, w, reads, reads)
				b.receives(10, 1, 8)
				a.post(a.write(1, b, 0, 8), tt.wr(a, b), a.write(3, b, 100, 8))
				wantDone(t, a.sendCQ, done{1, verbs.Success}, done{2, tt.want}, done{3, verbs.Flushed})
				wantTold(t, b)
				wantDone(t, b.recvCQ, done{10, verbs.Flushed})
				reach(t, a.qp, verbs.Error)
				a.wantEvents()
			})
		})
	}
}

// Claims: V-8.2.2-12
// Claims: V-9.5.2-12 V-8.3.2-4
func TestAReadWithoutResourcesFails(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, verbs.QPConfig{}, reads)
		a.post(a.read(1, b, 0, 0))
		wantDone(t, a.sendCQ, done{1, verbs.ZeroReadResources})
		wantTold(t, b)
	})
}

// A queue pair refuses what it does not enable, with the code of Verbs §8.3.3, an event on
// this side and an error at the peer.
//
// Claims: V-8.1.2.2-2 X-1.1-3
// Claims: V-9.2.5.1-3 V-9.5.3-13 V-9.5.3-14 V-8.3.3-6
func TestAQueuePairRefusesWhatItDoesNotEnable(t *testing.T) {
	for _, tt := range []struct {
		name         string
		cfg          verbs.QPConfig
		op           verbs.Op
		event        verbs.EventID
		layer, etype uint8
		code         uint8
	}{
		{"Writes", verbs.QPConfig{NoRemoteWrite: true}, verbs.OpWrite, verbs.EventWriteDisabled, 1, 1, uint8(ddp.CodeNotAssociated)},
		{"Reads", verbs.QPConfig{NoRemoteRead: true}, verbs.OpRead, verbs.EventReadDisabled, 1, 2, 1},
		{"atomics, for want of Writes", verbs.QPConfig{NoRemoteWrite: true}, verbs.OpFetchAdd, verbs.EventIRRQAccess, 0, 1, 2},
		{"atomics, for want of Reads", verbs.QPConfig{NoRemoteRead: true}, verbs.OpFetchAdd, verbs.EventIRRQAccess, 0, 1, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			overWires(t, func(t *testing.T, w wire) {
				tt.cfg.IRD = 4
				a, b := linked(t, w, reads, tt.cfg)
				before := bytes.Clone(b.buf)
				for i := range a.buf {
					a.buf[i] = 0xFF
				}
				none := verbs.SendWR{ID: 1, Op: tt.op, SGL: []verbs.SGE{{}}, Flags: verbs.Signaled}
				if tt.op != verbs.OpFetchAdd {
					a.post(none) // of no octets: nothing is checked
					wantDone(t, a.sendCQ, done{1, verbs.Success})
				}
				a.post(verbs.SendWR{ID: 2, Op: tt.op, SGL: []verbs.SGE{a.mr.SGE(0, 8)}, Remote: b.mr.Remote(0), Flags: verbs.Signaled})
				b.wantEvents(tt.event)
				a.wantEvents(verbs.EventTerminateReceived)
				reach(t, a.qp, verbs.Error)
				reach(t, b.qp, verbs.Error)
				term, ok := a.qp.Err().(*rdmap.TerminateError)
				if !ok || term.Layer != tt.layer || term.EType != tt.etype || term.Code != tt.code {
					t.Errorf("the peer got %v, expected %d/%d/%02x", a.qp.Err(), tt.layer, tt.etype, tt.code)
				}
				if !bytes.Equal(b.buf, before) {
					t.Error("memory was changed")
				}
				if wc := take(t, a.sendCQ, 1)[0]; wc.ID != 2 || tt.op != verbs.OpWrite && wc.Status != verbs.RemoteTermination {
					t.Errorf("completion of %d: %v", wc.ID, wc.Status)
				}
			})
		})
	}
}

// The sink of a Read needs Remote Write and a queue pair that takes answers, or
// Local Write by option (Verbs §7.6.3, figure 21). It is looked at when the
// answer comes, not before, and the Read is flushed (Verbs §7.4.2).
//
// Claims: V-7.4.2-5
// Claims: R-4.4-6
func TestTheSinkOfAReadNeedsTheRightThatIsConfigured(t *testing.T) {
	const writable = verbs.LocalWrite | verbs.RemoteWrite
	all := func(mr *verbs.MR) verbs.SGE { return mr.SGE(0, 17) }
	for _, tt := range []struct {
		name   string
		cfg    verbs.QPConfig
		rights memory.Access
		sink   func(*verbs.MR) verbs.SGE
		event  verbs.EventID // 0 is success
	}{
		{"remote write", verbs.QPConfig{}, writable, all, 0},
		{"local write", verbs.QPConfig{}, verbs.LocalWrite, all, verbs.EventProtectionAccess},
		{"local write, by option", verbs.QPConfig{ReadSinkLocalWrite: true}, verbs.LocalWrite, all, 0},
		{"local read, by option", verbs.QPConfig{ReadSinkLocalWrite: true}, verbs.LocalRead, all, verbs.EventProtectionAccess},
		{"answers not enabled", verbs.QPConfig{NoRemoteWrite: true}, writable, all, verbs.EventWriteDisabled},
		{"wrong key", verbs.QPConfig{}, writable, func(mr *verbs.MR) verbs.SGE { return verbs.SGE{STag: mr.STag() ^ 1, Length: 17} }, verbs.EventProtectionSTag},
		{"one octet over the end", verbs.QPConfig{}, writable, func(mr *verbs.MR) verbs.SGE { return mr.SGE(84, 17) }, verbs.EventProtectionBounds},
		{"wrap", verbs.QPConfig{}, writable, func(mr *verbs.MR) verbs.SGE { return verbs.SGE{STag: mr.STag(), TO: 1<<64 - 7, Length: 17} }, verbs.EventProtectionWrap},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.ORD = 4
			bubble(t, tt.cfg, reads, func(t *testing.T, s *table) {
				copy(s.b.buf, "octets to be read")
				mr := s.a.region(0, 100, tt.rights)
				s.y.Hold()
				s.a.post(verbs.SendWR{ID: 1, Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{tt.sink(mr)}, Remote: s.b.mr.Remote(0)})
				quiesce()
				wantNone(t, s.a.sendCQ)
				if at := s.a.qp.State(); at != verbs.RTS {
					t.Errorf("the queue pair is %v before the answer", at)
				}
				s.y.Resume()
				if tt.event != 0 {
					wantDone(t, s.a.sendCQ, done{1, verbs.Flushed})
					s.a.wantEvents(tt.event)
					return
				}
				wantDone(t, s.a.sendCQ, done{1, verbs.Success})
				if string(s.a.buf[:17]) != "octets to be read" {
					t.Errorf("read %q", s.a.buf[:17])
				}
			})
		})
	}
}

// RDMA Read with Invalidate Local STag: after the data, before the completion.
//
// Claims: V-8.1.2.2-4 V-8.2.2.1-2 V-10.1.2-4
// Claims: V-7.8-1
func TestAReadInvalidatesItsSink(t *testing.T) {
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		copy(s.b.buf, "octets to be read")
		mr := s.a.region(100, 17, allRights)
		s.y.Hold()
		s.a.post(verbs.SendWR{ID: 1, Op: verbs.OpReadInvalidate, Flags: verbs.Signaled, SGL: []verbs.SGE{mr.SGE(0, 17)}, Remote: s.b.mr.Remote(0)})
		quiesce()
		if !mr.Valid() {
			t.Error("the sink is invalid before the answer")
		}
		s.y.Resume()
		wantDone(t, s.a.sendCQ, done{1, verbs.Success})
		if mr.Valid() || string(s.a.buf[100:117]) != "octets to be read" {
			t.Errorf("valid %v, read %q", mr.Valid(), s.a.buf[100:117])
		}
		s.a.post(verbs.SendWR{ID: 2, Op: verbs.OpReadInvalidate, SGL: []verbs.SGE{mr.SGE(0, 17)}, Remote: s.b.mr.Remote(0)})
		wantDone(t, s.a.sendCQ, done{2, verbs.Flushed})
		s.a.wantEvents(verbs.EventProtectionSTag)
	})
}

// The sink goes while the answer is under way: the Read is flushed, for it is
// the answer that is refused.
func TestASinkThatGoesBeforeTheAnswerIsNotWritten(t *testing.T) {
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		copy(s.b.buf, "octets to be read")
		mr := s.a.region(100, 17, allRights)
		s.y.Hold()
		s.a.post(verbs.SendWR{ID: 1, Op: verbs.OpRead, SGL: []verbs.SGE{mr.SGE(0, 17)}, Remote: s.b.mr.Remote(0)}, s.a.write(2, s.b, 0, 8))
		quiesce()
		check(t, mr.Deallocate())
		s.y.Resume()
		wantDone(t, s.a.sendCQ, done{1, verbs.Flushed}, done{2, verbs.Flushed})
		s.a.wantEvents(verbs.EventProtectionSTag)
		if !bytes.Equal(s.a.buf[100:117], make([]byte, 17)) {
			t.Errorf("octets arrived: %q", s.a.buf[100:117])
		}
	})
}

// A request that fails at its end completes in error, and what was sent after it
// is flushed though the peer has it.
//
// Claims: V-8.1.3.1-2 V-6.2.4-5
func TestWhatWasSentAfterAFailedRequestIsFlushed(t *testing.T) {
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		mr := s.a.region(0, 8, allRights)
		s.y.Hold()
		s.a.post(verbs.SendWR{ID: 1, Op: verbs.OpFetchAdd, SGL: []verbs.SGE{mr.SGE(0, 8)}, Remote: s.b.mr.Remote(0)},
			s.a.write(2, s.b, 0, 8), s.a.read(3, s.b, 0, 8))
		quiesce()
		check(t, mr.Deallocate())
		s.y.Resume()
		wantDone(t, s.a.sendCQ, done{1, verbs.InvalidSTag}, done{2, verbs.Flushed}, done{3, verbs.Flushed})
		wantTold(t, s.b)
		s.a.wantEvents()
	})
}

// A receive whose memory is wrong completes in error when a message comes for
// it, and not before (Verbs §8.3.2).
//
// Claims: V-8.1.2.1-2
// Claims: V-7.4.1-2
// Claims: V-9.5.2-6 V-9.5.2-7 V-9.5.2-8 V-9.5.2-10 V-8.3.2-2
func TestAReceiveThatNamesTheWrongMemoryFailsWhenItIsNeeded(t *testing.T) {
	for _, tt := range []struct {
		name string
		sgl  func(b *side) []verbs.SGE
		want verbs.Status
	}{
		{"unknown STag", func(b *side) []verbs.SGE { return []verbs.SGE{{STag: 0x100, Length: 100}} }, verbs.InvalidSTag},
		{"bounds", func(b *side) []verbs.SGE { return []verbs.SGE{b.region(0, 50, allRights).SGE(0, 100)} }, verbs.BaseBounds},
		{"no right", func(b *side) []verbs.SGE { return []verbs.SGE{b.region(0, 100, verbs.LocalRead).SGE(0, 100)} }, verbs.AccessViolation},
		{"wrap", func(b *side) []verbs.SGE { return []verbs.SGE{{STag: b.mr.STag(), TO: 1<<64 - 5, Length: 100}} }, verbs.WrapError},
		{"too short", func(b *side) []verbs.SGE { return []verbs.SGE{b.mr.SGE(0, 59)} }, verbs.BaseBounds},
		{"no buffer", func(b *side) []verbs.SGE { return nil }, verbs.BaseBounds},
	} {
		t.Run(tt.name, func(t *testing.T) {
			overWires(t, func(t *testing.T, w wire) {
				a, b := linked(t, w, reads, reads)
				before := bytes.Clone(b.buf)
				for i := range a.buf {
					a.buf[i] = 0xFF
				}
				b.receives(1, 1, 8)
				check(t, b.qp.PostRecv(verbs.RecvWR{ID: 2, SGL: tt.sgl(b)}))
				b.receives(3, 1, 8)
				a.post(a.send(1, 0, 0), a.send(2, 0, 60))
				wantDone(t, b.recvCQ, done{1, verbs.Success}, done{2, tt.want}, done{3, verbs.Flushed})
				reach(t, b.qp, verbs.Error)
				b.wantEvents()
				if !bytes.Equal(b.buf, before) {
					t.Error("octets were placed")
				}
			})
		})
	}
}
