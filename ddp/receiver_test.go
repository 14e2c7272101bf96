package ddp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Claims: DDP-4.1-2 DDP-4.2-3 DDP-4.2-6 DDP-4.2-7 DDP-5.2-4 DDP-5.4-5 R-3.1-8
func TestTaggedSegmentsLandAtTheirOffsetAndCarryTheirOctetUp(t *testing.T) {
	s := newSink(t)
	s.pieces = 3
	r := NewReceiver(1, s)
	first := Tagged{Version: 1, RsvdULP: 0x42, STag: s.stag, TO: s.base + 7}
	last := Tagged{Last: true, Version: 1, RsvdULP: 0x42, STag: s.stag, TO: s.base + 12}
	feed(t, r, tagged(first, "hello"), tagged(last, " world"))
	want := make([]byte, len(s.mem))
	copy(want[7:], "hello world")
	if !bytes.Equal(s.mem, want) {
		t.Errorf("memory %q", s.mem[:32])
	}
	if len(s.delivered) != 1 || s.delivered[0] != (delivery{tagged: last, length: 6}) {
		t.Errorf("delivered %+v", s.delivered)
	}
	if s.asked != 0 {
		t.Error("an untagged buffer was asked for")
	}
}

// Claims: DDP-1.2-2 DDP-1.2-4 DDP-4.1-3 DDP-4.3-3 DDP-5.2-4 DDP-5.4-3 DDP-5.4-4 DDP-5.4-5 R-3.1-8
func TestUntaggedMessagesFillOneBufferEachAndTellTheirLength(t *testing.T) {
	s := newSink(t)
	s.pieces = 4
	s.post(0, 100, 5, 7)
	r := NewReceiver(1, s)
	rsvd := [5]byte{0x44, 0xDE, 0xAD, 0xBE, 0xEF}
	last := Untagged{Last: true, Version: 1, RsvdULP: rsvd, MSN: 1, MO: 5}
	feed(t, r,
		untagged(Untagged{Version: 1, RsvdULP: rsvd, MSN: 1}, "hello"),
		untagged(last, " world"),
		send(0, 2, "exact"),
		send(0, 3, ""))
	want := []delivery{
		{untagged: last, length: 11, payload: "hello world"},
		{untagged: Untagged{Last: true, Version: 1, RsvdULP: [5]byte{0x43}, MSN: 2}, length: 5, payload: "exact"},
		{untagged: Untagged{Last: true, Version: 1, RsvdULP: [5]byte{0x43}, MSN: 3}},
	}
	if len(s.delivered) != len(want) {
		t.Fatalf("delivered %+v", s.delivered)
	}
	for i := range want {
		if s.delivered[i] != want[i] {
			t.Errorf("delivery %d: %+v, want %+v", i, s.delivered[i], want[i])
		}
	}
	if s.asked != 3 || len(s.posted[0]) != 0 {
		t.Errorf("%d buffers asked for, %d left", s.asked, len(s.posted[0]))
	}
	if !bytes.Equal(s.mem, make([]byte, len(s.mem))) {
		t.Error("the Tagged Buffer changed")
	}
}

// Reserved control bits change nothing.
//
// Claims: DDP-4.1-9
func TestReservedControlBitsAreNotLookedAt(t *testing.T) {
	s := newSink(t)
	s.post(0, 10)
	r := NewReceiver(1, s)
	w, u := write(s.stag, s.base, "abc"), send(0, 1, "def")
	w[0] |= 0x3C
	u[0] |= 0x3C
	feed(t, r, w, u)
	if len(s.delivered) != 2 || string(s.mem[:3]) != "abc" {
		t.Errorf("delivered %+v, memory %q", s.delivered, s.mem[:3])
	}
}

// A zero-length tagged segment is not checked for STag and TO: PlaceTagged,
// which would refuse them, is never asked.
//
// Claims: DDP-5.2-9 DDP-5.2-10 DDP-5.2-11
func TestZeroLengthTaggedMessageNeedsNoSTag(t *testing.T) {
	s := newSink(t)
	s.fault = FaultSTag
	r := NewReceiver(1, s)
	feed(t, r, write(0xFFFFFFFF, 1<<64-1, ""), write(0, 0, ""))
	if len(s.delivered) != 2 || s.places != 0 {
		t.Errorf("delivered %+v, placed %d times", s.delivered, s.places)
	}
}

