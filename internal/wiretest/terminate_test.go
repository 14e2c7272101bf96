package wiretest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// A Terminate of the peer's is delivered, with no receive posted for it, and
// never answered; what it says is kept even where it is malformed.
//
// Claims: R-5.4-3 R-5.4-4 R-5.4-5 R-4.8-26 R-4.8-28 R-4.8-29 R-4.8-31 R-4.8-34 R-7-2 R-7-3 R-7-4
// Claims: V-6.2.2.2-2 V-6.2.2.3-6 V-6.2.2.3-7 V-6.2.3-1 V-6.4-4
// Claims: V-9.5.3-3 V-8.3.3-3 V-6.4-12
// Claims: R-3.2-4 R-5.4-6
func TestATerminateOfThePeersIsNotAnswered(t *testing.T) {
	request := iwarptest.ReadRequest(1, readOf(0xA1, 0xB1, 16, 0xC1, 0xD1))
	of := func(layer, etype, code byte, h iwarptest.Headers, culprit []byte) []byte {
		return iwarptest.Terminate(layer, etype, code, h, culprit)[18:]
	}
	tests := []struct {
		name               string
		payload            []byte
		layer, etype, code byte
		header             []byte
		read, swapped      bool
		words              string
	}{
		{name: "local catastrophic error", payload: of(0, 0, 0, iwarptest.NoHeaders, nil), words: "local catastrophic"},
		{name: "with a tagged header", payload: of(1, 1, 1, iwarptest.DDPHeader, iwarptest.Write(1, 2, 3)), layer: 1, etype: 1, code: 1, header: iwarptest.Write(1, 2), words: "base or bounds violation: the region"},
		{name: "with an untagged header", payload: of(1, 2, 2, iwarptest.DDPHeader, iwarptest.Send(9, 3)), layer: 1, etype: 2, code: 2, header: iwarptest.Send(9), words: "no receive was posted (1/2/02)"},
		{name: "with a Read Request", payload: of(0, 1, 0, iwarptest.ReadHeader, request), etype: 1, header: request[:18], read: true, words: "not any more (0/1/00)"},
		{name: "an MPA error", payload: of(2, 0, 2, iwarptest.NoHeaders, nil), layer: 2, code: 2, words: "CRC mismatch (2/0/02)"},
		{name: "reserved bits set", payload: iwarptest.Overwrite(of(0, 2, 6, iwarptest.NoHeaders, nil), 2, 0x1F, 0xFF), etype: 2, code: 6, words: "unexpected opcode: "},
		{name: "numbers that nobody defined", payload: of(5, 6, 7, iwarptest.NoHeaders, nil), layer: 5, etype: 6, code: 7, words: "undefined error (5/6/07)"},
		{name: "siw's bit order", payload: append([]byte{0x21, 0x05, 0x03, 0, 0, 19}, iwarptest.Send(9)...), layer: 1, etype: 2, code: 5, header: iwarptest.Send(9), swapped: true, words: "swapped bit order"},
		{name: "a header promised and missing", payload: of(1, 1, 0, iwarptest.DDPHeader, iwarptest.Write(1, 2))[:12], layer: 1, etype: 1, words: "not any more (1/1/00)"},
		{name: "everything promised and nothing there", payload: []byte{0x01, 0x00, 0xE0, 0}, etype: 1, words: "not any more (0/1/00)"},
		{name: "more than was promised", payload: append(of(0, 2, 7, iwarptest.NoHeaders, nil), Fill(100, 0xFF)...), etype: 2, code: 7, words: "(0/2/07)"},
		{name: "no octets", etype: 2, code: 0xFF, words: "without saying why: 0 octets"},
		{name: "three octets", payload: []byte{0x12, 0x02, 0}, etype: 2, code: 0xFF, words: "without saying why: 3 octets"},
	}
	for _, tt := range tests {
		for _, w := range Wires {
			t.Run(tt.name+"/"+w.Name, func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				s.Peer = s.ln.Connect(s.QP)
				s.ExpectEvent(verbs.EventTerminateReceived)
				// What follows a Terminate is dropped, another one too.
				s.must(s.Send(terminate(tt.payload...), iwarptest.Overwrite(terminate(1, 1, 0, 0), 13, 2), iwarptest.Write(s.exposedTag, s.exposedTO, 1)))
				s.answered()
				s.must(s.Peer.Close())
				s.Reach(verbs.Error)
				s.CheckMemory()
				var e *rdmap.TerminateError
				err := s.QP.Err()
				if !errors.As(err, &e) || !e.Remote || e.Layer != tt.layer || e.EType != tt.etype || e.Code != tt.code ||
					!bytes.Equal(e.DDPHeader, tt.header) || (e.ReadRequest != nil) != tt.read || e.Swapped != tt.swapped || !bytes.Equal(e.Raw, tt.payload) {
					t.Fatalf("the queue pair's error is %#v", err)
				}
				if tt.read && *e.ReadRequest != (rdmap.ReadRequest{SinkSTag: 0xA1, SinkTO: 0xB1, Size: 16, SourceSTag: 0xC1, SourceTO: 0xD1}) {
					t.Errorf("Read Request %+v", *e.ReadRequest)
				}
				if !strings.Contains(err.Error(), tt.words) {
					t.Errorf("the error says %q, expected %q in it", err, tt.words)
				}
				s.serves()
			})
		}
	}
}

