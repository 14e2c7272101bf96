package ddp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// compareRuns feeds the same segments one by one to one receiver, and several at a time to
// another, and fails when a trace of it can be seen. It returns how often memory was looked up
// by the first and by the second.
func compareRuns(t testing.TB, rng *rand.Rand, segments [][]byte) (alone, inRuns int) {
	single, several := newSink(t), newSink(t)
	pieces := 7 * rng.IntN(2)
	for _, s := range []*sink{single, several} {
		s.pieces = pieces
		s.mem = s.mem[:256]
		for qn := range uint32(Queues) {
			s.post(int(qn), 40, 0, 200)
		}
	}
	a, b := NewReceiver(1, single), NewReceiver(1, several)
	for i := 0; i < len(segments); {
		n := 1 + rng.IntN(len(segments)-i)
		var us [][]byte
		for _, u := range segments[i : i+n] {
			us = append(us, bytes.Clone(u))
		}
		gotErr := b.ULPDUs(us)
		var wantErr error
		for _, u := range segments[i : i+n] {
			if wantErr = a.ULPDU(u); wantErr != nil {
				break
			}
		}
		i += n
		if len(b.Writing()) > 0 {
			t.Fatalf("up to segment %d: memory is still being written", i)
		}
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || (wantErr != nil && !errors.Is(gotErr, wantErr)) {
			t.Fatalf("up to segment %d: %v together, %v single", i, gotErr, wantErr)
		}
		wantHeader, wantLen := a.Offending()
		if header, n := b.Offending(); !bytes.Equal(header, wantHeader) || n != wantLen {
			t.Fatalf("up to segment %d: offending % x and %d together, % x and %d single", i, header, n, wantHeader, wantLen)
		}
		if got, want := several.state(), single.state(); got != want {
			t.Fatalf("up to segment %d\n together %s\n single   %s", i, got, want)
		}
	}
	return single.places, several.places
}

// inPieces cuts tagged segments into smaller ones.
func inPieces(rng *rand.Rand, segments [][]byte) (all [][]byte) {
	for _, u := range segments {
		var h Tagged
		if !h.Parse(u) || len(u) == TaggedLen {
			all = append(all, u)
			continue
		}
		last := h.Last
		for u = u[TaggedLen:]; len(u) > 0; {
			n := 1 + rng.IntN(min(len(u), 50))
			h.Last = last && n == len(u)
			all = append(all, tagged(h, string(u[:n])))
			h.TO += uint64(n)
			u = u[n:]
		}
	}
	return all
}

// Segments that are handed over together come to the same as segments one by one: octets,
// deliveries, errors.
func TestSegmentsOfARunGiveTheSameAsSingleOnes(t *testing.T) {
	alone, inRuns := 0, 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 9))
		segments := messages(rng, func() int { return 128 })
		if rng.IntN(2) == 0 {
			segments = inPieces(rng, segments)
		}
		if rng.IntN(2) == 0 {
			u := segments[rng.IntN(len(segments))]
			u[rng.IntN(HeaderLen(u))] ^= 1 << rng.IntN(8)
		}
		n, m := compareRuns(t, rng, segments)
		alone, inRuns = alone+n, inRuns+m
	}
	if inRuns > alone-1000 {
		t.Errorf("memory was looked up %d times for runs, and %d times for single segments", inRuns, alone)
	}
}

// begins is the first segment of a tagged message, of three octets.
var begins = Tagged{Version: 1, RsvdULP: 0x40, STag: 0x1234, TO: 0x1000}

