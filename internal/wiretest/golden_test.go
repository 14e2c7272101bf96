package wiretest

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// The segments of every kind of work request are those of the standard; that
// their FPDUs are, CRC included, is the Peer's to see.
//
// Claims: R-3.1-1 R-3.1-8 R-4.1-1 R-4.1-2 R-4.1-4 R-4.1-5 R-4.1-6 R-4.1-7 R-4.1-9 R-4.1-12 R-4.4-1 R-5.1-1 R-5.2.1-1 R-5.2.1-6 R-5.3-1 R-5.3-9 R-5.3-13
// Claims: R-5.1-5 R-5.1-7 R-5.2.1-7 R-5.2.1-9 R-5.3-10 R-5.5-16 R-6.1-2 MPA-7.1.1-4 DDP-4.1-10 DDP-5.2-9 DDP-5.3-1 D-6.1-1
// Claims: X-4.1-1 X-1.1-1 X-5.2-1 X-5.2.1-13 X-5.2.1-18 X-5.2.1-19 X-6.3-1 X-6.3-4 X-6.3-5 X-6.3-6
// Claims: V-8.2.2-1
// Claims: V-6.6.1-3
// Claims: V-9.3.1.1-4 V-9.3.1.1-5 V-9.3.1.1-8 V-9.3.1.1-9 V-9.3.1.1-17 V-9.3.1.1-18 V-8.1.2.2-1
// Claims: R-1.1-5 R-1.2-1 R-1.2-6 R-2.4-3 R-3.1-2 R-3.1-3 R-3.1-5 R-3.1-6 R-3.1-9 R-3.2-1 R-3.2-5 R-3.2-8 R-A.1-1 R-A.2-1 R-A.4-1 R-A.5-1 X-5.1.1-9
// Claims: X-5.1.2-5
func TestARequesterSendsTheseOctets(t *testing.T) {
	const foreignSTag = 0x55667788
	for _, w := range []Wire{{Name: "TCP,CRC", CRC: true}, {Name: "memory,CRC", Memory: true, CRC: true}} {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{ORD: 8})
			copy(s.Arena[exposedOff:], "hello")
			s.Expect(exposedOff, []byte("hello")...)
			s.Peer = s.ln.Connect(s.QP)
			s.open()
			remote := verbs.Remote{STag: foreignSTag, TO: 0x20}
			sink := s.exposed.SGE(0x100, 0x1000)
			sinkTag, sinkTO := uint32(sink.STag), sink.TO
			hello := []verbs.SGE{s.exposed.SGE(0, 5)}
			word := []verbs.SGE{s.exposed.SGE(0x80, 8)}
			empty := []verbs.SGE{{}}
			immediate := [8]byte{1, 2, 3, 4, 5, 6, 7, 8}
			for i, tt := range []struct {
				wr   verbs.SendWR
				want []byte
			}{
				{verbs.SendWR{Op: verbs.OpSend, SGL: hello}, octets(t, "4143 00000000 00000000 00000001 00000000 68656c6c6f")},
				{verbs.SendWR{Op: verbs.OpImmediate, Immediate: immediate}, octets(t, "4148 00000000 00000000 00000002 00000000 0102030405060708")},
				{verbs.SendWR{Op: verbs.OpSendInvalidate, Invalidate: 0xdeadbeef, SGL: hello[:1]}, octets(t, "4144 deadbeef 00000000 00000003 00000000 68656c6c6f")},
				{verbs.SendWR{Op: verbs.OpSendSE, SGL: hello}, octets(t, "4145 00000000 00000000 00000004 00000000 68656c6c6f")},
				{verbs.SendWR{Op: verbs.OpSendSEInvalidate, Invalidate: 0xdeadbeef}, octets(t, "4146 deadbeef 00000000 00000005 00000000")},
				{verbs.SendWR{Op: verbs.OpImmediateSE, Immediate: immediate}, octets(t, "4149 00000000 00000000 00000006 00000000 0102030405060708")},
				{verbs.SendWR{Op: verbs.OpSend}, octets(t, "4143 00000000 00000000 00000007 00000000")},
				{verbs.SendWR{Op: verbs.OpWrite, SGL: hello, Remote: verbs.Remote{STag: 0x1234, TO: 0x1000}}, octets(t, "c140 00001234 0000000000001000 68656c6c6f")},
				{verbs.SendWR{Op: verbs.OpWrite, Remote: verbs.Remote{}}, octets(t, "c140 00000000 0000000000000000")},
				{verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{sink}, Remote: remote}, iwarptest.ReadRequest(1, readOf(sinkTag, sinkTO, 4096, foreignSTag, 0x20))},
				{verbs.SendWR{Op: verbs.OpFetchAdd, SGL: word, Remote: remote, Atomic: verbs.Atomic{Data: 1, Compare: 7, CompareMask: 7}},
					iwarptest.AtomicRequest(2, iwarptest.Atomic{ID: 10, STag: foreignSTag, TO: 0x20, Data: 1, CompareMask: math.MaxUint64})},
				{verbs.SendWR{Op: verbs.OpCmpSwap, SGL: word, Remote: remote, Atomic: verbs.Atomic{Data: 1, Mask: 2, Compare: 3, CompareMask: 4}},
					iwarptest.AtomicRequest(3, iwarptest.Atomic{AOpCode: 2, ID: 11, STag: foreignSTag, TO: 0x20, Data: 1, Mask: 2, Compare: 3, CompareMask: 4})},
				{verbs.SendWR{Op: verbs.OpReadInvalidate, SGL: []verbs.SGE{s.writable.SGE(0, 16)}, Remote: remote},
					iwarptest.ReadRequest(4, readOf(s.writableTag, s.aloneTO, 16, foreignSTag, 0x20))},
				{verbs.SendWR{Op: verbs.OpRead, SGL: empty}, iwarptest.ReadRequest(5, iwarptest.Read{})},
				{verbs.SendWR{Op: verbs.OpSend, SGL: hello}, iwarptest.Send(8, []byte("hello")...)},
			} {
				tt.wr.ID = uint64(i)
				s.Post(tt.wr)
				if u, err := s.Next(); err != nil || !bytes.Equal(u, tt.want) {
					t.Fatalf("%v sent\n%x, %v, expected\n%x", tt.wr.Op, u, err, tt.want)
				}
			}
			// All answers, in the order of the questions.
			s.must(s.Send(iwarptest.ReadResponse(sinkTag, sinkTO, Fill(4096, 0xEE)...), iwarptest.AtomicResponse(1, 10, 0x1122), iwarptest.AtomicResponse(2, 11, 0x3344),
				iwarptest.ReadResponse(s.writableTag, s.aloneTO, Fill(16, 0xDD)...), iwarptest.ReadResponse(0, 0)))
			s.Expect(exposedOff+0x100, Fill(4096, 0xEE)...)
			s.Expect(exposedOff+0x80, binary.NativeEndian.AppendUint64(nil, 0x3344)...)
			s.Expect(aloneOff, Fill(16, 0xDD)...)
			s.Statuses(s.SendCQ, 0, make([]verbs.Status, 15)...)
			if s.writable.Valid() {
				t.Error("the sink of a Read with Invalidate is valid after it")
			}
			s.farewell()
		})
	}
}

