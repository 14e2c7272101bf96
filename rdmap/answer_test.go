package rdmap

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// A Read completes when the last octet of its response is in place, and not
// before.
//
// Claims: R-5.2.2-2 R-5.2.2-9 R-5.5-22
func TestReadCompletesWithTheLastOfItsResponse(t *testing.T) {
	r := newRig(t)
	sink := r.region(0x11, 0x100, 12, '.')
	r.send(readOf(10))
	r.ulp.told()
	r.take(tagged(OpReadResponse, 0x11, 0x100, false, []byte("abc")))
	r.take(tagged(OpReadResponse, 0x11, 0x103, false, []byte("defghij")[:6]))
	r.take(tagged(OpReadResponse, 0x99, 0x99, false, nil)) // no octets go nowhere
	want(t, "told before the last segment", r.ulp.told())
	r.take(tagged(OpReadResponse, 0x11, 0x109, true, []byte("j")))
	want(t, "told", r.ulp.told(), "responded 1 0x0")
	if string(sink.data) != "abcdefghij.." {
		t.Errorf("sink %q", sink.data)
	}
	if n := r.Stats.MessagesIn.Load(); n != 1 {
		t.Errorf("%d messages counted, want 1", n)
	}
}

// A response that is not, octet for octet, what the oldest Read asked for is an
// error, and not one octet that was not asked for is placed.
//
// Claims: R-5.5-22 R-5.2.2-9
func TestReadResponseHasToMatchTheOldestRead(t *testing.T) {
	for _, c := range []struct {
		name string
		code string
		in   [][]byte
	}{
		{"another STag", "1/1/00", [][]byte{tagged(OpReadResponse, 0x12, 0x100, true, octets(10))}},
		{"one octet lower", "1/1/01", [][]byte{tagged(OpReadResponse, 0x11, 0xff, true, octets(10))}},
		{"one octet higher", "1/1/01", [][]byte{tagged(OpReadResponse, 0x11, 0x101, true, octets(9))}},
		{"one octet longer", "1/1/01", [][]byte{tagged(OpReadResponse, 0x11, 0x100, true, octets(11))}},
		{"longer in the end", "1/1/01", [][]byte{
			tagged(OpReadResponse, 0x11, 0x100, false, octets(9)), tagged(OpReadResponse, 0x11, 0x109, true, octets(2))}},
		{"one octet shorter", "0/2/07", [][]byte{tagged(OpReadResponse, 0x11, 0x100, true, octets(9))}},
		{"shorter in the end", "0/2/07", [][]byte{
			tagged(OpReadResponse, 0x11, 0x100, false, octets(9)), tagged(OpReadResponse, 0x11, 0x109, true, nil)}},
		{"empty", "0/2/07", [][]byte{tagged(OpReadResponse, 0x11, 0x100, true, nil)}},
		{"without a last segment", "0/2/07", [][]byte{tagged(OpReadResponse, 0x11, 0x100, false, octets(10))}},
		{"a gap", "0/2/07", [][]byte{
			tagged(OpReadResponse, 0x11, 0x100, false, octets(2)), tagged(OpReadResponse, 0x11, 0x103, true, octets(7))}},
		{"another STag in the middle", "0/2/07", [][]byte{
			tagged(OpReadResponse, 0x11, 0x100, false, octets(2)), tagged(OpReadResponse, 0x12, 0x102, true, octets(8))}},
		// Segments without octets, which are not to be gone by, say where the
		// next one goes on.
		{"begun below, by an empty segment", "1/1/01", [][]byte{
			tagged(OpReadResponse, 0x11, 0xf8, false, nil), tagged(OpReadResponse, 0x11, 0xf8, true, octets(18))}},
		{"begun above, by an empty segment", "1/1/01", [][]byte{
			tagged(OpReadResponse, 0x11, 0x104, false, nil), tagged(OpReadResponse, 0x11, 0x104, true, octets(6))}},
		{"the second one", "0/2/06", [][]byte{
			tagged(OpReadResponse, 0x11, 0x100, true, octets(10)), tagged(OpReadResponse, 0x11, 0x100, true, octets(10))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			all := r.region(0x11, 0xf0, 0x40, '.')
			r.region(0x12, 0xf0, 0x40, '.')
			r.send(readOf(10))
			err := r.feed(c.in...)
			if got := codeOf(t, err); got != c.code {
				t.Errorf("code %s, want %s: %v", got, c.code, err)
			}
			if outside := append(all.data[:0x10:0x10], all.data[0x1a:]...); bytes.ContainsRune(outside, 'x') {
				t.Errorf("octets were placed outside of the Read's sink: %q", all.data)
			}
			if c.name != "the second one" && len(r.ulp.told()) > 0 {
				t.Error("the Read completed")
			}
		})
	}
}