// A Terminate may come in segments like any message.
func TestATerminateInSegmentsIsOne(t *testing.T) {
	s := setStage(t, Wires[0], verbs.QPConfig{})
	s.Peer = s.ln.Connect(s.QP)
	s.ExpectEvent(verbs.EventTerminateReceived)
	s.must(s.Send(iwarptest.Split(iwarptest.Terminate(1, 2, 5, iwarptest.DDPHeader, iwarptest.Send(1)), 7)...))
	s.answered()
	s.must(s.Peer.Close())
	s.Reach(verbs.Error)
	if !errors.Is(s.QP.Err(), &rdmap.TerminateError{Layer: 1, EType: 2, Code: 5}) {
		t.Errorf("the queue pair's error is %v", s.QP.Err())
	}
}

// big registers n octets that are not of the arena, which no other test has to
// compare.
func (s *stage) big(n int, access memory.Access) ([]byte, *verbs.MR) {
	s.t.Helper()
	buf := make([]byte, n)
	for off := 0; off < n; off += 1 << 12 {
		copy(buf[off:], Fill(min(1<<12, n-off), byte(off>>12)|1))
	}
	mr, err := s.PD.Register(buf, access)
	s.must(err)
	return buf, mr
}

// readToTerminate reads the segments of a message that does not end, and the
// Terminate behind them, up to the FIN. It returns the message so far.
func (s *stage) readToTerminate() (message []byte, terminate []byte) {
	s.t.Helper()
	for {
		u, err := s.Next()
		s.must(err)
		g, err := iwarptest.Parse(u)
		s.must(err)
		if g.Opcode == 7 {
			s.answered()
			return message, u
		}
		off := uint64(len(message))
		if g.Last || g.Tagged && g.TO != off || !g.Tagged && uint64(g.MO) != off {
			s.t.Fatalf("after %d octets came %v", off, g)
		}
		message = append(message, g.Payload...)
	}
}

// A Terminate does not wait for the message under way: it follows the last
// whole segment, and nothing follows it.
//
// Claims: R-5.4-8 R-5.5-17 R-7.1-2 R-5.4-1 R-5.4-2 R-7.1-5
// Claims: V-6.4-1 V-6.4-2
// Claims: R-2.4-4 R-3.1-4 R-5.4-7
func TestATerminateCutsALongMessageShort(t *testing.T) {
	for _, w := range Wires[:3] {
		for _, op := range []verbs.Op{verbs.OpSend, verbs.OpWrite} {
			t.Run(fmt.Sprintf("%s/%v", w.Name, op), func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				buf, mr := s.big(32<<20, verbs.LocalRead)
				s.Peer = s.ln.Connect(s.QP)
				s.open()
				s.Post(verbs.SendWR{ID: 0, Op: op, SGL: []verbs.SGE{mr.SGE(0, len(buf))}, Remote: verbs.Remote{STag: 0x100}})
				s.Post(verbs.SendWR{ID: 1, Op: verbs.OpSend})
				s.must(s.QP.Terminate())
				message, terminate := s.readToTerminate()
				if !bytes.Equal(terminate, iwarptest.Terminate(0, 0, 0, iwarptest.NoHeaders, nil)) {
					t.Errorf("Terminate % x", terminate)
				}
				if len(message) == len(buf) || !bytes.Equal(message, buf[:len(message)]) {
					t.Errorf("%d octets of %d came before, or others", len(message), len(buf))
				}
				s.must(s.Peer.Close())
				s.Reach(verbs.Error)
				s.Statuses(s.SendCQ, 0, verbs.Flushed, verbs.Flushed)
				s.serves()
			})
		}
	}
}