// A responder's answers, and the order of them, octet for octet.
//
// Claims: R-4.4-2 R-5.2-1 R-5.2.1-1 R-5.2.1-3 R-5.2.1-4 R-5.2.1-8 R-5.2.1-11 R-5.2.1-14 R-5.2.1-15 R-5.2.2-2 R-5.2.2-7 R-5.5-23 R-5.5-20 R-5.5-12 R-5.1-2
// Claims: X-5.1-2 X-5.2-2 X-5.2.1-15 X-5.2.1-16 X-5.2.1-20 X-5.2.1-21 X-5.2.2-5 X-5.2.2-6 X-5.2.2-11 X-5.4-5 X-5.4-7 X-5.4-10 X-5.4-11 X-5-4 X-5.2.1-6 X-5.1.2-3
// Claims: DDP-5.2-9 DDP-5.2-10 DDP-5.2-11
// Claims: R-4.4-3 R-5.2.2-1 R-A.3-1 R-B-9 X-1.1-5 X-5.1-3 X-5.1.2-4 X-5.2.2-2 X-5.2.2-3 X-5.2.2-4 X-5.4-1 X-7-11 X-7-12 X-7-15
func TestAResponderSendsTheseOctets(t *testing.T) {
	for _, w := range Wires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{IRD: 16})
			s.Peer = s.ln.Connect(s.QP)
			word := s.exposedTO + 0x40
			s.must(s.Send(
				// A Write is seen by the Reads and atomics behind it.
				iwarptest.Write(s.exposedTag, word, binary.NativeEndian.AppendUint64(nil, 40)...),
				iwarptest.ReadRequest(1, readOf(0xA1A2A3A4, 0xB1B2B3B4B5B6B7B8, 8, s.exposedTag, word)),
				iwarptest.AtomicRequest(2, iwarptest.Atomic{ID: 7, STag: s.exposedTag, TO: word, Data: 1}),
				iwarptest.AtomicRequest(3, iwarptest.Atomic{AOpCode: 2, ID: 9, STag: s.exposedTag, TO: word, Data: 50, Mask: math.MaxUint64, Compare: 41, CompareMask: math.MaxUint64}),
				iwarptest.AtomicRequest(4, iwarptest.Atomic{AOpCode: 2, ID: 8, STag: s.exposedTag, TO: word, Data: 60, Mask: math.MaxUint64, Compare: 41, CompareMask: math.MaxUint64}),
				iwarptest.ReadRequest(5, readOf(0xFFFFFFFF, math.MaxUint64, 0, 0xDEADBEEF, math.MaxUint64)), // nothing is checked
				iwarptest.AtomicRequest(6, iwarptest.Atomic{ID: 5, STag: s.exposedTag, TO: word}),
				iwarptest.ReadRequest(7, readOf(1, 2, 100, s.readableTag, s.aloneTO)),
				iwarptest.Write(0xDEADBEEF, math.MaxUint64), // nor here
			))
			s.Expect(exposedOff+0x40, binary.NativeEndian.AppendUint64(nil, 50)...)
			s.ExpectEvent(verbs.EventLLPCloseComplete)
			s.must(s.CloseWrite())
			source := s.Expected(aloneOff, 100)
			s.answered(
				iwarptest.ReadResponse(0xA1A2A3A4, 0xB1B2B3B4B5B6B7B8, binary.NativeEndian.AppendUint64(nil, 40)...),
				iwarptest.AtomicResponse(1, 7, 40),
				iwarptest.AtomicResponse(2, 9, 41),
				iwarptest.AtomicResponse(3, 8, 50),
				iwarptest.ReadResponse(0xFFFFFFFF, math.MaxUint64),
				iwarptest.AtomicResponse(4, 5, 50),
				iwarptest.ReadResponse(1, 2, source...),
			)
			s.must(s.Peer.Close())
			s.Reach(verbs.Idle)
		})
	}
}