// A zero-length untagged message uses up an MSN and a buffer like any other.
//
// Claims: DDP-1.2-2 DDP-4.4-1 DDP-5.2-9
func TestZeroLengthUntaggedMessageUsesABuffer(t *testing.T) {
	s := newSink(t)
	s.post(0, 10)
	r := NewReceiver(1, s)
	feed(t, r, send(0, 1, ""))
	err := r.ULPDU(send(0, 2, ""))
	if !errors.Is(err, &Error{EType: UntaggedBuffer, Code: CodeNoBuffer}) {
		t.Errorf("second message: %v", err)
	}
	if len(s.delivered) != 1 {
		t.Errorf("delivered %+v", s.delivered)
	}
}

// A peer may begin and end a message with empty segments; it stays one message
// in one buffer.
//
// Claims: DDP-1.2-2
func TestEmptySegmentsOfAMessageUseNoFurtherBuffer(t *testing.T) {
	s := newSink(t)
	s.post(0, 10, 10)
	r := NewReceiver(1, s)
	feed(t, r, piece(false, 1, 0, ""), piece(false, 1, 0, "ab"), piece(false, 1, 2, ""), piece(true, 1, 2, ""))
	if s.asked != 1 || len(s.delivered) != 1 || s.delivered[0].payload != "ab" || s.delivered[0].length != 2 {
		t.Errorf("%d buffers asked for, delivered %+v", s.asked, s.delivered)
	}
}

// Each queue has its own buffers and its own MSNs, and messages on different
// queues may be in progress at once.
//
// Claims: DDP-4.3-6 DDP-4.3-7 DDP-5.1.2-1 DDP-5.2-5
func TestQueuesCountAndFillOnTheirOwn(t *testing.T) {
	s := newSink(t)
	s.post(0, 10)
	s.post(1, 10)
	s.post(2, 10)
	s.post(3, 10)
	r := NewReceiver(1, s)
	feed(t, r, piece(false, 1, 0, "ab"))
	if msn, ok := r.UnfinishedUntagged(0); !ok || msn != 1 {
		t.Errorf("unfinished on queue 0: %d %v", msn, ok)
	}
	if _, ok := r.UnfinishedUntagged(1); ok {
		t.Error("a message is unfinished on queue 1")
	}
	feed(t, r, send(1, 1, "one"), write(s.stag, s.base, "w"), send(2, 1, "two"), send(3, 1, "three"), piece(true, 1, 2, "cd"))
	var got []string
	for _, d := range s.delivered {
		got = append(got, d.payload)
	}
	if strings.Join(got, " ") != "one  two three abcd" {
		t.Errorf("delivered %q", got)
	}
	if _, ok := r.UnfinishedUntagged(0); ok {
		t.Error("the message on queue 0 is still unfinished")
	}
}

// Claims: DDP-4.3-8
func TestReceiverExpectsMSNZeroAfterTheHighest(t *testing.T) {
	s := newSink(t)
	s.post(0, 1, 1, 1, 1)
	r := NewReceiver(1, s)
	r.queues[0].done = top - 2
	feed(t, r, send(0, top-1, "a"), send(0, top, "b"), send(0, 0, "c"), send(0, 1, "d"))
	if len(s.delivered) != 4 {
		t.Errorf("delivered %d messages", len(s.delivered))
	}
}

// DDP cannot tell where a tagged message ends but by its last segment; it says
// what it saw and leaves the judgement to the ULP.
func TestUnfinishedTaggedMessageIsTold(t *testing.T) {
	s := newSink(t)
	r := NewReceiver(1, s)
	if _, ok := r.UnfinishedTagged(); ok {
		t.Error("unfinished before the first segment")
	}
	h := Tagged{Version: 1, RsvdULP: 0x40, STag: s.stag, TO: s.base}
	feed(t, r, tagged(h, "abc"))
	h.TO += 3
	if got, ok := r.UnfinishedTagged(); !ok || got != h {
		t.Errorf("unfinished %+v %v, want %+v", got, ok, h)
	}
	feed(t, r, tagged(Tagged{Version: 1, RsvdULP: 0x40, STag: 7, TO: 7}, ""))
	if got, ok := r.UnfinishedTagged(); !ok || got != h {
		t.Errorf("unfinished after an empty segment %+v %v, want %+v", got, ok, h)
	}
	h.Last = true
	feed(t, r, tagged(h, "def"))
	if _, ok := r.UnfinishedTagged(); ok {
		t.Error("still unfinished after the last segment")
	}
}