// A work request that cannot be sent ends the stream with a Terminate that has
// no headers, in place of its message; what was sent before it is complete.
//
// Claims: R-7.1-1 R-7.1-2 X-8.1-1 R-4.8-3
// Claims: V-6.2.3-2 V-6.2.3-3 V-6.4-6
func TestAWorkRequestThatFailsIsAnsweredByATerminate(t *testing.T) {
	sge := func(mr *verbs.MR, off, n int) []verbs.SGE { return []verbs.SGE{mr.SGE(off, n)} }
	tests := []struct {
		name   string
		wr     func(s *stage) verbs.SendWR
		status verbs.Status
	}{
		{"unknown STag", func(s *stage) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{{STag: memory.STag(s.unknownTag), TO: s.exposedTO, Length: 1}}}
		}, verbs.InvalidSTag},
		{"revoked STag", func(s *stage) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{{STag: memory.STag(s.revokedTag), TO: s.exposedTO, Length: 1}}}
		}, verbs.InvalidSTag},
		{"another domain's STag", func(s *stage) verbs.SendWR { return verbs.SendWR{Op: verbs.OpSend, SGL: sge(s.foreign, 0, 1)} }, verbs.InvalidPD},
		{"one octet over the end", func(s *stage) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpSend, SGL: sge(s.exposed, exposedLen-3, 4)}
		}, verbs.BaseBounds},
		{"a wrap", func(s *stage) verbs.SendWR { return verbs.SendWR{Op: verbs.OpSend, SGL: sge(s.top, exposedLen-3, 4)} }, verbs.WrapError},
		{"no Local Write for an atomic's answer", func(s *stage) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpFetchAdd, SGL: sge(s.readOnly(), 0, 8), Remote: verbs.Remote{STag: 0x100}}
		}, verbs.AccessViolation},
		{"a Read of STag zero", func(s *stage) verbs.SendWR { return verbs.SendWR{Op: verbs.OpRead, SGL: sge(s.exposed, 0, 8)} }, verbs.InvalidSTag},
	}
	for _, tt := range tests {
		for _, w := range Wires {
			t.Run(tt.name+"/"+w.Name, func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				s.Peer = s.ln.Connect(s.QP)
				s.open()
				wr := tt.wr(s)
				wr.ID = 1
				_, err := s.QP.PostSends([]verbs.SendWR{
					{ID: 0, Op: verbs.OpSend, Flags: verbs.Signaled, SGL: sge(s.exposed, 0, 4)}, wr, {ID: 2, Op: verbs.OpSend},
				})
				s.must(err)
				s.answered(iwarptest.Send(1, s.Expected(exposedOff, 4)...), iwarptest.Terminate(0, 0, 0, iwarptest.NoHeaders, nil))
				s.must(s.Peer.Close())
				s.Reach(verbs.Error)
				s.Statuses(s.SendCQ, 0, verbs.Success, tt.status, verbs.Flushed)
				var e *rdmap.TerminateError
				if err := s.QP.Err(); !errors.As(err, &e) || e.Remote || !errors.Is(err, tt.status) {
					t.Errorf("the queue pair's error is %v, expected %v in it", err, tt.status)
				}
				s.serves()
			})
		}
	}
}

// readOnly is a region without Local Write.
func (s *stage) readOnly() *verbs.MR { return s.Register(aloneOff, aloneLen, verbs.LocalRead) }

