package verbs_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// Data goes through regions over lists of pages and of blocks, in all roles: what was
// put in at one end in order is found at the other in order.
//
// Claims: V-7.6.2-1 V-7.6.2.1-1 V-7.6.2.2-1 V-7.6.1-1 V-7.6.1.1-1 V-7.6.1.2-1 V-7.3.1.1-1 V-9.2.6.2-6 V-7.3.2.2-1
// Claims: V-9.2.6.2-2 V-6.6.2.5-4 V-7.1-1 V-8.2.2.2-4 V-9.2.6.2-11
// Claims: R-B-10
func TestDataIsWhereTheListSays(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		for _, mode := range []verbs.Mode{verbs.PageMode, verbs.BlockMode} {
			for _, zeroBased := range []bool{false, true} {
				size, fbo, entries := memory.MinPageSize, 123, 9
				buffers := memory.Pages(2*entries, size)
				if mode == verbs.BlockMode {
					size = 5001
					all := make([]byte, 3*entries*size)
					for i := range buffers {
						buffers[i] = all[i*size+i:][:size]
					}
				}
				rand.Shuffle(len(buffers), func(i, j int) { buffers[i], buffers[j] = buffers[j], buffers[i] })
				n := entries*size - fbo - 7
				cfg := able
				a, b := newSideOf(t, verbs.Config{Mode: mode}, cfg), newSideOf(t, verbs.Config{Mode: mode}, cfg)
				w.connect(t, a.qp, b.qp, cm.Params{})
				ends := [2]*verbs.MR{}
				va := uint64(size)<<20 + uint64(fbo)
				at := func(end, i int) *byte { return &buffers[end*entries+(fbo+i)/size][(fbo+i)%size] }
				for i, s := range []*side{a, b} {
					ends[i] = s.mrOf(verbs.MRConfig{
						List:   &verbs.BufferList{Buffers: buffers[i*entries:][:entries], Size: size, FBO: fbo, Length: uint64(n)},
						Access: allRights, VA: va, ZeroBased: zeroBased,
					})
				}
				if base := ends[0].Base(); base != va && !zeroBased || base != 0 && zeroBased {
					t.Fatalf("the base is %#x", base)
				}
				for _, op := range []verbs.Op{verbs.OpWrite, verbs.OpRead, verbs.OpSend} {
					source, sink := 0, 1
					if op == verbs.OpRead {
						source, sink = 1, 0
					}
					for i := range n {
						*at(source, i), *at(sink, i) = byte(i*7+i>>8+int(op)), 0
					}
					wr := verbs.SendWR{ID: 1, Op: op, Flags: verbs.Signaled, SGL: []verbs.SGE{ends[0].SGE(0, n)}, Remote: ends[1].Remote(0)}
					if op == verbs.OpSend {
						check(t, b.qp.PostRecv(verbs.RecvWR{ID: 2, SGL: []verbs.SGE{ends[1].SGE(0, 10), ends[1].SGE(10, n-10)}}))
					}
					a.post(wr, a.read(3, b, 0, 0)) // whose answer says that all is placed
					wantDone(t, a.sendCQ, done{1, verbs.Success}, done{3, verbs.Success})
					if op == verbs.OpSend {
						wantDone(t, b.recvCQ, done{2, verbs.Success})
					}
					for i := range n {
						if *at(sink, i) != byte(i*7+i>>8+int(op)) {
							t.Fatalf("%v, %v, zero based %v: octet %d is another", mode, op, zeroBased, i)
						}
					}
				}
			}
		}
	})
}

// A Fast-Register's list is read when it is executed and may be used again once it is
// complete; its memory lives as long as the registration.
//
// Claims: V-7.3.2.5-7 V-7.3.2.5-1
func TestAFastRegisteredListKeepsItsMemory(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		const size, n = memory.MinPageSize, 3
		a, b := linked(t, w, able, able)
		mr := must(b.pd.AllocMR(n, true))(t)
		a.post(a.write(0, b, 0, 0))
		wantDone(t, a.sendCQ, done{0, verbs.Success})
		list := memory.Pages(n, size)
		list[0], list[2] = list[2], list[0]
		for round := range 20 {
			f := mr.FastRegister(nil, allRights)
			f.List = verbs.BufferList{Buffers: list, Size: size, FBO: 5, Length: n*size - 5}
			f.ZeroBased = true
			wr := fast(1, f)
			b.post(wr)
			*wr.FastRegister = verbs.FastRegister{} // nothing of it is retained but the list
			wantDone(t, b.sendCQ, done{1, verbs.Success})
			was := append([][]byte(nil), list...)
			clear(list)
			runtime.GC()
			for i := range a.buf[:n*size-5] {
				a.buf[i] = byte(i + i>>8 + round)
			}
			a.post(verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{a.mr.SGE(0, n*size-5)}, Remote: mr.Remote(0)}, a.read(2, b, 0, 0))
			wantDone(t, a.sendCQ, done{2, verbs.Success})
			for i := range n*size - 5 {
				if was[(i+5)/size][(i+5)%size] != byte(i+i>>8+round) {
					t.Fatalf("round %d: octet %d is another", round, i)
				}
			}
			copy(list, was)
			b.post(inval(2, f.STag))
			wantDone(t, b.sendCQ, done{2, verbs.Success})
		}
	})
}

