package ddp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// read hands the segment u to r as an LLP does that reads payload straight into
// its place, in pieces of random size.
func read(t testing.TB, rng *rand.Rand, r *Receiver, u []byte) error {
	head := bytes.Clone(u[:rng.IntN(len(u)+1)])
	skip, ok, err := r.Begin(head, len(u))
	clear(head) // not ours any more
	switch {
	case err != nil:
		return err
	case !ok:
		return r.ULPDU(u)
	case skip != HeaderLen(u):
		t.Fatalf("Begin skips %d octets, the header has %d", skip, HeaderLen(u))
	}
	wantReleased(t, r)
	dst := [][]byte{nil} // what is there stays there
	for off := skip; off < len(u); {
		dst, err = r.Window(dst[:1], off)
		if err != nil {
			r.Release()
			return err
		}
		room := 0
		for _, m := range dst[1:] {
			room += len(m)
		}
		if room != len(u)-off {
			t.Fatalf("window of %d octets, %d are to come", room, len(u)-off)
		}
		arrived := u[off:][:1+rng.IntN(len(u)-off)]
		off += len(arrived)
		for _, m := range dst[1:] {
			arrived = arrived[copy(m, arrived):]
		}
		r.Release()
		wantReleased(t, r)
	}
	return r.End()
}

// wantReleased fails when the sink holds memory while the LLP may wait for the peer.
func wantReleased(t testing.TB, r *Receiver) {
	if s, ok := r.ulp.(*sink); ok && s.held {
		t.Fatal("memory is held while the next octets are awaited")
	}
}

// compare feeds the same segments whole to one receiver and in random pieces to
// another, and fails when a trace of it can be seen.
func compare(t testing.TB, rng *rand.Rand, segments [][]byte) {
	whole, cutUp := newSink(t), newSink(t)
	for _, s := range []*sink{whole, cutUp} {
		s.pieces = 7
		s.mem = s.mem[:256]
		for qn := range uint32(Queues) {
			s.post(int(qn), 40, 0, 200)
		}
	}
	a, b := NewReceiver(1, whole), NewReceiver(1, cutUp)
	for i, u := range segments {
		wantErr := a.ULPDU(u)
		gotErr := read(t, rng, b, u)
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || (wantErr != nil && !errors.Is(gotErr, wantErr)) {
			t.Fatalf("segment %d, % x: %v in pieces, %v whole", i, u, gotErr, wantErr)
		}
		wantHeader, wantLen := a.Offending()
		if header, n := b.Offending(); !bytes.Equal(header, wantHeader) || n != wantLen {
			t.Fatalf("segment %d, % x: offending % x and %d in pieces, % x and %d whole", i, u, header, n, wantHeader, wantLen)
		}
		if got, want := cutUp.state(), whole.state(); got != want {
			t.Fatalf("segment %d, % x\n in pieces %s\n     whole %s", i, u, got, want)
		}
	}
}

// messages returns 12 or more segments of messages of random kinds and lengths, each message
// cut by a MULPDU of its own.
func messages(rng *rand.Rand, mulpdu func() int) (segments [][]byte) {
	var seq Sequence
	for len(segments) < 12 {
		payload := make([]byte, rng.IntN(200))
		for i := range payload {
			payload[i] = byte(rng.Uint32())
		}
		var o Outbound
		if rng.IntN(2) == 0 {
			o.StartTagged(1, 0x40, 0x1234, 0x1000+uint64(rng.IntN(257-len(payload))), uint32(len(payload)))
		} else {
			qn := uint32(rng.IntN(Queues))
			o.StartUntagged(1, [5]byte{0x43}, qn, seq.Next(qn), uint32(len(payload)))
		}
		for most := mulpdu(); !o.Done(); {
			hdr, off, n, _ := o.Next(most, nil)
			segments = append(segments, append(hdr, payload[off:int(off)+n]...))
		}
	}
	return segments
}

// A segment read straight into place comes to the same as a whole one: octets,
// deliveries, errors.
func TestDirectPlacementGivesTheSameAsWholeSegments(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 5))
		segments := messages(rng, func() int { return 128 })
		if rng.IntN(2) == 0 { // most faults need a bit out of place
			u := segments[rng.IntN(len(segments))]
			u[rng.IntN(HeaderLen(u))] ^= 1 << rng.IntN(8)
		}
		compare(t, rng, segments)
	}
	for seed := range uint64(100) {
		for _, c := range refusals {
			compare(t, rand.New(rand.NewPCG(seed, 6)), [][]byte{c.segment, write(0x1234, 0x1000, "later")})
		}
	}
}

