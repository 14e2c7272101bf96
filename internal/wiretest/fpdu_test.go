package wiretest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// A faultyFPDU is an FPDU with a fault of MPA's.
type faultyFPDU struct {
	name  string
	wires []Wire
	bad   func(p *iwarptest.Peer, good []byte) []byte // an FPDU gone wrong
	code  byte
	event verbs.EventID
}

func faultyFPDUs() []faultyFPDU {
	crc := []Wire{Wires[0], Wires[2]}
	markers := []Wire{Wires[2], {Name: "memory,markers", Memory: true, Markers: true}, {Name: "TCP,markers", Markers: true}}
	return []faultyFPDU{
		{"a wrong CRC", crc, func(p *iwarptest.Peer, good []byte) []byte { return iwarptest.FlipBit(p.Frame(good), -1) }, 2, verbs.EventCRC},
		{"a changed header", crc, func(p *iwarptest.Peer, good []byte) []byte { return iwarptest.FlipBit(p.Frame(good), 8) }, 2, verbs.EventCRC},
		{"a changed octet of payload", crc, func(p *iwarptest.Peer, good []byte) []byte { return iwarptest.FlipBit(p.Frame(good), -9) }, 2, verbs.EventCRC},
		{"a changed pad", crc, func(p *iwarptest.Peer, good []byte) []byte { return iwarptest.FlipBit(p.Frame(good[:len(good)-1]), -5) }, 2, verbs.EventCRC},
		{"a CRC in the wrong order", crc, func(p *iwarptest.Peer, good []byte) []byte {
			f := p.Frame(good)
			binary.BigEndian.PutUint32(f[len(f)-4:], binary.LittleEndian.Uint32(f[len(f)-4:]))
			return f
		}, 2, verbs.EventCRC},
		{"a CRC of zero", crc, func(p *iwarptest.Peer, good []byte) []byte {
			f := p.Frame(good)
			return iwarptest.Overwrite(f, len(f)-4, 0, 0, 0, 0)
		}, 2, verbs.EventCRC},
		{"a length above the limit", Wires[:2], func(*iwarptest.Peer, []byte) []byte {
			return binary.BigEndian.AppendUint16(nil, mpa.MaxMULPDU+1)
		}, 3, verbs.EventBadFPDU},
		{"the greatest length", Wires, func(*iwarptest.Peer, []byte) []byte { return Fill(8, 0xFF) }, 3, verbs.EventBadFPDU},
		{"a marker that lies", markers, func(p *iwarptest.Peer, good []byte) []byte {
			p.Out.MarkerError = 4
			return p.Frame(append(good, make([]byte, 1000)...))
		}, 3, verbs.EventBadFPDU},
		{"a lying marker and a wrong CRC", markers[:1], func(p *iwarptest.Peer, good []byte) []byte {
			p.Out.MarkerError = 4
			return iwarptest.FlipBit(p.Frame(append(good, make([]byte, 1000)...)), -1)
		}, 2, verbs.EventCRC},
	}
}

// A Terminate for an MPA error repeats no header. What came before the error is
// delivered, what comes after it is not.
//
// Claims: MPA-4.4-2 MPA-4.4-3 R-7.1-2 R-4.8-3 DDP-6.2.2-1 DDP-7-1
// Claims: V-9.5.3-7 V-9.5.3-8
// Claims: V-8.3.3-5
func TestFPDUsWithAFaultEndTheStream(t *testing.T) {
	for _, tt := range faultyFPDUs() {
		for _, w := range tt.wires {
			t.Run(tt.name+"/"+w.Name, func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				s.Receives(s.recv, 0, recvSize, 2)
				s.Peer = s.ln.Connect(s.QP)
				octets := s.Frame(iwarptest.Write(s.exposedTag, s.exposedTO, 1, 2, 3, 4), iwarptest.Send(1, 5))
				s.Expect(exposedOff, 1, 2, 3, 4)
				s.Expect(recvOff, 5)
				octets = append(octets, tt.bad(s.Peer, iwarptest.Write(s.exposedTag, s.exposedTO+0x1000, Fill(8, 0xEE)...))...)
				s.Out.MarkerError = 0
				octets = append(octets, s.Frame(iwarptest.Write(s.exposedTag, s.exposedTO+0x2000, Fill(8, 0xEE)...))...)
				s.ExpectEvent(tt.event)
				s.must(s.SendRaw(octets))
				s.answered(iwarptest.Terminate(2, 0, tt.code, iwarptest.NoHeaders, nil))
				s.must(s.Peer.Close())
				s.Reach(verbs.Error)
				s.wantError(2, 0, tt.code)
				s.Statuses(s.RecvCQ, 100, verbs.Success, verbs.Flushed)
				s.serves()
			})
		}
	}
}

