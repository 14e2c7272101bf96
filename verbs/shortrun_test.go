package verbs_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// Short Writes that are posted together, among others, arrive where they belong, and complete in
// the order of posting.
func TestShortWritesPostedTogetherArrive(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		for _, p := range []cm.Params{{}, {MPA: mpa.Config{NoCRC: true}}, {MPA: mpa.Config{Markers: true}}} {
			t.Run(fmt.Sprintf("CRC %v, markers %v", !p.MPA.NoCRC, p.MPA.Markers), func(t *testing.T) {
				deep := verbs.QPConfig{SendDepth: 512, IRD: 4, ORD: 4, WriteSGEs: 2}
				a, b := newSide(t, deep), newSide(t, deep)
				w.connect(t, a.qp, b.qp, p)
				for i := range a.buf {
					a.buf[i] = byte(i*7 + i>>8)
				}
				expected := bytes.Clone(a.buf)
				others := bytes.Repeat([]byte{0xee}, len(a.buf))
				second := must(a.pd.Register(others, allRights))(t)
				var wrs []verbs.SendWR
				var want []done
				at := 0
				for i := range 400 {
					n := 1 + i*37%600
					wr := a.write(uint64(i), b, at, n)
					wr.SGL[0] = a.mr.SGE(at, n)
					from := n // where octets of others begin
					switch i % 23 {
					case 5:
						wr.SGL[0], from = second.SGE(at, n), 0
					case 9:
						wr.SGL, from = []verbs.SGE{a.mr.SGE(at, 1), second.SGE(at+1, n-1)}, 1
					case 13:
						wr.Flags |= verbs.ReadFence
					case 17:
						wr = a.read(uint64(i), b, 1<<19, 8)
						wr.SGL[0] = a.mr.SGE(1<<19, 8)
						n, from = 0, 0
					}
					copy(expected[at+from:at+n], others)
					if i%3 == 0 && wr.Op == verbs.OpWrite {
						wr.Flags &^= verbs.Signaled
					} else {
						want = append(want, done{uint64(i), verbs.Success})
					}
					wrs = append(wrs, wr)
					at += n
				}
				check(t, b.qp.PostRecv(verbs.RecvWR{ID: 9}))
				a.post(wrs...)
				wantDone(t, a.sendCQ, want...)
				a.post(verbs.SendWR{Op: verbs.OpSend}) // arrives behind them
				wantDone(t, b.recvCQ, done{9, verbs.Success})
				if !bytes.Equal(b.buf[:at], expected[:at]) {
					t.Error("what arrived is not what was sent")
				}
			})
		}
	})
}

// A fence holds a short Write, or Read, back though the one before it may leave.
//
// Claims: V-8.2.2.2-1 V-9.3.1.1-5
func TestAFenceEndsARunOfShortOperations(t *testing.T) {
	for _, c := range []struct {
		name string
		wr   func(a, b *side, id uint64) verbs.SendWR
		fpdu uint64 // octets of each
	}{
		{"Write", func(a, b *side, id uint64) verbs.SendWR { return a.write(id, b, 0, 8) }, 28},
		{"Read", func(a, b *side, id uint64) verbs.SendWR { return a.read(id, b, 0, 8) }, 52},
	} {
		t.Run(c.name, func(t *testing.T) {
			deep := verbs.QPConfig{IRD: 16, ORD: 16}
			bubble(t, deep, deep, func(t *testing.T, s *table) {
				s.y.Hold()
				s.a.post(s.a.read(1, s.b, 0, 8))
				synctest.Wait()
				before := s.x.Written()
				var wrs []verbs.SendWR
				want := []done{{1, verbs.Success}}
				for id := range uint64(5) {
					wr := c.wr(s.a, s.b, 2+id)
					if id == 3 {
						wr.Flags |= verbs.ReadFence
					}
					wrs, want = append(wrs, wr), append(want, done{2 + id, verbs.Success})
				}
				s.a.post(wrs...)
				synctest.Wait()
				if n := uint64(s.x.Written() - before); n != 3*c.fpdu {
					t.Errorf("%d octets were sent, expected three FPDUs of %d", n, c.fpdu)
				}
				s.y.Resume()
				wantDone(t, s.a.sendCQ, want...)
			})
		})
	}
}

