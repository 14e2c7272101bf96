package rdmap

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// Whole segments of every kind, DDP header and all: what goes between MPA's
// length and padding.
//
// Claims: R-4-1 R-4-3 R-4.1-1 R-4.1-3 R-4.1-4 R-4.1-5 R-4.1-6 R-4.1-7 R-4.1-9 R-4.1-12 R-4.2-1 R-4.3-1 R-4.4-1
// Claims: R-4.5-1 R-4.6-1 R-4.7-1 R-4.8-1 R-4.8-34
// Claims: X-4-1 X-4-2 X-4-3 X-4-4 X-4.1-1 X-4.1-8 X-4.2-1 X-5.2.1-1 X-6.2-1 X-6.3-5 X-A.1-1 X-A.2-1 X-A.3-1
// Claims: DDP-4.2-1 DDP-4.3-1 DDP-4.4-1
// Claims: X-5.2-3 R-A.1-1 R-A.2-1 R-A.3-1 R-A.4-1 R-A.5-1 R-A.6-1
func TestWholeSegmentsAreTheGoldenOnes(t *testing.T) {
	fetchAdd := AtomicRequest{AOpCode: AOpFetchAdd, ID: 7, STag: 0x55667788, TO: 0x40, Data: 1}
	response := AtomicResponse{ID: 7, Original: 0x29}
	invalidSTag := NewTerminate(LayerRDMA, RemoteProtection, CodeInvalidSTag, requestHeader.Append(nil), 46, &readRequest)
	for _, c := range []struct {
		name       string
		op         Opcode
		stag       uint32 // of tagged messages, or to be invalidated
		to         uint64
		msn        uint32
		payload    []byte
		wire       string
		wantLength int
	}{
		{"Send", OpSend, 0, 0, 1, []byte("hello"), "4143 00000000 00000000 00000001 00000000 68656c6c6f", 0x17},
		{"Write", OpWrite, 0x1234, 0x1000, 0, []byte{1, 2, 3, 4}, "c140 00001234 0000000000001000 01020304", 0x12},
		{"zero-length Write", OpWrite, 0, 0, 0, nil, "c140 00000000 0000000000000000", 0x0e},
		{"Read Response", OpReadResponse, 0x11223344, 0x1000, 0, []byte{1, 2, 3, 4}, "c142 11223344 0000000000001000 01020304", 0x12},
		{"Send with Invalidate", OpSendInvalidate, 0xdeadbeef, 0, 3, []byte("x"), "4144 deadbeef 00000000 00000003 00000000 78", 0x13},
		{"Send with SE", OpSendSE, 0, 0, 1, nil, "4145 00000000 00000000 00000001 00000000", 0x12},
		{"Read Request", OpReadRequest, 0, 0, 1, readRequest.Append(nil),
			"4141 00000000 00000001 00000001 00000000 11223344 0000000000001000 00001000 55667788 0000000000000020", 0x2e},
		{"FetchAdd", OpAtomicRequest, 0, 0, 2, fetchAdd.Append(nil),
			"414a 00000000 00000001 00000002 00000000 00000000 00000007 55667788 0000000000000040" +
				"0000000000000001 0000000000000000 0000000000000000 ffffffffffffffff", 0x46},
		{"Atomic Response", OpAtomicResponse, 0, 0, 1, response.Append(nil),
			"414b 00000000 00000003 00000001 00000000 00000007 0000000000000029", 0x1e},
		{"Immediate Data", OpImmediate, 0, 0, 2, AppendImmediate(nil, [8]byte{1, 2, 3, 4, 5, 6, 7, 8}),
			"4148 00000000 00000000 00000002 00000000 0102030405060708", 0x1a},
		{"Terminate", OpTerminate, 0, 0, 1, invalidSTag.Append(nil),
			"4147 00000000 00000002 00000001 00000000 0100e000 002e" +
				"4141 00000000 00000001 00000001 00000000 11223344 0000000000001000 00001000 55667788 0000000000000020", 0x46},
	} {
		t.Run(c.name, func(t *testing.T) {
			var o ddp.Outbound
			if c.op.Tagged() {
				o.StartTagged(1, Control(VersionIETF, c.op), c.stag, c.to, uint32(len(c.payload)))
			} else {
				o.StartUntagged(1, ControlUntagged(VersionIETF, c.op, c.stag), c.op.Queue(), c.msn, uint32(len(c.payload)))
			}
			// RFC 5044 §4.5: the least that DDP is ever offered; every header of
			// RDMAP fits one segment of it.
			hdr, off, n, last := o.Next(128, nil)
			got := append(hdr, c.payload[off:int(off)+n]...)
			if want := unhex(t, c.wire); !bytes.Equal(got, want) || len(got) != c.wantLength || !last {
				t.Errorf("got  % x\nwant % x", got, want)
			}

			seen := &taker{t: t}
			receiver := ddp.NewReceiver(1, seen)
			for msn := uint32(1); msn < c.msn; msn++ { // those sent before
				h := ddp.Untagged{Last: true, Version: 1, RsvdULP: ControlUntagged(VersionIETF, c.op, 0), QN: c.op.Queue(), MSN: msn}
				if err := receiver.ULPDU(h.Append(nil)); err != nil {
					t.Fatal(err)
				}
			}
			seen.got = nil
			if err := receiver.ULPDU(got); err != nil {
				t.Fatal(err)
			}
			want := taken{op: c.op, payload: append([]byte{}, c.payload...)}
			switch {
			case c.op.Tagged():
				want.stag, want.to = c.stag, c.to
			case c.op.Invalidates():
				want.stag = c.stag
			}
			if !reflect.DeepEqual(seen.got, []taken{want}) {
				t.Errorf("came out as %+v, want %+v", seen.got, want)
			}
		})
	}
}

// A taker is a ddp.ULP that takes whatever comes.
type taker struct {
	t   testing.TB
	buf [64]byte
	got []taken
}

type taken struct {
	op      Opcode
	stag    uint32
	to      uint64
	payload []byte
}

func (s *taker) AdmitTagged(h *ddp.Tagged, n int) error     { return nil }
func (s *taker) AdmitUntagged(h *ddp.Untagged, n int) error { return nil }

func (s *taker) PlaceTagged(dst [][]byte, h *ddp.Tagged, n int) ([][]byte, ddp.Fault) {
	return append(dst, s.buf[:n]), ddp.NoFault
}

// Buffer is the same for every message, as only the last one matters here.
func (s *taker) Buffer(qn, msn uint32) (size uint64, ok bool, err error) {
	return uint64(len(s.buf)), true, nil
}

func (s *taker) PlaceUntagged(dst [][]byte, h *ddp.Untagged, n int) ([][]byte, error) {
	return append(dst, s.buf[h.MO:][:n]), nil
}

func (s *taker) Release() {}

func (s *taker) Unwritable(_ *ddp.Untagged, cause error) error { return cause }
func (s *taker) Idle()                                         {}

func (s *taker) DeliverTagged(h *ddp.Tagged, n int) error {
	_, op := ParseControl(h.RsvdULP)
	s.got = append(s.got, taken{op, h.STag, h.TO, append([]byte{}, s.buf[:n]...)})
	return nil
}

func (s *taker) DeliverUntagged(h *ddp.Untagged, length uint32) error {
	_, op, stag := ParseControlUntagged(h.RsvdULP)
	if h.QN != op.Queue() {
		s.t.Errorf("%s on queue %d", op, h.QN)
	}
	s.got = append(s.got, taken{op, stag, 0, append([]byte{}, s.buf[:length]...)})
	return nil
}