// FuzzReceiver takes data as segments, each behind an octet that gives its
// length.
func FuzzReceiver(f *testing.F) {
	join := func(segments ...[]byte) (data []byte) {
		for _, u := range segments {
			u = u[:min(len(u), 255)]
			data = append(append(data, byte(len(u))), u...)
		}
		return data
	}
	for _, c := range refusals {
		f.Add(uint64(1), join(piece(false, 1, 0, "abc"), c.segment, write(0x1234, 0x1000, "later")))
	}
	f.Add(uint64(2), join(piece(false, 1, 0, "abc"), piece(false, 1, 3, "def"), write(0x1234, 0x1010, "hello"), piece(true, 1, 6, ""), send(0, 2, ""), send(3, 1, "xyz")))
	message := inPieces(rand.New(rand.NewPCG(1, 2)), [][]byte{write(0x1234, 0x1010, strings.Repeat("hello", 40))})
	f.Add(uint64(3), join(message...))
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) {
		var segments [][]byte
		for len(data) > 0 {
			n := min(int(data[0]), len(data)-1)
			segments, data = append(segments, data[1:1+n:1+n]), data[1+n:]
		}
		compare(t, rand.New(rand.NewPCG(seed, 7)), segments)
		compareJoined(t, rand.New(rand.NewPCG(seed, 9)), segments)
		compareRuns(t, rand.New(rand.NewPCG(seed, 10)), segments)
	})
}

// Begin says no, without an error and without a trace, while the header is not
// there or nothing is to be read into place.
func TestBeginDeclinesWhatItCannotJudge(t *testing.T) {
	s := newSink(t)
	s.post(0, 10)
	r := NewReceiver(1, s)
	w, m := write(s.stag, s.base, "abc"), send(0, 1, "abc")
	for _, head := range [][]byte{nil, w[:1], w[:TaggedLen-1], m[:1], m[:UntaggedLen-1]} {
		if skip, ok, err := r.Begin(head, 17); skip != 0 || ok || err != nil {
			t.Errorf("head % x: %d %v %v", head, skip, ok, err)
		}
	}
	for _, empty := range [][]byte{write(0, 0, ""), send(0, 1, "")} {
		if _, ok, err := r.Begin(empty, len(empty)); ok || err != nil {
			t.Errorf("empty segment: %v %v", ok, err)
		}
	}
	if s.admitted != 0 || s.asked != 0 {
		t.Error("the ULP was asked about a segment that was declined")
	}
}

// Protection may change between two windows: the rest is not placed, and the
// report names the whole segment as it was sent.
func TestWindowIsCheckedAnew(t *testing.T) {
	s := newSink(t)
	r := NewReceiver(1, s)
	u := write(s.stag, s.base, "0123456789")
	skip, ok, err := r.Begin(u, len(u))
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	dst, err := r.Window(nil, skip)
	if err != nil || len(dst) != 1 || len(dst[0]) != 10 {
		t.Fatal(dst, err)
	}
	copy(dst[0], "0123")
	r.Release()
	s.fault = FaultSTag
	_, err = r.Window(nil, skip+4)
	var e *Error
	if !errors.As(err, &e) || e.EType != TaggedBuffer || e.Code != CodeInvalidSTag || e.SegmentLength != len(u) || !bytes.Equal(e.Header(), u[:TaggedLen]) {
		t.Fatalf("got %v", err)
	}
	if want := "ddp: tagged buffer error: invalid STag: 6 octets at offset 0x1004 of STag 0x00001234"; err.Error() != want {
		t.Errorf("got %s, want %s", err, want)
	}
	r.Release()
	if dst, err := r.Window(nil, skip+4); len(dst) != 0 || err != nil {
		t.Errorf("window after the error: %v %v", dst, err)
	}
	s.fault = NoFault
	if err := r.End(); err != nil || len(s.delivered) != 0 {
		t.Errorf("End after the error: %v, delivered %+v", err, s.delivered)
	}
	if s.places != 2 || s.held {
		t.Errorf("placed %d times, held %v", s.places, s.held)
	}
}

// The place of an untagged window moves on with the octets that are there.
//
// Claims: DDP-7.1-10
func TestUntaggedWindowMovesOn(t *testing.T) {
	s := newSink(t)
	s.post(0, 20)
	r := NewReceiver(1, s)
	feed(t, r, piece(false, 1, 0, "0123"))
	u := piece(true, 1, 4, "456789")
	skip, ok, err := r.Begin(u[:UntaggedLen], len(u))
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	for i := range 6 {
		dst, err := r.Window(nil, skip+i)
		if err != nil || len(dst[0]) != 6-i || &dst[0][0] != &s.inUse[0][4+i] {
			t.Fatalf("window %d: %d octets, %v", i, len(dst[0]), err)
		}
		dst[0][0] = u[skip+i]
		r.Release()
	}
	if dst, err := r.Window(nil, len(u)); len(dst) != 0 || err != nil {
		t.Errorf("window behind the end: %v %v", dst, err)
	}
	r.Release()
	if err := r.End(); err != nil || len(s.delivered) != 1 || s.delivered[0].payload != "0123456789" {
		t.Errorf("%v, delivered %+v", err, s.delivered)
	}
}