// An RTR opens a peer-to-peer stream and completes no work request (RFC 6581 §9.2).
//
// Claims: ME-9.2-9 ME-9.3-2
// Claims: R-1.3-1 ME-1.1-1
func TestTheRTRIsTheFirstMessageAndCompletesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		rtr      mpa.RTR
		enhanced []byte // of the Reply
		first    string
		answer   []byte
	}{
		"Write": {mpa.RTRAny, []byte{0x80, 4, 0x80, 4}, "000e c140 00000000 00000000 00000000 a30572ab", nil},
		"Read": {mpa.RTRAny, []byte{0x80, 4, 0x40, 4},
			"002e 4141 00000000 00000001 00000001 00000000 00000000000000000000000000000000000000000000000000000000 f2c6dd3d", iwarptest.ReadResponse(0, 0)},
		"Send": {mpa.RTRAny, []byte{0xC0, 4, 0, 4}, "0012 4143 00000000 00000000 00000001 00000000 587be8c4", nil},
	} {
		for _, w := range []Wire{Wires[0], {Name: "memory,CRC", Memory: true, CRC: true}} {
			t.Run(name+"/"+w.Name, func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				answer := w.Startup()
				answer.Enhanced = tt.enhanced
				cfg := w.Config()
				cfg.PeerToPeer, cfg.RTR = true, tt.rtr
				s.Peer = s.Connect(w, answer, cm.Params{MPA: cfg})
				want := octets(t, tt.first)
				u, err := s.Next()
				if got := (&iwarptest.Peer{Out: iwarptest.Framing{CRC: true}}).Frame(u); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("first came\n%x, %v, expected\n%x", got, err, want)
				}
				if tt.answer != nil {
					s.must(s.Send(tt.answer))
				}
				msn := uint32(1)
				if name == "Send" {
					msn = 2
				}
				s.Post(verbs.SendWR{ID: 0, Op: verbs.OpSend})
				if u, err := s.Next(); err != nil || !bytes.Equal(u, iwarptest.Send(msn)) {
					t.Fatalf("then came %x, %v", u, err)
				}
				s.Statuses(s.SendCQ, 0, verbs.Success)
				s.farewell()
			})
		}
	}
}

// As a Responder Weft takes each kind, holds what is posted until then, and no
// receive is used up.
//
// Claims: ME-9.2-9 ME-9.3-2 MPA-7.1-7
func TestAPeersRTRIsTakenAndCompletesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		enhanced []byte // of the Request
		rtr      []byte
		answer   [][]byte
	}{
		"Write": {[]byte{0x80, 4, 0x80, 4}, iwarptest.Write(1, 0), nil},
		"Read":  {[]byte{0x80, 4, 0x40, 4}, iwarptest.ReadRequest(1, iwarptest.Read{}), [][]byte{iwarptest.ReadResponse(0, 0)}},
		"Send":  {[]byte{0xC0, 4, 0, 4}, iwarptest.Send(1), nil},
	} {
		for _, w := range Wires {
			t.Run(name+"/"+w.Name, func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				s.Receives(s.recv, 0, recvSize, 1)
				s.Post(verbs.SendWR{ID: 0, Op: verbs.OpSend})
				startup := w.Startup()
				startup.Enhanced = tt.enhanced
				s.Peer = s.ln.ConnectAs(s.QP, startup, cm.Params{MPA: w.Config()})
				s.must(s.Send(tt.rtr))
				var got [][]byte
				for range 1 + len(tt.answer) {
					u, err := s.Next()
					s.must(err)
					got = append(got, u)
				}
				// The answer and the Send may come in either order.
				all := append(tt.answer, iwarptest.Send(1))
				for _, want := range all {
					found := false
					for _, u := range got {
						found = found || bytes.Equal(u, want)
					}
					if !found {
						t.Errorf("got %x, expected %x among it", got, want)
					}
				}
				s.Statuses(s.SendCQ, 0, verbs.Success)
				msn := uint32(1)
				if name == "Send" {
					msn = 2
				}
				s.must(s.Send(iwarptest.Send(msn, 5)))
				s.Expect(recvOff, 5)
				s.Statuses(s.RecvCQ, 100, verbs.Success)
				s.farewell()
			})
		}
	}
}
