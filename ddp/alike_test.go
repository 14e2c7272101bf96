package ddp

import (
	"bytes"
	"fmt"
	"testing"
)

// A message that differs from the one before in place and length only is placed without being
// admitted by itself; any other is.
//
// Claims: DDP-7.1-11 DDP-5.4-2
func TestOnlyMessagesThatAreAlikeAreTakenTogether(t *testing.T) {
	first := Tagged{Last: true, Version: 1, RsvdULP: 0x40, STag: 0x1234, TO: 0x1000}
	for _, c := range []struct {
		name    string
		change  func(h *Tagged, s *sink)
		payload string
		alike   bool
	}{
		{"elsewhere", func(h *Tagged, _ *sink) { h.TO += 100 }, "de", true},
		{"at the same place", func(*Tagged, *sink) {}, "def", true},
		{"not the last segment", func(h *Tagged, _ *sink) { h.Last = false }, "def", false},
		{"another version", func(h *Tagged, _ *sink) { h.Version = 0 }, "def", false},
		{"another octet of the ULP's", func(h *Tagged, _ *sink) { h.RsvdULP = 0x42 }, "def", false},
		{"another buffer", func(h *Tagged, _ *sink) { h.STag = 0x1235 }, "def", false},
		{"outside of the buffer", func(h *Tagged, _ *sink) { h.TO = 0 }, "def", false},
		{"memory in pieces", func(_ *Tagged, s *sink) { s.pieces = 1 }, "def", false},
		{"without payload", func(*Tagged, *sink) {}, "", false},
		{"the ULP says no", func(_ *Tagged, s *sink) { s.separate = true }, "def", false},
	} {
		s, single := newSink(t), newSink(t)
		h := first
		c.change(&h, s)
		c.change(new(Tagged), single)
		us := [][]byte{tagged(first, "abc"), tagged(h, c.payload), tagged(first, "ghi")}
		got := NewReceiver(1, s).ULPDUs(us)
		r := NewReceiver(1, single)
		var want error
		for _, u := range us {
			if want == nil {
				want = r.ULPDU(u)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || s.state() != single.state() {
			t.Errorf("%s: %v together and %v single\n together %s\n single   %s", c.name, got, want, s.state(), single.state())
		}
		if c.alike && s.alike != 2 || !c.alike && s.alike > 1 { // the third may be like the second
			t.Errorf("%s: %d were taken as alike, expected it of the second: %v", c.name, s.alike, c.alike)
		}
	}
}

// After a message in pieces, untagged ones, and ones without payload, the next is admitted.
func TestAMessageBehindAnotherKindIsAdmitted(t *testing.T) {
	w := write(0x1234, 0x1000, "abc")
	for name, before := range map[string][]byte{
		"untagged": send(0, 1, "abc"), "empty": write(0x1234, 0x1000, ""), "begun": tagged(begins, "abc"),
	} {
		s := newSink(t)
		s.post(0, 8)
		if err := NewReceiver(1, s).ULPDUs([][]byte{before, w}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.alike != 0 || s.admitted != 2 {
			t.Errorf("%s: %d admitted, %d taken as alike", name, s.admitted, s.alike)
		}
	}
}

// The last of those that are alike is the segment at hand.
func TestTheLastOfAlikeMessagesIsAtHand(t *testing.T) {
	s := newSink(t)
	r := NewReceiver(1, s)
	last := write(0x1234, 0x1008, "four")
	if err := r.ULPDUs([][]byte{write(0x1234, 0x1000, "abc"), write(0x1234, 0x1004, "de"), last}); err != nil || s.alike != 2 {
		t.Fatalf("%v, %d taken as alike", err, s.alike)
	}
	if header, n := r.Offending(); !bytes.Equal(header, last[:TaggedLen]) || n != len(last) {
		t.Errorf("% x of %d octets is at hand", header, n)
	}
	if len(r.Writing()) != 0 {
		t.Error("memory is still being written")
	}
}

// An untagged message that differs from the one before in MSN and payload only is taken with it;
// any other is taken by itself.
//
// Claims: DDP-5.4-2
func TestOnlyUntaggedMessagesThatAreAlikeAreTakenTogether(t *testing.T) {
	first := Untagged{Last: true, Version: 1, RsvdULP: [5]byte{0x43, 1, 2, 3, 4}, QN: 1, MSN: 1}
	for _, c := range []struct {
		name    string
		change  func(h *Untagged, s *sink)
		payload string
		alike   bool
	}{
		{"the next", func(*Untagged, *sink) {}, "de", true},
		{"without payload", func(*Untagged, *sink) {}, "", true},
		{"not the last segment", func(h *Untagged, _ *sink) { h.Last = false }, "def", false},
		{"another version", func(h *Untagged, _ *sink) { h.Version = 0 }, "def", false},
		{"another octet of the ULP's", func(h *Untagged, _ *sink) { h.RsvdULP[0]++ }, "def", false},
		{"the last octet of the ULP's", func(h *Untagged, _ *sink) { h.RsvdULP[4]++ }, "def", false},
		{"another queue", func(h *Untagged, _ *sink) { h.QN, h.MSN = 0, 1 }, "def", false},
		{"the same message", func(h *Untagged, _ *sink) { h.MSN = 1 }, "def", false},
		{"the message after the next", func(h *Untagged, _ *sink) { h.MSN = 3 }, "def", false},
		{"in the middle of a message", func(h *Untagged, _ *sink) { h.MO = 1 }, "def", false},
		{"longer than its buffer", func(*Untagged, *sink) {}, "nine octets", false},
		{"without a buffer", func(_ *Untagged, s *sink) { s.posted[1] = s.posted[1][:1] }, "def", false},
		{"the ULP says no", func(_ *Untagged, s *sink) { s.separate = true }, "def", false},
	} {
		s, single := newSink(t), newSink(t)
		h := first
		h.MSN = 2
		for _, s := range []*sink{s, single} {
			s.post(0, 8, 8)
			s.post(1, 8, 8, 8)
		}
		c.change(&h, s)
		c.change(new(Untagged), single)
		third := first
		third.MSN = 3
		us := [][]byte{untagged(first, "abc"), untagged(h, c.payload), untagged(third, "ghi")}
		r, one := NewReceiver(1, s), NewReceiver(1, single)
		got := r.ULPDUs(us)
		var want error
		for _, u := range us {
			if want == nil {
				want = one.ULPDU(u)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || s.state() != single.state() {
			t.Errorf("%s: %v together and %v single\n together %s\n single   %s", c.name, got, want, s.state(), single.state())
		}
		if c.alike && s.alike != 2 || !c.alike && s.alike > 1 {
			t.Errorf("%s: %d were taken as alike, expected it of the second: %v", c.name, s.alike, c.alike)
		}
		at, n := r.Offending()
		if w, m := one.Offending(); !bytes.Equal(at, w) || n != m {
			t.Errorf("%s: % x of %d octets is at hand, expected % x of %d", c.name, at, n, w, m)
		}
	}
}

// Behind a message of several segments the next is looked at by itself.
func TestAnUntaggedMessageBehindALongOneIsAdmitted(t *testing.T) {
	begin := Untagged{Version: 1, RsvdULP: [5]byte{0x43}, QN: 0, MSN: 1}
	end := begin
	end.Last, end.MO = true, 3
	next := begin
	next.Last, next.MSN = true, 2
	s := newSink(t)
	s.post(0, 8, 8)
	if err := NewReceiver(1, s).ULPDUs([][]byte{untagged(begin, "abc"), untagged(end, "def"), untagged(next, "ghi")}); err != nil {
		t.Fatal(err)
	}
	if s.alike != 0 || s.admitted != 3 || len(s.delivered) != 2 {
		t.Errorf("%d taken as alike, %d admitted, %d delivered", s.alike, s.admitted, len(s.delivered))
	}
}