// Where the first FPDU of the stream is the one with the fault nothing may be sent
// (RFC 5044 §7.1.2 rule 4). The stream ends by a reset then: an initiator that has
// closed, or has nothing outstanding, would take FIN for a graceful close.
//
// Claims: MPA-7.1.2-12
func TestAFirstFPDUWithAFaultResetsTheConnection(t *testing.T) {
	for _, tt := range faultyFPDUs() {
		for _, w := range tt.wires {
			for _, closed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/closed %t", tt.name, w.Name, closed), func(t *testing.T) {
					s := setStage(t, w, verbs.QPConfig{})
					s.Receives(s.recv, 0, recvSize, 2)
					s.Peer = s.ln.Connect(s.QP)
					octets := tt.bad(s.Peer, iwarptest.Write(s.exposedTag, s.exposedTO, Fill(8, 0xEE)...))
					s.Out.MarkerError = 0
					octets = append(octets, s.Frame(iwarptest.Send(1, 5))...)
					s.ExpectEvent(tt.event)
					// The reset may come while the rest is still being sent, or over TLS the end.
					// The system reports it once.
					err := s.SendRaw(octets)
					if err != nil && !errors.Is(err, syscall.ECONNRESET) {
						t.Error(err)
					}
					if closed {
						err = errors.Join(err, s.CloseWrite())
					}
					said, end := io.ReadAll(s)
					if err = errors.Join(err, end); len(said) > 0 || !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
						t.Errorf("received % x and %v, expected a reset", said, err)
					}
					s.Reach(verbs.Error)
					s.wantError(2, 0, tt.code)
					s.Statuses(s.RecvCQ, 100, verbs.Flushed, verbs.Flushed)
					s.CheckMemory()
					s.serves()
				})
			}
		}
	}
}

// RFC 5044 §4.2: the two low bits of a marker do not count. §4.4: with CRC off
// on both sides the field is not looked at.
//
// Claims: MPA-4.4-2
func TestWhatAReceiverIsToIgnoreIsIgnored(t *testing.T) {
	w := Wire{Memory: true, Markers: true}
	s := setStage(t, w, verbs.QPConfig{})
	s.Peer = s.ln.Connect(s.QP)
	s.Out.MarkerError = 3
	f := s.Frame(iwarptest.Write(s.exposedTag, s.exposedTO, Fill(1000, 9)...))
	s.must(s.SendRaw(iwarptest.Overwrite(f, len(f)-4, 0xDE, 0xAD, 0xBE, 0xEF)))
	// Reserved bits of both control fields, and an Invalidate STag that the
	// opcode does not have (RFC 5041 §4.1, RFC 5040 §4.1).
	s.must(s.Send(iwarptest.Overwrite(iwarptest.Write(s.exposedTag, s.exposedTO+1000, 8), 0, 0xC1|0x3C, 0x40|0x30)))
	s.Receives(s.recv, 0, recvSize, 1)
	s.must(s.Send(iwarptest.Overwrite(iwarptest.Untagged(3, s.exposedTag, 0, 1, 0, 7), 0, 0x41|0x3C, 0x43|0x30)))
	s.Expect(exposedOff, append(Fill(1000, 9), 8)...)
	s.Expect(recvOff, 7)
	if wc := s.Statuses(s.RecvCQ, 100, verbs.Success)[0]; wc.HasInvalidated || !s.exposed.Valid() {
		t.Errorf("completion %+v, STag valid: %t", wc, s.exposed.Valid())
	}
	s.farewell()
}

