package wiretest

import (
	"encoding/binary"
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// Bits of the first octet of a fuzzed input.
const (
	fuzzRaw     = 1 << iota // octets as they are, not ULPDUs in good FPDUs
	fuzzCRC                 //
	fuzzMarkers             //
	fuzzTCP                 //
	fuzzWork                // Reads, atomics and Sends of ours are under way
	fuzzKeep                // the peer ends by a reset, not by a FIN
)

// plant makes STags and offsets of a fuzzed ULPDU mean something: an STag of 0
// to 9 stands for one of the stage's, an offset below 2^32 counts from its base.
func (s *stage) plant(u []byte) {
	mrs := []*verbs.MR{nil, s.exposed, s.atomic, s.recv, s.local, s.readable, s.writable, s.foreign, s.top, s.bound}
	at := func(stag, to int) {
		if len(u) < stag+4 {
			return
		}
		i := binary.BigEndian.Uint32(u[stag:])
		if i == 0 || i >= uint32(len(mrs)) {
			return
		}
		binary.BigEndian.PutUint32(u[stag:], uint32(mrs[i].STag()))
		if to == 0 || len(u) < to+8 {
			return
		}
		if v := binary.BigEndian.Uint64(u[to:]); v < 1<<32 {
			binary.BigEndian.PutUint64(u[to:], v+mrs[i].Base())
		}
	}
	switch {
	case len(u) < 2:
	case u[0]&0x80 != 0:
		at(2, 6)
	case u[1]&0xF == 1:
		at(18+16, 18+20)
	case u[1]&0xF == 0xA:
		at(18+8, 18+12)
	default:
		at(2, 0)
	}
}

// FuzzConnection feeds an established queue pair whatever the fuzzer likes, as
// octets or as the ULPDUs of good FPDUs, each behind two octets of length.
// Nothing may panic, hang, stay behind, be sent that is no FPDU, be written
// outside what was exposed, or complete other than once.
func FuzzConnection(f *testing.F) {
	add := func(mode byte, ulpdus ...[]byte) {
		in := []byte{mode}
		for _, u := range ulpdus {
			in = binary.BigEndian.AppendUint16(in, uint16(len(u)))
			in = append(in, u...)
		}
		f.Add(in)
	}
	for _, mode := range []byte{0, fuzzCRC, fuzzMarkers | fuzzCRC, fuzzTCP, fuzzTCP | fuzzCRC | fuzzWork, fuzzWork | fuzzKeep} {
		add(mode, iwarptest.Send(1, []byte("hello")...), iwarptest.SendInvalidate(2, 6, 1), iwarptest.Write(1, 0x100, 1, 2, 3, 4), iwarptest.ReadRequest(1, readOf(1, 2, 100, 5, 0)))
		add(mode, iwarptest.AtomicRequest(1, iwarptest.Atomic{STag: 2, Data: 1}), iwarptest.AtomicRequest(2, iwarptest.Atomic{AOpCode: 2, STag: 1, TO: 8}), iwarptest.Immediate(1, 1, 2, 3, 4, 5, 6, 7, 8))
		add(mode, iwarptest.ReadResponse(1, 0, 1, 2, 3, 4, 5, 6, 7, 8), iwarptest.AtomicResponse(1, 1, 7), iwarptest.Terminate(1, 1, 0, iwarptest.DDPHeader, iwarptest.Write(1, 1)))
		add(mode, iwarptest.Split(iwarptest.Send(1, Fill(100, 7)...), 30)...)
		add(mode, iwarptest.ClearLast(iwarptest.Write(1, 0, 1, 2)), iwarptest.Write(1, 2, 3), iwarptest.Write(7, 0, 1))
	}
	f.Add(append([]byte{fuzzRaw}, (&iwarptest.Peer{}).Frame(iwarptest.Send(1, 1, 2, 3))...))
	f.Add(append([]byte{fuzzRaw | fuzzTCP}, Fill(100, 0)...))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) < 1 || len(in) > 1<<14 {
			return
		}
		mode, in := in[0], append([]byte(nil), in[1:]...)
		w := Wire{Memory: mode&fuzzTCP == 0, CRC: mode&fuzzCRC != 0, Markers: mode&fuzzMarkers != 0}
		s := setStage(t, w, verbs.QPConfig{IRD: 2, ORD: 2})
		s.IgnoreEvents()
		const receives = 4
		s.Receives(s.recv, 0, recvSize, receives)
		s.Peer = s.ln.Connect(s.QP)
		sends := 0
		if mode&fuzzWork != 0 {
			s.open()
			remote := verbs.Remote{STag: 1, TO: 2}
			unreceived := s.recv.SGE(receives*recvSize, 100) // nothing is placed there while it is sent
			for _, wr := range []verbs.SendWR{
				{Op: verbs.OpRead, SGL: []verbs.SGE{s.exposed.SGE(0, 8)}, Remote: remote},
				{Op: verbs.OpFetchAdd, SGL: []verbs.SGE{s.exposed.SGE(8, 8)}, Remote: remote},
				{Op: verbs.OpReadInvalidate, SGL: []verbs.SGE{s.writable.SGE(0, 8)}, Remote: remote},
				{Op: verbs.OpSend, SGL: []verbs.SGE{unreceived}},
			} {
				s.Post(wr)
				sends++
			}
		}
		answered := make(chan error, 1)
		go func() {
			_, err := s.Rest()
			answered <- err
		}()
		if mode&fuzzRaw != 0 {
			_ = s.SendRaw(in) // it may be closed by then
		}
		for mode&fuzzRaw == 0 && len(in) >= 2 {
			n := min(int(binary.BigEndian.Uint16(in)), len(in)-2)
			u := in[2 : 2+n]
			in = in[2+n:]
			s.plant(u)
			if s.Peer.Send(u) != nil {
				break
			}
		}
		if mode&fuzzKeep != 0 {
			_ = s.Reset()
		} else {
			_ = s.CloseWrite() // it may be reset by then
		}
		if err := nettest.Await(t, answered); err != nil && mode&fuzzKeep == 0 && !isReset(err) {
			t.Errorf("what Weft sent is no stream of FPDUs: %v", err)
		}
		_ = s.Peer.Close()
		if err := s.QP.Destroy(); err != nil { // whatever is left of the stream ends
			t.Error(err)
		}
		for _, region := range [][2]int{{exposedOff, exposedLen}, {atomicOff, atomicLen}, {aloneOff, aloneLen}, {recvOff, receives * recvSize}} {
			s.Expect(region[0], s.Arena[region[0]:region[0]+region[1]]...)
		}
		if state := s.QP.State(); state == verbs.Error || state == verbs.Idle {
			s.Take(s.RecvCQ, receives) // more than that is seen in the end
			s.Take(s.SendCQ, sends)
		} else {
			t.Errorf("the queue pair stayed in %v", state)
		}
	})
}

// isReset reports whether err is of a connection that the other side has reset.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
}
