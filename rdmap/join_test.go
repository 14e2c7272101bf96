package rdmap

import "testing"

// What joins a Read Response, and so is placed before all of its checks, stays within what the
// Read asked for, and ends where that ends.
func TestASegmentJoinsAReadResponseOnlyWithinTheRead(t *testing.T) {
	for _, c := range []struct {
		name string
		last bool
		n    int
		ok   bool
	}{
		{"the rest", true, 7, true},
		{"a part", false, 6, true},
		{"one octet more", true, 8, false},
		{"one octet more, and not the last", false, 8, false},
		{"one octet less", true, 6, false},
		{"the rest, but not the last", false, 7, false},
	} {
		r := newRig(t)
		r.region(0x11, 0xf0, 0x40, '.')
		r.send(readOf(10))
		in := r.in.receiver
		first := tagged(OpReadResponse, 0x11, 0x100, false, octets(3))
		if _, ok, err := in.Begin(first, len(first)); !ok || err != nil {
			t.Fatalf("%s: %t, %v", c.name, ok, err)
		}
		next := tagged(OpReadResponse, 0x11, 0x103, c.last, octets(c.n))
		if _, ok := in.Join(next, len(next)); ok != c.ok {
			t.Errorf("%s: joined %t, expected %t", c.name, ok, c.ok)
		}
	}
}

// A segment of a Write joins whatever its length is.
func TestSegmentsOfAWriteJoin(t *testing.T) {
	r := newRig(t)
	r.region(0x11, 0x100, 10, '.')
	in := r.in.receiver
	first := tagged(OpWrite, 0x11, 0x100, false, octets(3))
	if _, ok, err := in.Begin(first, len(first)); !ok || err != nil {
		t.Fatal(ok, err)
	}
	for i, c := range []struct {
		segment []byte
		ok      bool
	}{
		{tagged(OpWrite, 0x11, 0x103, false, octets(4)), true},
		{tagged(OpWrite, 0x11, 0x107, true, octets(4)), false}, // the region ends before
		{tagged(OpWrite, 0x11, 0x107, true, octets(3)), true},
		{tagged(OpWrite, 0x11, 0x10a, true, octets(1)), false},
	} {
		if _, ok := in.Join(c.segment, len(c.segment)); ok != c.ok {
			t.Errorf("segment %d joined %t, expected %t", i, ok, c.ok)
		}
	}
}
