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

// A fence holds a short Write back though the one before it may leave.
//
// Claims: V-8.2.2.2-1 V-9.3.1.1-5
func TestAFenceEndsARunOfShortWrites(t *testing.T) {
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		s.y.Hold()
		s.a.post(s.a.read(1, s.b, 0, 8))
		synctest.Wait()
		before := s.x.Written()
		fenced := s.a.write(5, s.b, 0, 8)
		fenced.Flags |= verbs.ReadFence
		s.a.post(s.a.write(2, s.b, 0, 8), s.a.write(3, s.b, 0, 8), s.a.write(4, s.b, 0, 8), fenced, s.a.write(6, s.b, 0, 8))
		synctest.Wait()
		if n := s.x.Written() - before; n != 3*28 {
			t.Errorf("%d octets were sent, expected three FPDUs of 28", n)
		}
		s.y.Resume()
		wantDone(t, s.a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success}, done{4, verbs.Success}, done{5, verbs.Success}, done{6, verbs.Success})
	})
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