// When the source of a Read Response goes, what was left of the request is
// told: the STags as they were, the offsets moved on (RFC 5040 §4.8).
//
// Claims: R-7.1-4 R-8.1.1-6 R-4.8-34 DDP-8.3.1-6
func TestASourceRevokedInTheMiddleOfAResponseIsTold(t *testing.T) {
	for _, w := range Wires[:3] {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			buf, mr := s.big(32<<20, verbs.LocalRead|verbs.RemoteRead)
			before := slices.Clone(buf)
			s.Peer = s.ln.Connect(s.QP)
			request := iwarptest.ReadRequest(1, readOf(0xA1A2A3A4, 0, uint32(len(buf)), uint32(mr.STag()), 0))
			s.must(s.Send(request))
			first, err := s.Next()
			s.must(err)
			s.must(mr.Deallocate())
			clear(buf) // the consumer's again: nothing of it may be seen
			message, terminate, ok := s.responseToTerminate(first)
			if !bytes.Equal(message, before[:len(message)]) {
				t.Error("octets written after the deallocation were sent")
			}
			if ok {
				n := len(message)
				left := iwarptest.ReadRequest(1, readOf(0xA1A2A3A4, uint64(n), uint32(len(buf)-n), uint32(mr.STag()), uint64(n)))
				if want := iwarptest.Terminate(0, 1, 0, iwarptest.ReadHeader, left); !bytes.Equal(terminate, want) {
					t.Errorf("Terminate\n% x, expected\n% x", terminate, want)
				}
			}
			_ = s.Peer.Close() // it may be reset
			s.Reach(verbs.Error)
			if ok {
				s.wantError(0, 1, 0)
			}
			s.anyEvent()
			s.serves()
		})
	}
}

// responseToTerminate is readToTerminate of a Read Response to offset 0, of
// which first has been read. ok is false if the stream was reset because a
// segment had left in part.
func (s *stage) responseToTerminate(first []byte) (message, terminate []byte, ok bool) {
	s.t.Helper()
	for u := first; ; {
		g, err := iwarptest.Parse(u)
		s.must(err)
		if g.Opcode == 7 {
			s.answered()
			return message, u, true
		}
		if g.Last || g.TO != uint64(len(message)) {
			s.t.Fatalf("after %d octets came %v", len(message), g)
		}
		message = append(message, g.Payload...)
		if u, err = s.Next(); err != nil {
			return message, nil, false
		}
	}
}

// After the peer's Terminate nobody waits for the rest of a message: what is
// under way ends with a whole segment, and FIN.
//
// Claims: R-7-3 R-7-4
// Claims: R-5.4-7
func TestATerminateOfThePeersEndsAMessageUnderWay(t *testing.T) {
	for _, w := range Wires[:3] {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			buf, mr := s.big(32<<20, verbs.LocalRead)
			s.Peer = s.ln.Connect(s.QP)
			s.open()
			s.Post(verbs.SendWR{ID: 0, Op: verbs.OpSend, SGL: []verbs.SGE{mr.SGE(0, len(buf))}})
			s.Post(verbs.SendWR{ID: 1, Op: verbs.OpSend})
			first, err := s.Next()
			s.must(err)
			s.ExpectEvent(verbs.EventTerminateReceived)
			s.must(s.Send(terminate(0, 0, 0, 0)))
			s.Events(1) // it has arrived, and the socket cannot take the message meanwhile
			rest, err := s.Rest()
			s.must(err)
			n := 0
			for _, u := range append([][]byte{first}, rest...) {
				g, err := iwarptest.Parse(u)
				s.must(err)
				if g.Opcode != 3 || g.Last || int(g.MO) != n || !bytes.Equal(g.Payload, buf[n:n+len(g.Payload)]) {
					t.Fatalf("after %d octets came %v", n, g)
				}
				n += len(g.Payload)
			}
			s.must(s.Peer.Close())
			s.Reach(verbs.Error)
			s.Statuses(s.SendCQ, 0, verbs.Flushed, verbs.Flushed)
			s.serves()
		})
	}
}