func TestReadResponseIsRefusedWhereMemoryIs(t *testing.T) {
	r := newRig(t)
	r.region(0x11, 0x100, 10, 0).fault = ddp.FaultAccess
	r.send(readOf(10))
	if got := codeOf(t, r.feed(tagged(OpReadResponse, 0x11, 0x100, true, octets(10)))); got != "1/1/02" {
		t.Errorf("code %s, want 1/1/02", got)
	}
}

func TestAnswersThatNothingAskedForAreErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		code string
		asks []Operation
		in   []byte
	}{
		{"Read Response", "0/2/06", nil, tagged(OpReadResponse, 0x11, 0x100, true, octets(1))},
		{"empty Read Response", "0/2/06", nil, tagged(OpReadResponse, 0, 0, true, nil)},
		{"Read Response to an atomic", "0/2/06", []Operation{fetchAdd(), readOf(1)}, tagged(OpReadResponse, 0x11, 0x100, true, octets(1))},
		{"Atomic Response", "1/2/02", nil, atomicResponse(1, 1, 0)},
		{"Atomic Response to a Read", "1/2/02", []Operation{readOf(1), fetchAdd()}, atomicResponse(1, 2, 0)},
		{"Atomic Response, other identifier", "0/2/07", []Operation{fetchAdd()}, atomicResponse(1, 2, 0)},
		{"Atomic Response, next MSN", "1/2/03", []Operation{fetchAdd()}, atomicResponse(2, 1, 0)},
		{"Atomic Response, one octet short", "0/2/FF", []Operation{fetchAdd()}, whole(OpAtomicResponse, 1, octets(11))},
		{"Atomic Response, one octet more", "0/2/FF", []Operation{fetchAdd()}, whole(OpAtomicResponse, 1, octets(13))},
		{"Atomic Response, not the last segment", "0/2/07", []Operation{fetchAdd()}, untagged(OpAtomicResponse, 1, 0, false, octets(12))},
		{"Atomic Response, in its middle", "1/2/04", []Operation{fetchAdd()}, untagged(OpAtomicResponse, 1, 4, true, octets(8))},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.region(0x11, 0x100, 1, 0)
			r.send(c.asks...)
			err := r.feed(c.in)
			if got := codeOf(t, err); got != c.code {
				t.Errorf("code %s, want %s: %v", got, c.code, err)
			}
			want(t, "told", r.ulp.told())
		})
	}
}

// Claims: X-5.4-2 X-5.4-9
// Claims: X-5.1-3 X-5.1.1-9
func TestAtomicCompletesWithWhatItFound(t *testing.T) {
	r := newRig(t)
	r.send(fetchAdd())
	want(t, "told before the answer", r.ulp.told())
	r.send(sendOf(0))
	want(t, "told before the answer, with a Send behind it", r.ulp.told(), "sent 2")
	r.take(atomicResponse(1, 1, 0x1122334455667788))
	want(t, "told", r.ulp.told(), "responded 1 0x1122334455667788")
}

// A fault of the ULP's memory ends the stream.
func TestSinkThatIsGoneWhenTheReadCompletesEndsTheStream(t *testing.T) {
	r := newRig(t)
	r.ulp.answers = errLocal
	r.send(readOf(0))
	if err := r.feed(tagged(OpReadResponse, 0, 0, true, nil)); !errors.Is(err, errLocal) {
		t.Errorf("the reception ended with %v, want %v", err, errLocal)
	}
}