// Of short Writes that are posted together one is at fault: those before it are in place, that one
// completes with its status, and the others are flushed.
func TestAShortWriteAtFaultAmongOthersIsTheOneThatFails(t *testing.T) {
	for _, f := range []struct {
		name   string
		status verbs.Status
		spoil  func(a *side, wr *verbs.SendWR)
	}{
		{"unknown STag", verbs.InvalidSTag, func(_ *side, wr *verbs.SendWR) { wr.SGL[0].STag ^= 1 }},
		{"out of bounds", verbs.BaseBounds, func(a *side, wr *verbs.SendWR) { wr.SGL[0] = a.mr.SGE(len(a.buf)-1, 2) }},
		{"no right", verbs.AccessViolation, func(a *side, wr *verbs.SendWR) {
			wr.SGL[0] = must(a.pd.Register(a.buf, verbs.LocalWrite))(a.t).SGE(0, 2)
		}},
		{"another domain", verbs.InvalidPD, func(a *side, wr *verbs.SendWR) {
			wr.SGL[0] = must(must(a.rnic.AllocPD())(a.t).Register(a.buf, allRights))(a.t).SGE(0, 2)
		}},
		{"remote STag of zero", verbs.InvalidSTag, func(_ *side, wr *verbs.SendWR) { wr.Remote.STag = 0 }},
	} {
		t.Run(f.name, func(t *testing.T) {
			overWires(t, func(t *testing.T, w wire) {
				for _, bad := range []int{1, 2, 40, 99} {
					a, b := linked(t, w, verbs.QPConfig{SendDepth: 128}, verbs.QPConfig{})
					for i := range a.buf[:200] {
						a.buf[i] = 1
					}
					var wrs []verbs.SendWR
					var want []done
					for i := range 100 {
						wr := a.write(uint64(i), b, 2*i, 2)
						wr.SGL[0] = a.mr.SGE(2*i, 2)
						status := verbs.Success
						switch {
						case i == bad:
							f.spoil(a, &wr)
							status = f.status
						case i > bad:
							status = verbs.Flushed
						}
						wrs, want = append(wrs, wr), append(want, done{uint64(i), status})
					}
					a.post(wrs...)
					reach(t, a.qp, verbs.Error)
					reach(t, b.qp, verbs.Error)
					wantDone(t, a.sendCQ, want...)
					if n := bytes.Count(b.buf[:200], []byte{1}); n != 2*bad || bytes.Count(b.buf[:2*bad], []byte{1}) != n {
						t.Errorf("%d octets are in place, expected the first %d", n, 2*bad)
					}
				}
			})
		})
	}
}

// Of short Writes that arrive together one has a target that is refused: those before it are in
// place, and it is the one that the Terminate message is about.
func TestARefusedTargetAmongShortWritesIsTheOneAtFault(t *testing.T) {
	for _, f := range []struct {
		name  string
		code  uint8
		spoil func(b *side, wr *verbs.SendWR)
	}{
		{"unknown STag", 0, func(_ *side, wr *verbs.SendWR) { wr.Remote.STag ^= 1 }},
		{"out of bounds", 1, func(b *side, wr *verbs.SendWR) { wr.Remote = b.mr.Remote(len(b.buf) - 1) }},
		{"no right", 2, func(b *side, wr *verbs.SendWR) {
			wr.Remote = must(b.pd.Register(b.buf, verbs.LocalWrite))(b.t).Remote(0)
		}},
		{"another domain", 2, func(b *side, wr *verbs.SendWR) {
			wr.Remote = must(must(b.rnic.AllocPD())(b.t).Register(b.buf, allRights))(b.t).Remote(0)
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			overWires(t, func(t *testing.T, w wire) {
				for _, bad := range []int{1, 2, 40, 99} {
					a, b := linked(t, w, verbs.QPConfig{SendDepth: 128}, verbs.QPConfig{})
					for i := range a.buf[:200] {
						a.buf[i] = 1
					}
					var wrs []verbs.SendWR
					for i := range 100 {
						wr := a.write(uint64(i), b, 2*i, 2)
						if i == bad {
							f.spoil(b, &wr)
						}
						wrs = append(wrs, wr)
					}
					remote := wrs[bad].Remote
					a.post(wrs...)
					reach(t, a.qp, verbs.Error)
					reach(t, b.qp, verbs.Error)
					var said *rdmap.TerminateError
					if !errors.As(a.qp.Err(), &said) || said.Layer != rdmap.LayerDDP || said.EType != ddp.TaggedBuffer || said.Code != f.code {
						t.Fatalf("%d: %v, expected code %d of DDP's tagged buffers", bad, a.qp.Err(), f.code)
					}
					var h ddp.Tagged
					if !h.Parse(said.DDPHeader) || h.STag != uint32(remote.STag) || h.TO != remote.TO {
						t.Errorf("%d: the Terminate message is about %+v, expected %v", bad, h, remote)
					}
					if n := bytes.Count(b.buf[:200], []byte{1}); n != 2*bad || bytes.Count(b.buf[:2*bad], []byte{1}) != n {
						t.Errorf("%d octets are in place, expected the first %d", n, 2*bad)
					}
				}
			})
		})
	}
}

