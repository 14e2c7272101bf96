package rdmap

import "testing"

// A segment without octets may name anything in the midst of a message and at
// its end, and the message goes on where it was.
//
// Claims: DDP-5.2-10 DDP-5.2-11
func TestAnEmptySegmentOfAWriteMayNameAnything(t *testing.T) {
	r := newRig(t)
	target := r.region(0x11, 0x100, 8, '.')
	r.take(
		tagged(OpWrite, 0x11, 0x101, false, []byte("ab")),
		tagged(OpWrite, 0x99, 1<<64-1, false, nil),
		tagged(OpWrite, 0x11, 0x103, false, []byte("cd")),
		tagged(OpWrite, 0, 0, true, nil),
	)
	if string(target.data) != ".abcd..." {
		t.Errorf("target %q", target.data)
	}
	if n := r.Stats.MessagesIn.Load(); n != 1 {
		t.Errorf("%d messages counted, want 1", n)
	}
}