// Regions over the same memory live and die by themselves.
//
// Claims: V-7.4.3-1 V-7.8-2 V-7.9-4 V-9.2.6.4-1 V-9.2.6.4-3
// Claims: V-7.1-1
func TestSharedTwinsAreReachedEachByItsOwnRights(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, able, able)
		mr := b.mrOf(verbs.MRConfig{Buf: b.buf[1000:1100], Access: verbs.LocalRead | verbs.LocalWrite | verbs.RemoteWrite})
		twin := must(mr.RegisterShared(b.pd, verbs.SharedConfig{Access: verbs.LocalRead | verbs.RemoteRead, VA: 1 << 50}))(t)
		copy(a.buf, "the same octets")
		a.post(verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{a.mr.SGE(0, 15)}, Remote: mr.Remote(5)},
			verbs.SendWR{ID: 1, Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{a.mr.SGE(100, 15)}, Remote: twin.Remote(5)})
		wantDone(t, a.sendCQ, done{1, verbs.Success})
		if got := string(a.buf[100:115]); got != "the same octets" {
			t.Errorf("read %q", got)
		}
		check(t, mr.Deallocate())
		a.post(verbs.SendWR{ID: 2, Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{a.mr.SGE(100, 15)}, Remote: twin.Remote(5)})
		wantDone(t, a.sendCQ, done{2, verbs.Success})
		a.post(verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{a.mr.SGE(0, 15)}, Remote: twin.Remote(5)})
		b.wantEvents(verbs.EventProtectionAccess)
	})
}

// Claims: V-7.2.1-3 V-7.2.1-4 V-8.1.3.2.1-2
// Claims: V-7.2.1-1
func TestZeroNamesThePhysicalMemoryOfThePrivileged(t *testing.T) {
	physical := make([]byte, 200)
	zero := func(to uint64, n uint32) []verbs.SGE { return []verbs.SGE{{TO: to, Length: n}} }
	for _, tt := range []struct {
		name     string
		cfg      verbs.QPConfig
		physical []byte
		want     verbs.Status
	}{
		{"privileged", able, physical, verbs.Success},
		{"not privileged", verbs.QPConfig{IRD: 4, ORD: 4, BindWindows: true}, physical, verbs.InvalidSTag},
		{"no physical memory", able, nil, verbs.InvalidSTag},
	} {
		for _, op := range []verbs.Op{verbs.OpSend, verbs.OpWrite, verbs.OpRecv} {
			bubbleOf(t, func(t *testing.T) {
				s := &table{a: newSideOf(t, verbs.Config{Physical: tt.physical}, tt.cfg), b: newSide(t, able)}
				s.x, s.y = iwarptest.Pipe()
				join(t, s.a.qp, s.b.qp, s.x, s.y, cm.Params{})
				quiesce()
				copy(physical, make([]byte, 100))
				copy(physical[100:], "physical memory")
				if op == verbs.OpRecv {
					check(t, s.a.qp.PostRecv(verbs.RecvWR{ID: 1, SGL: zero(10, 20)}))
					s.a.post(s.a.write(0, s.b, 0, 0)) // so that the responder may send
					copy(s.b.buf, "received")
					s.b.post(s.b.send(2, 0, 8))
					wantDone(t, s.a.recvCQ, done{1, tt.want})
					if got := string(physical[10:18]) == "received"; got != (tt.want == verbs.Success) {
						t.Errorf("%s: received %v", tt.name, got)
					}
					return
				}
				s.b.receives(3, 1, 100)
				s.a.post(verbs.SendWR{ID: 1, Op: op, Flags: verbs.Signaled, SGL: zero(100, 15), Remote: s.b.mr.Remote(0)})
				wantDone(t, s.a.sendCQ, done{1, tt.want})
				quiesce()
				if got := string(s.b.buf[:15]) == "physical memory"; got != (tt.want == verbs.Success) {
					t.Errorf("%s: %v moved %v", tt.name, op, got)
				}
			})
		}
	}
	for _, op := range []verbs.Op{verbs.OpRead, verbs.OpReadInvalidate} { // never a sink
		bubbleOf(t, func(t *testing.T) {
			cfg := able
			cfg.ReadSinkLocalWrite = true
			s := &table{a: newSideOf(t, verbs.Config{Physical: physical}, cfg), b: newSide(t, able)}
			s.x, s.y = iwarptest.Pipe()
			join(t, s.a.qp, s.b.qp, s.x, s.y, cm.Params{})
			quiesce()
			wantLocalFailure(t, s, verbs.SendWR{Op: op, SGL: zero(0, 8), Remote: s.b.mr.Remote(0)}, verbs.InvalidSTag)
		})
	}
	bubbleOf(t, func(t *testing.T) { // bounded by the memory there is
		s := &table{a: newSideOf(t, verbs.Config{Physical: physical}, able), b: newSide(t, able)}
		s.x, s.y = iwarptest.Pipe()
		join(t, s.a.qp, s.b.qp, s.x, s.y, cm.Params{})
		quiesce()
		wantLocalFailure(t, s, verbs.SendWR{Op: verbs.OpSend, SGL: zero(193, 8)}, verbs.BaseBounds)
	})
}