// However the octets arrive, they are the same messages.
//
// Claims: DDP-5.2-4 DDP-5.3-6 DDP-5.4-3 R-5.3-5 R-5.5-10
func TestFPDUsCutAndMergedAreTheSameMessages(t *testing.T) {
	for _, w := range Wires {
		for _, piece := range []int{1, 2, 3, 5, 19, 511, 1460, 1 << 20} {
			t.Run(fmt.Sprintf("%s/%d", w.Name, piece), func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				s.Receives(s.recv, 0, recvSize, 3)
				s.Peer = s.ln.Connect(s.QP)
				s.Trickle = false
				var ulpdus [][]byte
				ulpdus = append(ulpdus, iwarptest.Split(iwarptest.Send(1, Fill(1000, 1)...), 300)...)
				ulpdus = append(ulpdus, iwarptest.Split(iwarptest.Write(s.exposedTag, s.exposedTO, Fill(3000, 2)...), 700)...)
				ulpdus = append(ulpdus, iwarptest.Send(2), iwarptest.Immediate(3, 1, 2, 3, 4, 5, 6, 7, 8))
				s.Expect(recvOff, Fill(1000, 1)...)
				s.Expect(exposedOff, Fill(3000, 2)...)
				octets := s.Frame(ulpdus...)
				for len(octets) > 0 {
					n := min(piece, len(octets))
					s.must(s.SendRaw(octets[:n]))
					octets = octets[n:]
				}
				wcs := s.Statuses(s.RecvCQ, 100, verbs.Success, verbs.Success, verbs.Success)
				if wcs[0].Bytes != 1000 || wcs[1].Bytes != 0 || wcs[2].Op != verbs.OpRecvImmediate || wcs[2].Immediate != [8]byte{1, 2, 3, 4, 5, 6, 7, 8} {
					t.Errorf("completions %+v", wcs)
				}
				s.farewell()
			})
		}
	}
}

// Whatever comes, it is refused, and nothing is written that was not exposed.
//
// Claims: R-7.2-1
func TestGarbageIsRefused(t *testing.T) {
	for _, w := range Wires[:3] {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("%s/seed %d", w.Name, seed), func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				s.Peer = s.ln.Connect(s.QP)
				s.must(s.Send(iwarptest.Write(s.exposedTag, s.exposedTO, 1)))
				s.Expect(exposedOff, 1)
				garbage := make([]byte, 70000) // no FPDU is longer
				rand.NewChaCha8([32]byte{byte(seed)}).Read(garbage)
				if seed == 0 {
					clear(garbage)
				}
				s.must(s.SendRaw(garbage))
				got, err := s.Rest()
				if err != nil || len(got) != 1 || !bytes.HasPrefix(got[0], []byte{0x41, 0x47}) {
					t.Fatalf("answer %x, %v, expected a Terminate", got, err)
				}
				s.must(s.Peer.Close())
				s.Reach(verbs.Error)
				var e *rdmap.TerminateError
				if !errors.As(s.QP.Err(), &e) || e.Remote || w.CRC && (e.Layer != 2 || e.Code != 2 && e.Code != 3) {
					t.Errorf("ended by %v", s.QP.Err())
				}
				s.anyEvent()
				s.serves()
			})
		}
	}
}

// anyEvent waits for an event, whichever it is.
func (s *stage) anyEvent() {
	s.t.Helper()
	s.ExpectEvent(s.Events(1)...)
}