// Short Sends, Reads and Writes that are posted together, at both ends, arrive, complete in the
// order of posting, and fill the receives in the order of these.
func TestShortOperationsPostedTogetherComplete(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		for _, p := range []cm.Params{{}, {MPA: mpa.Config{NoCRC: true}}, {MPA: mpa.Config{Markers: true}}} {
			for _, local := range []bool{false, true} {
				deep := verbs.QPConfig{SendDepth: 512, RecvDepth: 512, RecvSGEs: 2, IRD: 32, ORD: 32, ReadSinkLocalWrite: local}
				a, b := newSide(t, deep), newSide(t, deep)
				w.connect(t, a.qp, b.qp, p)
				a.exchange(b)
			}
		}
	})
}

// exchange has both sides send 300 operations to each other, in stretches of one kind.
func (a *side) exchange(b *side) {
	const n, size, pieces = 300, 500, 100
	sides := [...]*side{a, b}
	for i, s := range sides {
		for at := range s.buf {
			s.buf[at] = byte(at*7 + at>>8 + i)
		}
		// Receives go to the upper half.
		for at := range n {
			sgl := []verbs.SGE{s.mr.SGE(1<<19+at*size, size)}
			if at%7 == 3 { // in two pieces, which are apart
				sgl = []verbs.SGE{s.mr.SGE(1<<19+at*size, pieces), s.mr.SGE(1<<19+1<<18+at*size, size)}
			}
			check(s.t, s.qp.PostRecv(verbs.RecvWR{ID: uint64(at), SGL: sgl}))
		}
	}
	var want [2][]done
	var lengths [2][]uint32
	expected := [2][]byte{bytes.Clone(a.buf), bytes.Clone(b.buf)}
	var lists [2][]verbs.SendWR
	for i, s := range sides {
		peer := 1 - i
		for at := range n {
			length := 1 + at*37%size
			wr := verbs.SendWR{ID: uint64(at), Flags: verbs.Signaled, SGL: []verbs.SGE{s.mr.SGE(at*size, length)}}
			switch (at/20 + 1) % 5 { // the last are Sends, which arrive behind the others
			case 0, 3:
				wr.Op = verbs.OpSend
			case 1:
				wr.Op = verbs.OpSendSE
			case 2: // of what nobody changes
				wr.Op, wr.Remote = verbs.OpRead, sides[peer].mr.Remote(1<<18+at*size)
				copy(expected[i][at*size:][:length], sides[peer].buf[1<<18+at*size:])
			case 4:
				wr.Op, wr.Remote = verbs.OpWrite, sides[peer].mr.Remote(at*size)
				wr.SGL[0] = s.mr.SGE(1<<18+at*size, length)
				copy(expected[peer][at*size:][:length], s.buf[1<<18+at*size:])
			}
			if wr.Op == verbs.OpSend || wr.Op == verbs.OpSendSE {
				to, first := len(lengths[peer]), length
				if to%7 == 3 {
					first = min(length, pieces)
					copy(expected[peer][1<<19+1<<18+to*size:][:length-first], s.buf[at*size+first:])
				}
				copy(expected[peer][1<<19+to*size:][:first], s.buf[at*size:])
				lengths[peer] = append(lengths[peer], uint32(length))
			}
			want[i] = append(want[i], done{uint64(at), verbs.Success})
			lists[i] = append(lists[i], wr)
		}
	}
	for i, s := range sides {
		s.post(lists[i]...)
	}
	for i, s := range sides {
		wantDone(s.t, s.sendCQ, want[i]...)
		for at, wc := range take(s.t, s.recvCQ, len(lengths[i])) {
			if wc.ID != uint64(at) || wc.Bytes != lengths[i][at] || wc.Status != verbs.Success || wc.Op != verbs.OpRecv || wc.QP != s.qp || wc.QPNum != s.qp.Num() {
				s.t.Fatalf("completion %d is %+v, expected %d octets", at, wc, lengths[i][at])
			}
		}
		if !bytes.Equal(s.buf, expected[i]) {
			s.t.Errorf("what arrived at side %d is not what was sent", i)
		}
		var octets uint64
		for _, n := range lengths[i] {
			octets += uint64(n)
		}
		if got := s.qp.Stats().Received; got.Messages != uint64(len(lengths[i])) || got.Octets != octets {
			s.t.Errorf("%+v were counted, expected %d of %d octets", got, len(lengths[i]), octets)
		}
	}
}

