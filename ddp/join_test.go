package ddp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// Joins lets all segments join, unless the test says otherwise.
func (s *sink) Joins(*Tagged, int) bool { return !s.separate }

// readJoined hands segments to r as an LLP does that reads the payload of several straight
// into its place, in pieces of random size. It returns how many it handed over, and the error
// of the last.
func readJoined(t testing.TB, rng *rand.Rand, r *Receiver, segments [][]byte) (used int, err error) {
	u := segments[0]
	skip, ok, err := r.Begin(bytes.Clone(u), len(u))
	if err != nil {
		return 1, err
	}
	if !ok {
		return 1, r.ULPDU(u)
	}
	payload := bytes.Clone(u[skip:])
	for used = 1; used < len(segments); used++ {
		u := segments[used]
		head := bytes.Clone(u[:min(len(u), UntaggedLen)])
		skip, ok := r.Join(head, len(u))
		clear(head) // not ours any more
		wantReleased(t, r)
		if !ok {
			break
		}
		payload = append(payload, u[skip:]...)
	}
	for off := 0; off < len(payload); {
		dst, err := r.Window(nil, skip+off)
		if err != nil {
			r.Release()
			return 1, err
		}
		if n := len(bytes.Join(dst, nil)); n != len(payload)-off {
			t.Fatalf("window of %d octets, %d are to come", n, len(payload)-off)
		}
		arrived := payload[off:][:1+rng.IntN(len(payload)-off)]
		off += len(arrived)
		for _, m := range dst {
			arrived = arrived[copy(m, arrived):]
		}
		r.Release()
	}
	if err := r.End(); err != nil {
		return 1, err
	}
	for i, u := range segments[1:used] {
		if _, ok, err := r.Begin(bytes.Clone(u[:HeaderLen(u)]), len(u)); !ok || err != nil {
			t.Fatalf("segment %d had joined: %t, %v", i+1, ok, err)
		}
		if err := r.End(); err != nil {
			return i + 2, err
		}
	}
	return used, nil
}

// compareJoined feeds the same segments one by one to one receiver, and joined as far as that
// goes to another, and fails when a trace of it can be seen. It returns how many have joined.
func compareJoined(t testing.TB, rng *rand.Rand, segments [][]byte) (count int) {
	single, joined := newSink(t), newSink(t)
	for _, s := range []*sink{single, joined} {
		s.pieces = 7
		s.mem = s.mem[:256]
		for qn := range uint32(Queues) {
			s.post(int(qn), 40, 0, 200)
		}
	}
	a, b := NewReceiver(1, single), NewReceiver(1, joined)
	for i := 0; i < len(segments); {
		used, gotErr := readJoined(t, rng, b, segments[i:])
		var wantErr error
		for _, u := range segments[i : i+used] {
			wantErr = a.ULPDU(u)
		}
		i += used
		count += used - 1
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || (wantErr != nil && !errors.Is(gotErr, wantErr)) {
			t.Fatalf("segment %d: %v joined, %v single", i, gotErr, wantErr)
		}
		wantHeader, wantLen := a.Offending()
		if header, n := b.Offending(); !bytes.Equal(header, wantHeader) || n != wantLen {
			t.Fatalf("segment %d: offending % x and %d joined, % x and %d single", i, header, n, wantHeader, wantLen)
		}
		if got, want := joined.state(), single.state(); got != want {
			t.Fatalf("segment %d\n joined %s\n single %s", i, got, want)
		}
	}
	return count
}

// Segments that are placed together come to the same as segments one by one: octets,
// deliveries, errors.
func TestJoinedSegmentsGiveTheSameAsSingleOnes(t *testing.T) {
	joined := 0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 8))
		segments := messages(rng, func() int { return 24 + rng.IntN(40) })
		if rng.IntN(2) == 0 {
			u := segments[rng.IntN(len(segments))]
			u[rng.IntN(HeaderLen(u))] ^= 1 << rng.IntN(8)
		}
		joined += compareJoined(t, rng, segments)
	}
	if joined < 300 {
		t.Errorf("%d segments joined", joined)
	}
}

