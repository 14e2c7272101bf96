package rdmap

import (
	"testing"
)

// Writes that are taken together are counted, and prove what one proves.
func TestAlikeWritesCountAsSingleOnes(t *testing.T) {
	r := newRig(t)
	m := r.region(0x11, 0x100, 64, '.')
	r.take(tagged(OpWrite, 0x11, 0x100, true, []byte("one")), tagged(OpWrite, 0x11, 0x110, true, []byte("three")), tagged(OpWrite, 0x11, 0x120, true, []byte("12")))
	if got := string(m.data[:3]) + string(m.data[16:21]) + string(m.data[32:34]); got != "onethree12" {
		t.Errorf("%q is in place", got)
	}
	s := &r.Stats
	if r.ulp.others != 2 || s.MessagesIn.Load() != 3 || s.Writes.Load() != 3 || s.WriteOctets.Load() != 10 || s.EmptyWrites.Load() != 0 {
		t.Errorf("%d placed as others, %d messages, %d Writes of %d octets, %d empty ones", r.ulp.others, s.MessagesIn.Load(), s.Writes.Load(), s.WriteOctets.Load(), s.EmptyWrites.Load())
	}
	select {
	case <-r.ready:
	default:
		t.Error("the peer is not known to be ready")
	}
}

// What ends the stream ends the Writes that are taken together: the next is refused as one by
// itself is.
func TestAlikeWritesEndWithTheStream(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(r *rig)
		want error
	}{
		{"Close", func(r *rig) { r.Close() }, errClosing},
		{"Terminate", func(r *rig) { r.Terminate(errLocal) }, errEnded},
	} {
		r := newRig(t)
		m := r.region(0x11, 0x100, 64, '.')
		r.ulp.another = func() { c.end(r) }
		one := tagged(OpWrite, 0x11, 0x100, true, []byte("one"))
		if err := r.feed(one, one, one, tagged(OpWrite, 0x11, 0x100, true, []byte("two"))); err == nil || r.ulp.others != 1 {
			t.Errorf("%s: %v, expected %v; %d were placed as others", c.name, err, c.want, r.ulp.others)
		}
		if string(m.data[:3]) != "one" {
			t.Errorf("%s: %q is in place", c.name, m.data[:3])
		}
	}
}

// Only Writes are taken together: a Read Response is matched with its Read.
func TestReadResponsesAreMatchedEach(t *testing.T) {
	r := newRig(t)
	r.region(0x11, 0x100, 64, '.')
	r.send(readOf(3), readOf(3))
	answer := tagged(OpReadResponse, 0x11, 0x100, true, []byte("one"))
	r.take(answer, answer)
	if r.ulp.others != 0 {
		t.Errorf("%d were placed as others", r.ulp.others)
	}
}
