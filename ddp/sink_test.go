package ddp

import (
	"bytes"
	"fmt"
	"math"
	"testing"
)

// A sink is a ULP of plain memory: one Tagged Buffer, and for each queue a row
// of posted buffers. It records what is delivered and checks that memory is
// held and let go of in turn.
type sink struct {
	t testing.TB

	stag uint32 // of the Tagged Buffer, which lies at [base, base+len(mem))
	base uint64
	mem  []byte

	posted [Queues][][]byte // buffers that wait for a message
	inUse  [Queues][]byte

	pieces int // memory is handed out in pieces of this many octets, if not 0

	admitErr, bufferErr, placeErr, deliverErr error
	fault                                     Fault // given instead of memory
	stingy                                    int   // octets of memory held back
	only                                      int   // places given, if not 0; then it refuses
	separate                                  bool  // nothing joins
	refuseFrom                                int   // the segment from which admitErr is returned

	admitted  int        // segments seen
	asked     int        // buffers asked for
	places    int        // memory given
	alike     int        // of places, those for messages like the one before
	placed    []delivery // of these, and not delivered
	held      bool
	idle      int
	delivered []delivery
}

// A delivery is a message as it came out.
type delivery struct {
	tagged   Tagged
	untagged Untagged
	length   uint32
	payload  string // of untagged messages
}

func newSink(t testing.TB) *sink {
	return &sink{t: t, stag: 0x1234, base: 0x1000, mem: make([]byte, 4096)}
}

// post puts buffers of the given sizes on queue qn.
func (s *sink) post(qn int, sizes ...int) {
	for _, n := range sizes {
		s.posted[qn] = append(s.posted[qn], make([]byte, n))
	}
}

func (s *sink) AdmitTagged(h *Tagged, n int) error {
	if s.admitted++; s.admitted < s.refuseFrom {
		return nil
	}
	return s.admitErr
}

func (s *sink) AdmitUntagged(h *Untagged, n int) error {
	s.admitted++
	return s.admitErr
}

func (s *sink) PlaceTagged(dst [][]byte, h *Tagged, n int) ([][]byte, Fault) {
	switch {
	case n <= 0:
		s.t.Errorf("PlaceTagged of %d octets", n)
		return dst, FaultBounds
	case s.fault != NoFault:
		return dst, s.fault
	case s.only > 0 && s.places >= s.only:
		return dst, FaultAccess
	case h.STag != s.stag:
		return dst, FaultSTag
	case h.TO < s.base || h.TO-s.base > uint64(len(s.mem)) || uint64(len(s.mem))-(h.TO-s.base) < uint64(n):
		return dst, FaultBounds // wraps included: the Receiver tells them apart
	}
	return s.hand(dst, s.mem[h.TO-s.base:][:n]), NoFault
}

func (s *sink) Buffer(qn, msn uint32) (size uint64, ok bool, err error) {
	s.asked++
	if s.bufferErr != nil {
		return 0, false, s.bufferErr
	}
	row := s.posted[qn]
	if len(row) == 0 {
		return 0, false, nil
	}
	s.inUse[qn], s.posted[qn] = row[0], row[1:]
	return uint64(len(row[0])), true, nil
}

func (s *sink) PlaceUntagged(dst [][]byte, h *Untagged, n int) ([][]byte, error) {
	if n <= 0 {
		s.t.Errorf("PlaceUntagged of %d octets", n)
	}
	if s.placeErr != nil {
		return dst, s.placeErr
	}
	return s.hand(dst, s.inUse[h.QN][h.MO:][:n]), nil
}

func (s *sink) hand(dst [][]byte, m []byte) [][]byte {
	s.held = true
	s.places++
	m = m[:len(m)-s.stingy]
	for s.pieces > 0 && len(m) > s.pieces {
		dst, m = append(dst, m[:s.pieces]), m[s.pieces:]
	}
	return append(dst, m)
}

func (s *sink) Unwritable(h *Untagged, cause error) error {
	return fmt.Errorf("message %d on queue %d: %w", h.MSN, h.QN, cause)
}

func (s *sink) Release() { s.held = false }