// Of short Sends that arrive together one finds no receive, or one that is too short or cannot be
// written: those before it complete, and it is the one at fault.
//
// Claims: R-5.3-4
func TestTheReceiveAtFaultAmongShortSendsIsTheOneThatFails(t *testing.T) {
	for _, f := range []struct {
		name   string
		post   func(b *side, wr verbs.RecvWR) error
		status verbs.Status // of the receive at fault
	}{
		{"none", func(*side, verbs.RecvWR) error { return nil }, verbs.Success},
		{"too short", func(b *side, wr verbs.RecvWR) error {
			wr.SGL[0].Length = 1
			return b.qp.PostRecv(wr)
		}, verbs.BaseBounds},
		{"no octets", func(b *side, wr verbs.RecvWR) error {
			wr.SGL = nil
			return b.qp.PostRecv(wr)
		}, verbs.BaseBounds},
		{"longer than any message", func(b *side, wr verbs.RecvWR) error {
			wr.SGL = append(wr.SGL, verbs.SGE{STag: b.mr.STag(), Length: 0xffffffff})
			return b.qp.PostRecv(wr)
		}, verbs.InvalidLength},
		{"unknown STag", func(b *side, wr verbs.RecvWR) error {
			wr.SGL[0].STag ^= 1
			return b.qp.PostRecv(wr)
		}, verbs.InvalidSTag},
		{"no right", func(b *side, wr verbs.RecvWR) error {
			wr.SGL[0] = must(b.pd.Register(b.buf, verbs.LocalRead))(b.t).SGE(0, 8)
			return b.qp.PostRecv(wr)
		}, verbs.AccessViolation},
		{"out of bounds", func(b *side, wr verbs.RecvWR) error {
			wr.SGL[0] = b.mr.SGE(len(b.buf)-1, 8)
			return b.qp.PostRecv(wr)
		}, verbs.BaseBounds},
	} {
		t.Run(f.name, func(t *testing.T) {
			overWires(t, func(t *testing.T, w wire) {
				for _, bad := range []int{1, 2, 31, 32, 33, 90} {
					a, b := linked(t, w, verbs.QPConfig{SendDepth: 128}, verbs.QPConfig{RecvDepth: 128, RecvSGEs: 2})
					var wrs []verbs.SendWR
					var want []done
					for i := range 100 {
						wrs = append(wrs, a.send(uint64(i), 8*i, 8))
						wr := verbs.RecvWR{ID: uint64(i), SGL: []verbs.SGE{b.mr.SGE(8*i, 8)}}
						switch {
						case i < bad:
							check(t, b.qp.PostRecv(wr))
							want = append(want, done{uint64(i), verbs.Success})
						case i == bad:
							check(t, f.post(b, wr))
							if f.status != verbs.Success {
								want = append(want, done{uint64(i), f.status})
							}
						}
					}
					copy(a.buf, bytes.Repeat([]byte{1}, 800))
					a.post(wrs...)
					reach(t, a.qp, verbs.Error)
					reach(t, b.qp, verbs.Error)
					wantDone(t, b.recvCQ, want...)
					if n := bytes.Count(b.buf, []byte{1}); n != 8*bad || bytes.Count(b.buf[:8*bad], []byte{1}) != n {
						t.Errorf("%d octets are in place, expected the first %d", n, 8*bad)
					}
				}
			})
		})
	}
}