// Messages are delivered in the order in which they were sent, each once, and
// not before their last octet is in place; whatever is cut how.
//
// Claims: DDP-4.3-9 DDP-5.2-4 DDP-5.3-5 DDP-5.3-6 DDP-5.4-2 DDP-5.4-3
func TestMessagesComeOutAsTheyWereCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	s := newSink(t)
	r := NewReceiver(1, s)
	var seq Sequence
	var want []string
	mem := make([]byte, len(s.mem))
	for range 500 {
		payload := make([]byte, rng.IntN(1000))
		for i := range payload {
			payload[i] = byte(rng.Uint32())
		}
		var o Outbound
		before := len(s.delivered)
		if rng.IntN(2) == 0 {
			at := rng.IntN(len(s.mem) - len(payload))
			o.StartTagged(1, 0x40, s.stag, s.base+uint64(at), uint32(len(payload)))
			copy(mem[at:], payload)
			want = append(want, "")
		} else {
			s.post(0, len(payload)+rng.IntN(10))
			o.StartUntagged(1, [5]byte{0x43}, 0, seq.Next(0), uint32(len(payload)))
			want = append(want, string(payload))
		}
		for !o.Done() {
			if len(s.delivered) != before {
				t.Fatal("delivered before the last segment")
			}
			hdr, off, n, _ := o.Next(128+rng.IntN(300), nil)
			feed(t, r, append(hdr, payload[off:int(off)+n]...))
		}
		if len(s.delivered) != before+1 {
			t.Fatalf("%d deliveries for one message", len(s.delivered)-before)
		}
	}
	for i, d := range s.delivered {
		if d.payload != want[i] {
			t.Fatalf("message %d: %d octets, want %d", i, len(d.payload), len(want[i]))
		}
	}
	if !bytes.Equal(s.mem, mem) {
		t.Error("the Tagged Buffer differs from what was written")
	}
}

func TestIdleReachesTheULP(t *testing.T) {
	s := newSink(t)
	NewReceiver(1, s).Idle()
	if s.idle != 1 {
		t.Errorf("Idle called %d times", s.idle)
	}
}

func TestReceivingAllocatesNothing(t *testing.T) {
	s := newStill(t, 64)
	r := NewReceiver(1, s)
	w := write(s.stag, s.base, "payload")
	m := send(0, 1, "payload")
	dst := make([][]byte, 0, 4)
	if n := testing.AllocsPerRun(100, func() {
		r.queues[0].done = 0
		if r.ULPDU(w) != nil || r.ULPDU(m) != nil {
			t.Fatal("refused")
		}
		for _, seg := range [][]byte{w, m} {
			r.queues[0].done = 0
			if _, ok, err := r.Begin(seg, len(seg)); !ok || err != nil {
				t.Fatal("refused")
			}
			var err error
			if dst, err = r.Window(dst[:0], len(seg)-3); err != nil {
				t.Fatal(err)
			}
			r.Release()
			if err := r.End(); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

// still is a sink that records nothing, so that it allocates nothing.
type still struct {
	*sink
	buf []byte
}

func newStill(t testing.TB, n int) *still {
	s := &still{sink: newSink(t), buf: make([]byte, n)}
	s.mem = make([]byte, n)
	return s
}

func (s *still) Buffer(qn, msn uint32) (uint64, bool, error) {
	s.inUse[qn] = s.buf
	return uint64(len(s.buf)), true, nil
}
func (s *still) DeliverTagged(h *Tagged, n int) error             { return nil }
func (s *still) DeliverUntagged(h *Untagged, length uint32) error { return nil }

// Payloads of segments that are received: short, of Ethernet, of a long FPDU.
var received = []int{64, 1440, 64 << 10}

func BenchmarkReceiveTagged(b *testing.B) {
	for _, n := range received {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newStill(b, n)
			r := NewReceiver(1, s)
			w := write(s.stag, s.base, strings.Repeat("x", n))
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				if err := r.ULPDU(w); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkReceiveUntagged(b *testing.B) {
	for _, n := range received {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := NewReceiver(1, newStill(b, n))
			m := send(0, 1, strings.Repeat("x", n))
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				r.queues[0].done = 0
				if err := r.ULPDU(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