// Only a segment that goes on in every respect joins. What is placed before its other checks
// is then what it may place.
//
// Claims: DDP-4.2-6
func TestOnlyWhatGoesOnJoins(t *testing.T) {
	next := Tagged{Version: 1, RsvdULP: 0x40, STag: 0x1234, TO: 0x1003}
	after := Untagged{Version: 1, RsvdULP: [5]byte{0x43}, MSN: 1, MO: 3}
	for _, c := range []struct {
		name   string
		tagged func(h *Tagged, s *sink)
		send   func(h *Untagged, s *sink)
		ok     bool
	}{
		{"the next segment", func(*Tagged, *sink) {}, func(*Untagged, *sink) {}, true},
		{"the last segment", func(h *Tagged, _ *sink) { h.Last = true }, func(h *Untagged, _ *sink) { h.Last = true }, true},
		{"a gap", func(h *Tagged, _ *sink) { h.TO++ }, func(h *Untagged, _ *sink) { h.MO++ }, false},
		{"an overlap", func(h *Tagged, _ *sink) { h.TO-- }, func(h *Untagged, _ *sink) { h.MO-- }, false},
		{"another version", func(h *Tagged, _ *sink) { h.Version = 0 }, func(h *Untagged, _ *sink) { h.Version = 0 }, false},
		{"other octets of the ULP's", func(h *Tagged, _ *sink) { h.RsvdULP = 0x42 }, func(h *Untagged, _ *sink) { h.RsvdULP[4] = 1 }, false},
		{"another buffer", func(h *Tagged, _ *sink) { h.STag = 0x1235 }, func(h *Untagged, _ *sink) { h.MSN = 2 }, false},
		{"another queue", nil, func(h *Untagged, _ *sink) { h.QN = 1 }, false},
		{"outside of the buffer", func(_ *Tagged, s *sink) { s.mem = s.mem[:5] }, func(h *Untagged, s *sink) { s.posted[0][0] = s.posted[0][0][:5] }, false},
		{"memory that is refused", func(_ *Tagged, s *sink) { s.only = 1 }, nil, false},
		{"the ULP says no", func(_ *Tagged, s *sink) { s.separate = true }, nil, false},
	} {
		if c.tagged != nil {
			s := newSink(t)
			h := next
			c.tagged(&h, s)
			wantJoin(t, c.name+", tagged", s, tagged(Tagged{Version: 1, RsvdULP: 0x40, STag: 0x1234, TO: 0x1000}, "abc"), tagged(h, "def"), c.ok)
		}
		if c.send != nil {
			s := newSink(t)
			s.post(0, 100)
			s.post(1, 100)
			h := after
			c.send(&h, s)
			wantJoin(t, c.name+", untagged", s, piece(false, 1, 0, "abc"), untagged(h, "def"), c.ok)
		}
	}
	for _, c := range []struct {
		name          string
		first, second []byte
	}{
		{"behind the last segment, tagged", write(0x1234, 0x1000, "abc"), write(0x1234, 0x1003, "def")},
		{"behind the last segment, untagged", send(0, 1, "abc"), piece(true, 1, 3, "def")},
		{"of the other kind", piece(false, 1, 0, "abc"), write(0x1234, 0x1003, "def")},
		{"without payload", tagged(Tagged{Version: 1, RsvdULP: 0x40, STag: 0x1234, TO: 0x1000}, "abc"), write(0x1234, 0x1003, "")},
		{"without a whole header", piece(false, 1, 0, "abc"), piece(true, 1, 3, "")[:17]},
		{"nothing", piece(false, 1, 0, "abc"), nil},
	} {
		s := newSink(t)
		s.post(0, 100)
		wantJoin(t, c.name, s, c.first, c.second, false)
	}
}