// Of short Reads that are answered together one is refused: those before it complete, and it is the
// one that the Terminate message is about.
func TestARefusedReadAmongShortOnesIsTheOneThatFails(t *testing.T) {
	for _, f := range []struct {
		name  string
		local bool // it is not asked for
		spoil func(a, b *side, wr *verbs.SendWR)
	}{
		{"unknown STag", false, func(_, _ *side, wr *verbs.SendWR) { wr.Remote.STag ^= 1 }},
		{"out of bounds", false, func(_, b *side, wr *verbs.SendWR) { wr.Remote = b.mr.Remote(len(b.buf) - 1) }},
		{"no right", false, func(_, b *side, wr *verbs.SendWR) {
			wr.Remote = must(b.pd.Register(b.buf, verbs.LocalRead|verbs.LocalWrite))(b.t).Remote(0)
		}},
		{"remote STag of zero", true, func(_, _ *side, wr *verbs.SendWR) { wr.Remote.STag = 0 }},
		{"sink of zero", true, func(_, _ *side, wr *verbs.SendWR) { wr.SGL[0].STag = 0 }},
		{"sink out of bounds", false, func(a, _ *side, wr *verbs.SendWR) { wr.SGL[0] = a.mr.SGE(len(a.buf)-1, 8) }},
		{"sink without a right", false, func(a, _ *side, wr *verbs.SendWR) {
			wr.SGL[0] = must(a.pd.Register(a.buf, verbs.LocalRead|verbs.LocalWrite))(a.t).SGE(0, 8)
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			overWires(t, func(t *testing.T, w wire) {
				for _, bad := range []int{1, 2, 33, 90} {
					deep := verbs.QPConfig{SendDepth: 128, IRD: 128, ORD: 128}
					a, b := linked(t, w, deep, deep)
					copy(b.buf, bytes.Repeat([]byte{1}, 800))
					var wrs []verbs.SendWR
					for i := range 100 {
						wr := a.read(uint64(i), b, 8*i, 8)
						if i == bad {
							f.spoil(a, b, &wr)
						}
						wrs = append(wrs, wr)
					}
					a.post(wrs...)
					reach(t, a.qp, verbs.Error)
					reach(t, b.qp, verbs.Error)
					failed := 0
					for i, wc := range take(t, a.sendCQ, 100) {
						if wc.ID != uint64(i) || wc.Status == verbs.Success && i >= bad {
							t.Fatalf("completion %d is of Read %d, %v", i, wc.ID, wc.Status)
						}
						if i == bad && f.local && wc.Status != verbs.InvalidSTag {
							t.Errorf("Read %d failed with %v", i, wc.Status)
						}
						if wc.Status != verbs.Success && wc.Status != verbs.Flushed {
							if failed++; i != bad {
								t.Errorf("Read %d failed with %v, expected it of %d", i, wc.Status, bad)
							}
						}
					}
					if failed > 1 {
						t.Errorf("%d Reads failed", failed)
					}
					if n := b.qp.Stats().TerminatesSent; f.local && n > 0 {
						t.Error("the peer was asked")
					}
					if n := bytes.Count(a.buf, []byte{1}); n > 8*bad {
						t.Errorf("%d octets are in place, expected %d at most", n, 8*bad)
					}
				}
			})
		})
	}
}

// A Read leaves nothing to wait for to an Invalidate behind it but its answer.
func TestAnInvalidateBehindShortReads(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, reads)
		mr := must(a.pd.Register(a.buf[:64], allRights))(t)
		var wrs []verbs.SendWR
		var want []done
		for i := range 4 {
			wr := a.read(uint64(i), b, 0, 8)
			wr.SGL[0] = mr.SGE(8*i, 8)
			wrs, want = append(wrs, wr), append(want, done{uint64(i), verbs.Success})
		}
		wrs = append(wrs, verbs.SendWR{ID: 9, Op: verbs.OpInvalidate, Invalidate: mr.STag(), Flags: verbs.Signaled | verbs.LocalFence})
		a.post(wrs...)
		wantDone(t, a.sendCQ, append(want, done{9, verbs.Success})...)
	})
}

// A Read that invalidates its sink does so among others, before the next is looked at.
func TestAReadAmongOthersInvalidatesItsSink(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		deep := verbs.QPConfig{IRD: 16, ORD: 16}
		a, b := linked(t, w, deep, deep)
		mr := must(a.pd.Register(a.buf[:64], allRights))(t)
		var wrs []verbs.SendWR
		for i := range 6 {
			wr := a.read(uint64(i), b, 0, 8)
			wr.SGL[0] = mr.SGE(8*i, 8)
			if i == 3 {
				wr.Op = verbs.OpReadInvalidate
			}
			wrs = append(wrs, wr)
		}
		copy(b.buf, "12345678")
		a.post(wrs...)
		reach(t, a.qp, verbs.Error)
		for i, wc := range take(t, a.sendCQ, 6) {
			if (wc.Status == verbs.Success) != (i < 4) {
				t.Errorf("Read %d: %v", i, wc.Status)
			}
		}
		if n := bytes.Count(a.buf[:64], []byte("12345678")); n != 4 {
			t.Errorf("%d Reads are in place, expected 4", n)
		}
	})
}