func (s *sink) deliver(d delivery) error {
	s.delivered = append(s.delivered, d)
	return s.deliverErr
}

func (s *sink) DeliverTagged(h *Tagged, n int) error {
	return s.deliver(delivery{tagged: *h, length: uint32(n)})
}

func (s *sink) PlaceAlike(stag uint32, to uint64, n int) []byte {
	h := Tagged{Last: true, Version: 1, RsvdULP: 0x40, STag: stag, TO: to}
	if !s.held {
		s.t.Error("PlaceAlike, and no memory is held")
	}
	if s.separate || s.admitErr != nil && s.admitted+1 >= s.refuseFrom || s.deliverErr != nil {
		return nil
	}
	dst, fault := s.PlaceTagged(nil, &h, n)
	if fault != NoFault || len(dst) != 1 || len(dst[0]) < n {
		return nil
	}
	s.admitted++
	s.alike++
	s.placed = append(s.placed, delivery{tagged: h, length: uint32(n)})
	return dst[0]
}

func (s *sink) DeliverAlike(messages int, octets uint64) {
	for _, d := range s.placed[:messages] {
		s.delivered = append(s.delivered, d)
		octets -= uint64(d.length)
	}
	if octets != 0 {
		s.t.Errorf("DeliverAlike of %d messages counts %d octets more than they have", messages, int64(octets))
	}
	s.placed = nil
}

func (s *sink) PlaceQueued(u []byte) (dst []byte, ok bool) {
	var h Untagged
	h.Parse(u)
	n := len(u) - UntaggedLen
	row := s.posted[h.QN]
	if s.separate || s.admitErr != nil || s.bufferErr != nil || s.placeErr != nil || s.deliverErr != nil || s.pieces > 0 || len(row) == 0 || len(row[0]) < n {
		return nil, false
	}
	s.admitted++
	s.asked++
	s.alike++
	s.inUse[h.QN], s.posted[h.QN] = row[0], row[1:]
	s.placed = append(s.placed, delivery{untagged: h, length: uint32(n), payload: string(u[UntaggedLen:])})
	if n == 0 {
		return nil, true
	}
	return s.hand(nil, row[0][:n])[0], true
}

func (s *sink) DeliverQueued(messages int) {
	s.delivered = append(s.delivered, s.placed[:messages]...)
	s.placed = nil
}

func (s *sink) DeliverUntagged(h *Untagged, length uint32) error {
	payload := s.inUse[h.QN]
	return s.deliver(delivery{untagged: *h, length: length, payload: string(payload[:min(uint64(length), uint64(len(payload)))])})
}

func (s *sink) Idle() {
	s.idle++
	s.held = false
}

// state is all that a peer could have brought about, to compare by.
func (s *sink) state() string {
	return fmt.Sprintf("%x %x %+v asked %d", s.mem, s.inUse, s.delivered, s.asked)
}

// tagged and untagged make segments.
func tagged(h Tagged, payload string) []byte     { return append(h.Append(nil), payload...) }
func untagged(h Untagged, payload string) []byte { return append(h.Append(nil), payload...) }

// write is a whole RDMA-Write-like message, send a whole Send-like one.
func write(stag uint32, to uint64, payload string) []byte {
	return tagged(Tagged{Last: true, Version: 1, RsvdULP: 0x40, STag: stag, TO: to}, payload)
}

func send(qn, msn uint32, payload string) []byte {
	return untagged(Untagged{Last: true, Version: 1, RsvdULP: [5]byte{0x43}, QN: qn, MSN: msn}, payload)
}

// piece is one segment of a Send-like message.
func piece(last bool, msn, mo uint32, payload string) []byte {
	return untagged(Untagged{Last: last, Version: 1, RsvdULP: [5]byte{0x43}, MSN: msn, MO: mo}, payload)
}

// feed gives whole segments to r and fails the test on an error.
func feed(t *testing.T, r *Receiver, segments ...[]byte) {
	t.Helper()
	for i, u := range segments {
		if err := r.ULPDU(bytes.Clone(u)); err != nil {
			t.Fatalf("segment %d: %v", i, err)
		}
	}
}

const top = math.MaxUint32 // the highest MSN and the longest message