// Only a segment that goes on in every respect is placed together with the one before.
//
// Claims: DDP-4.2-6
func TestOnlyWhatGoesOnIsPlacedInARun(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(h *Tagged, s *sink)
		run    bool
	}{
		{"the next segment", func(*Tagged, *sink) {}, true},
		{"the last segment", func(h *Tagged, _ *sink) { h.Last = true }, true},
		{"a gap", func(h *Tagged, _ *sink) { h.TO++ }, false},
		{"an overlap", func(h *Tagged, _ *sink) { h.TO-- }, false},
		{"another version", func(h *Tagged, _ *sink) { h.Version = 0 }, false},
		{"another octet of the ULP's", func(h *Tagged, _ *sink) { h.RsvdULP = 0x42 }, false},
		{"another buffer", func(h *Tagged, _ *sink) { h.STag = 0x1235 }, false},
		{"outside of the buffer", func(_ *Tagged, s *sink) { s.mem = s.mem[:5] }, false},
		{"memory that falls short", func(_ *Tagged, s *sink) { s.stingy = 1 }, false},
		{"the ULP says no", func(_ *Tagged, s *sink) { s.separate = true }, false},
	} {
		s := newSink(t)
		h := begins
		h.TO += 3
		c.change(&h, s)
		wantRun(t, c.name, s, tagged(begins, "abc"), tagged(h, "def"), c.run)
	}
	last := begins
	last.Last = true
	empty := begins
	untagged := piece(false, 1, 0, "abc")
	for _, c := range []struct {
		name          string
		first, second []byte
	}{
		{"behind the last segment", tagged(last, "abc"), write(0x1234, 0x1003, "def")},
		{"behind one without payload", tagged(empty, ""), write(0x1234, 0x1000, "def")},
		{"without payload", tagged(begins, "abc"), write(0x1234, 0x1003, "")},
		{"without a whole header", tagged(begins, "abc"), write(0x1234, 0x1003, "")[:13]},
		{"of the other kind", tagged(begins, "abc"), send(0, 1, "def")},
		{"untagged", untagged, piece(true, 1, 3, "def")},
	} {
		s := newSink(t)
		s.post(0, 100)
		wantRun(t, c.name, s, c.first, c.second, false)
	}
	// An untagged segment in the middle of a tagged message stands alone.
	s := newSink(t)
	s.post(0, 100)
	r := NewReceiver(1, s)
	next := begins
	next.TO += 3
	third := next
	third.TO += 3
	if err := r.ULPDUs([][]byte{tagged(begins, "abc"), piece(false, 1, 0, "xyz"), tagged(next, "def"), tagged(third, "ghi")}); err != nil || s.places != 3 || !bytes.HasPrefix(s.mem, []byte("abcdefghi")) {
		t.Errorf("of two kinds: %v, memory looked up %d times, %q", err, s.places, s.mem[:9])
	}
	// Behind the last segment a message may begin where another would go on.
	s = newSink(t)
	h := next
	h.Last = true
	next = h
	next.TO += 3
	if err := NewReceiver(1, s).ULPDUs([][]byte{tagged(begins, "abc"), tagged(h, "def"), tagged(next, "ghi")}); err != nil || s.places != 2 || len(s.delivered) != 2 {
		t.Errorf("two messages: %v, memory looked up %d times, delivered %+v", err, s.places, s.delivered)
	}
}

// wantRun checks whether the memory of two segments is looked up at once.
func wantRun(t *testing.T, name string, s *sink, first, second []byte, want bool) {
	t.Helper()
	r := NewReceiver(1, s)
	if err := r.check(first, len(first)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if n := r.run([][]byte{first, second}); n != 1 && !want || n != 2 && want {
		t.Errorf("%s: %d segments are placed together, expected it: %t", name, n, want)
	}
}

// The ULP is asked about all segments of a run but the first before anything is placed, and
// admits them when they are in place. If it does not, the first of them is at fault.
func TestTheULPAdmitsASegmentOfARun(t *testing.T) {
	s := newSink(t)
	refused := errors.New("refused")
	s.refuseFrom, s.admitErr = 2, refused
	r := NewReceiver(1, s)
	second := begins
	second.TO += 3
	last := second
	last.TO, last.Last = last.TO+3, true
	if err := r.ULPDUs([][]byte{tagged(begins, "abc"), tagged(second, "def"), tagged(last, "ghi")}); err != refused {
		t.Errorf("%v, expected what the ULP says", err)
	}
	if header, n := r.Offending(); !bytes.Equal(header, tagged(second, "")) || n != TaggedLen+3 {
		t.Errorf("offending % x of %d octets, expected the second segment", header, n)
	}
	if err := r.ULPDUs([][]byte{write(0x1234, 0x1100, "later")}); err != nil || len(s.delivered) > 0 || s.mem[0x100] != 0 {
		t.Errorf("then %v, delivered %v, expected silence", err, s.delivered)
	}
}