func wantJoin(t *testing.T, name string, s *sink, first, second []byte, want bool) {
	t.Helper()
	r := NewReceiver(1, s)
	if _, ok, err := r.Begin(first, len(first)); !ok || err != nil {
		t.Fatalf("%s: %t, %v", name, ok, err)
	}
	if !r.MayJoin() && want {
		t.Errorf("%s: may not join", name)
	}
	if _, ok := r.Join(second, len(second)); ok != want {
		t.Errorf("%s: joined %t, expected %t", name, ok, want)
	}
	wantReleased(t, r)
}

// Behind the last segment of a message nothing may join, so that nobody need look for it.
func TestBehindTheLastSegmentNothingMayJoin(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second []byte
	}{
		{"tagged", tagged(Tagged{Version: 1, RsvdULP: 0x40, STag: 0x1234, TO: 0x1000}, "abc"), write(0x1234, 0x1003, "def")},
		{"untagged", piece(false, 1, 0, "abc"), piece(true, 1, 3, "def")},
	} {
		s := newSink(t)
		s.post(0, 100)
		r := NewReceiver(1, s)
		if _, ok, err := r.Begin(c.first, len(c.first)); !ok || err != nil || !r.MayJoin() {
			t.Fatalf("%s: %t, %v, may join %t", c.name, ok, err, r.MayJoin())
		}
		if _, ok := r.Join(c.second, len(c.second)); !ok || r.MayJoin() {
			t.Errorf("%s: joined %t, then may join %t, expected true, false", c.name, ok, r.MayJoin())
		}
	}
}

// Memory that goes while segments arrive together is the fault of the segment that was
// arriving: the same one as if they came one by one.
func TestMemoryThatGoesIsTheFaultOfTheSegmentThatArrives(t *testing.T) {
	gone := errors.New("gone")
	for _, segments := range [][][]byte{
		{
			tagged(Tagged{Version: 1, RsvdULP: 0x40, STag: 0x1234, TO: 0x1000}, "abc"),
			tagged(Tagged{Version: 1, RsvdULP: 0x40, STag: 0x1234, TO: 0x1003}, "defg"),
			write(0x1234, 0x1007, "hi"),
		},
		{piece(false, 1, 0, "abc"), piece(false, 1, 3, "defg"), piece(true, 1, 7, "hi")},
	} {
		for arrived := range 9 {
			for _, revoked := range []bool{true, false} {
				s := newSink(t)
				s.post(0, 100)
				r := NewReceiver(1, s)
				begin(t, r, segments)
				if revoked {
					s.fault, s.placeErr = FaultSTag, gone
				}
				_, err := r.Window(nil, HeaderLen(segments[0])+arrived)
				if !revoked {
					err = r.Unwritable(gone)
				}
				r.Release()
				if err == nil {
					t.Fatalf("%d arrived, revoked %t: no error", arrived, revoked)
				}
				want := segments[0]
				switch {
				case arrived >= 7:
					want = segments[2]
				case arrived >= 3:
					want = segments[1]
				}
				wantHeader := want[:HeaderLen(want)]
				if got, n := r.Offending(); !bytes.Equal(got, wantHeader) || n != len(want) {
					t.Errorf("%d arrived, revoked %t: offending % x of %d octets, expected % x of %d", arrived, revoked, got, n, wantHeader, len(want))
				}
				var e *Error
				if errors.As(err, &e) && (!bytes.Equal(e.Header(), wantHeader) || e.SegmentLength != len(want)) {
					t.Errorf("%d arrived, revoked %t: the error has % x of %d octets, expected % x of %d", arrived, revoked, e.Header(), e.SegmentLength, wantHeader, len(want))
				}
			}
		}
	}
}

// begin begins the first segment, and has the others join.
func begin(t *testing.T, r *Receiver, segments [][]byte) {
	t.Helper()
	if _, ok, err := r.Begin(segments[0], len(segments[0])); !ok || err != nil {
		t.Fatal(ok, err)
	}
	for _, u := range segments[1:] {
		if _, ok := r.Join(u, len(u)); !ok {
			t.Fatal("a segment did not join")
		}
	}
}
