package ddp

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// refusals are segments that fail one check each on a stream of version 1 whose
// queue 0 has one buffer of 100 octets, with message 1 of 90 octets begun, and
// whose Tagged Buffer is [0x1000, 0x2000) of STag 0x1234.
var refusals = []struct {
	name        string
	segment     []byte
	etype, code uint8
	fault       Fault
}{
	{"nothing at all", nil, LocalCatastrophic, 0, NoFault},
	{"tagged header cut short", write(0x1234, 0x1000, "")[:13], LocalCatastrophic, 0, NoFault},
	{"untagged header cut short", send(0, 1, "")[:17], LocalCatastrophic, 0, NoFault},

	{"tagged, version 0", tagged(Tagged{Last: true, STag: 0x1234, TO: 0x1000}, "x"), TaggedBuffer, CodeTaggedVersion, NoFault},
	{"tagged, version 2", tagged(Tagged{Last: true, Version: 2, STag: 0x1234, TO: 0x1000}, "x"), TaggedBuffer, CodeTaggedVersion, NoFault},
	{"tagged, version 3, no payload", tagged(Tagged{Last: true, Version: 3}, ""), TaggedBuffer, CodeTaggedVersion, NoFault},
	{"untagged, version 0", untagged(Untagged{Last: true, MSN: 1, MO: 90}, "x"), UntaggedBuffer, CodeUntaggedVersion, NoFault},
	{"untagged, version 2", untagged(Untagged{Last: true, Version: 2, MSN: 1, MO: 90}, "x"), UntaggedBuffer, CodeUntaggedVersion, NoFault},
	{"untagged, version 3, no payload", untagged(Untagged{Last: true, Version: 3, MSN: 1, MO: 90}, ""), UntaggedBuffer, CodeUntaggedVersion, NoFault},

	{"unknown STag", write(0x1235, 0x1000, "x"), TaggedBuffer, CodeInvalidSTag, FaultSTag},
	{"octet before the buffer", write(0x1234, 0xFFF, "x"), TaggedBuffer, CodeBounds, FaultBounds},
	{"octet behind the buffer", write(0x1234, 0x2000, "x"), TaggedBuffer, CodeBounds, FaultBounds},
	{"half behind the buffer", write(0x1234, 0x1FFF, "xx"), TaggedBuffer, CodeBounds, FaultBounds},
	{"up to the top of the offsets", write(0x1234, 1<<64-4, "xxxx"), TaggedBuffer, CodeBounds, FaultBounds},
	{"over the top of the offsets", write(0x1234, 1<<64-4, "xxxxx"), TaggedBuffer, CodeWrap, FaultWrap},
	{"over the top into the buffer", write(0x1234, 1<<64-1, "xx"), TaggedBuffer, CodeWrap, FaultWrap},

	{"queue 4", send(4, 1, "x"), UntaggedBuffer, CodeInvalidQN, NoFault},
	{"queue 2^32-1", send(1<<32-1, 1, "x"), UntaggedBuffer, CodeInvalidQN, NoFault},
	{"queue 7, no payload", send(7, 1, ""), UntaggedBuffer, CodeInvalidQN, NoFault},
	{"queue without a buffer", send(1, 1, "x"), UntaggedBuffer, CodeNoBuffer, NoFault},
	{"queue without a buffer, no payload", send(2, 1, ""), UntaggedBuffer, CodeNoBuffer, NoFault},
	{"message before the expected one", piece(true, 0, 0, "x"), UntaggedBuffer, CodeMSNRange, NoFault},
	{"message after the expected one", piece(true, 2, 0, "x"), UntaggedBuffer, CodeMSNRange, NoFault},
	{"message after, no payload", piece(true, 2, 0, ""), UntaggedBuffer, CodeMSNRange, NoFault},
	{"wrong message on an empty queue", send(1, 2, "x"), UntaggedBuffer, CodeMSNRange, NoFault},
	{"message begun again", piece(true, 1, 0, "x"), UntaggedBuffer, CodeInvalidMO, NoFault},
	{"octets sent again", piece(true, 1, 89, "x"), UntaggedBuffer, CodeInvalidMO, NoFault},
	{"gap", piece(true, 1, 91, "x"), UntaggedBuffer, CodeInvalidMO, NoFault},
	{"gap, no payload", piece(true, 1, 91, ""), UntaggedBuffer, CodeInvalidMO, NoFault},
	{"offset behind the buffer", piece(true, 1, 101, "x"), UntaggedBuffer, CodeInvalidMO, NoFault},
	{"highest offset", piece(true, 1, 1<<32-1, "xx"), UntaggedBuffer, CodeInvalidMO, NoFault},
	{"one octet too many", piece(true, 1, 90, "12345678901"), UntaggedBuffer, CodeTooLong, NoFault},
	{"far too many, last to come", piece(false, 1, 90, string(make([]byte, 5000))), UntaggedBuffer, CodeTooLong, NoFault},
}

// atRefusal is a receiver in the state that refusals speak of.
func atRefusal(t testing.TB) (*sink, *Receiver) {
	s := newSink(t)
	s.post(0, 100)
	r := NewReceiver(1, s)
	if err := r.ULPDU(piece(false, 1, 0, string(bytes.Repeat([]byte{'a'}, 90)))); err != nil {
		t.Fatal(err)
	}
	return s, r
}

// Each failing check gives its own type and code, with the header and length of
// the segment, before an octet is placed; the error is reported once, and all
// that follows is dropped, however good.
//
// Claims: DDP-1.2-3 DDP-4.1-11 DDP-4.2-1 DDP-4.2-5 DDP-4.3-1 DDP-5.3-6 DDP-6.2.2-1
// Claims: DDP-7.1-1 DDP-7.1-2 DDP-7.1-3 DDP-7.1-4 DDP-7.1-5 DDP-7.1-9
// Claims: DDP-7.1-11 DDP-7.1-13 DDP-7.1-14 DDP-7.1-15 DDP-7.1-16 DDP-7.1-17 DDP-7.1-18 DDP-7.1-19
// Claims: DDP-7.2-1 DDP-7.2-2 DDP-7.2-3 DDP-7.2-4 DDP-7.2-6 DDP-7.2-7 DDP-7.2-8 DDP-7.2-9
// Claims: DDP-7.2-10 DDP-7.2-11 DDP-7.2-12 DDP-7.2-13 DDP-8.1-1 DDP-8.3-5
func TestRefusedSegmentIsReportedOnceAndPlacesNothing(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			s, r := atRefusal(t)
			before, places, asked := s.state(), s.places, s.asked
			err := r.ULPDU(bytes.Clone(c.segment))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if layer, etype, code := e.TerminateCode(); layer != 1 || etype != c.etype || code != c.code || e.Fault != c.fault {
				t.Errorf("got %d/%d/%02x, fault %v, want 1/%d/%02x, fault %v: %v", layer, etype, code, e.Fault, c.etype, c.code, c.fault, err)
			}
			if c.code == CodeMSNRange && c.etype == UntaggedBuffer {
				var h Untagged
				h.Parse(c.segment)
				if e.Ahead != h.MSN-1 {
					t.Errorf("message %d is %d ahead, want %d", h.MSN, e.Ahead, h.MSN-1)
				}
			}
			if s.places != places {
				t.Error("memory was asked for")
			}
			var header []byte
			if c.etype != LocalCatastrophic {
				header = c.segment[:HeaderLen(c.segment)]
			}
			if !bytes.Equal(e.Header(), header) || e.SegmentLength != len(c.segment) {
				t.Errorf("reported % x and %d octets, want % x and %d", e.Header(), e.SegmentLength, header, len(c.segment))
			}
			if h, n := r.Offending(); !bytes.Equal(h, header) || n != len(c.segment) {
				t.Errorf("offending % x and %d octets", h, n)
			}
			for _, good := range [][]byte{write(s.stag, s.base, "good"), piece(true, 1, 90, "good"), c.segment} {
				if err := r.ULPDU(good); err != nil {
					t.Errorf("a later segment was reported: %v", err)
				}
				if _, ok, err := r.Begin(good, len(good)); ok || err != nil {
					t.Errorf("a later segment was begun: %v %v", ok, err)
				}
			}
			s.asked = asked // asking for a buffer that is not there is no harm
			if after := s.state(); after != before {
				t.Errorf("changed from %s\nto %s", before, after)
			}
			if h, n := r.Offending(); !bytes.Equal(h, header) || n != len(c.segment) {
				t.Errorf("later offending % x and %d octets", h, n)
			}
		})
	}
}

// What PlaceTagged answers decides the code; a missing right has none of its
// own and goes out as a missing association.
//
// Claims: DDP-4.2-5 DDP-7.1-11 DDP-7.1-12 DDP-7.2-5
func TestEveryFaultHasItsTaggedBufferCode(t *testing.T) {
	for fault, code := range map[Fault]uint8{
		FaultSTag:        CodeInvalidSTag,
		FaultBounds:      CodeBounds,
		FaultAccess:      CodeNotAssociated,
		FaultAssociation: CodeNotAssociated,
		FaultWrap:        CodeWrap,
	} {
		s := newSink(t)
		s.fault = fault
		r := NewReceiver(1, s)
		err := r.ULPDU(write(s.stag, s.base, "x"))
		var e *Error
		if !errors.As(err, &e) || e.EType != TaggedBuffer || e.Code != code || e.Fault != fault {
			t.Errorf("%v: %v, want code %#02x", fault, err, code)
		}
		if s.held || len(s.delivered) != 0 {
			t.Errorf("%v: held %v, delivered %+v", fault, s.held, s.delivered)
		}
		if says := strings.HasSuffix(err.Error(), ": "+fault.Reason()); says != (code == CodeNotAssociated) {
			t.Errorf("%v: %v", fault, err)
		}
	}
}

// The two versions of the wire are never mixed.
//
// Claims: DDP-4.1-11
func TestConsortiumStreamRefusesTheIETFsVersion(t *testing.T) {
	s := newSink(t)
	r := NewReceiver(0, s)
	feed(t, r, tagged(Tagged{Last: true, STag: s.stag, TO: s.base}, "x"))
	err := r.ULPDU(write(s.stag, s.base, "y"))
	if !errors.Is(err, &Error{EType: TaggedBuffer, Code: CodeTaggedVersion}) || s.mem[0] != 'x' {
		t.Errorf("got %v, memory %q", err, s.mem[:1])
	}
}

// The ULP's own checks come after those of length, version and queue number
// and before all others.
func TestULPIsAskedBetweenTheChecks(t *testing.T) {
	own := errors.New("not this opcode")
	for _, c := range refusals {
		s, r := atRefusal(t)
		s.admitErr = own
		err := r.ULPDU(c.segment)
		early := c.etype == LocalCatastrophic || c.code == CodeTaggedVersion && c.etype == TaggedBuffer ||
			c.etype == UntaggedBuffer && (c.code == CodeUntaggedVersion || c.code == CodeInvalidQN)
		if (err == own) == early {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Whatever the ULP says no with comes out unchanged, and ends the reception.
func TestErrorsOfTheULPPassUnchanged(t *testing.T) {
	own := errors.New("own")
	for _, c := range []struct {
		name      string
		set       func(s *sink)
		segment   []byte
		delivered int
	}{
		{"admitting a tagged segment", func(s *sink) { s.admitErr = own }, write(0x1234, 0x1000, "x"), 0},
		{"admitting an untagged segment", func(s *sink) { s.admitErr = own }, send(0, 1, "x"), 0},
		{"readying a buffer", func(s *sink) { s.bufferErr = own }, send(0, 1, "x"), 0},
		{"placing an untagged segment", func(s *sink) { s.placeErr = own }, send(0, 1, "x"), 0},
		{"delivering a tagged message", func(s *sink) { s.deliverErr = own }, write(0x1234, 0x1000, "x"), 1},
		{"delivering an untagged message", func(s *sink) { s.deliverErr = own }, send(0, 1, "x"), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSink(t)
			s.post(0, 10, 10)
			c.set(s)
			r := NewReceiver(1, s)
			if err := r.ULPDU(c.segment); err != own {
				t.Fatalf("got %v", err)
			}
			if h, n := r.Offending(); !bytes.Equal(h, c.segment[:HeaderLen(c.segment)]) || n != len(c.segment) {
				t.Errorf("offending % x and %d octets", h, n)
			}
			s.admitErr, s.bufferErr, s.placeErr, s.deliverErr = nil, nil, nil, nil
			feed(t, r, write(0x1234, 0x1000, "later"), send(0, 1, "later"))
			if len(s.delivered) != c.delivered {
				t.Errorf("delivered %+v", s.delivered)
			}
		})
	}
}

// A message has at most 2^32-1 octets, however large its buffer is.
//
// Claims: DDP-5.2-2
func TestMessageOf4GiBIsTooLong(t *testing.T) {
	for n, ok := range map[int]bool{9: true, 10: false} {
		s := &roomy{still: newStill(t, 64)}
		r := NewReceiver(1, s)
		r.queues[0] = queue{open: true, size: 1 << 40, received: 1<<32 - 10}
		err := r.ULPDU(piece(true, 1, 1<<32-10, "0123456789"[:n]))
		if ok && (err != nil || s.length != top) {
			t.Errorf("%d octets: length %d, %v", n, s.length, err)
		}
		if !ok && !errors.Is(err, &Error{EType: UntaggedBuffer, Code: CodeTooLong}) {
			t.Errorf("%d octets: %v", n, err)
		}
	}
}

// roomy places every octet in the same few.
type roomy struct {
	*still
	length uint32
}

func (s *roomy) PlaceUntagged(dst [][]byte, h *Untagged, n int) ([][]byte, error) {
	s.held = true
	return append(dst, s.buf[:n]), nil
}

func (s *roomy) DeliverUntagged(h *Untagged, length uint32) error {
	s.length = length
	return nil
}

func TestULPThatGivesTooLittleMemoryIsAnError(t *testing.T) {
	s := newSink(t)
	s.stingy = 1
	err := NewReceiver(1, s).ULPDU(write(s.stag, s.base, "abc"))
	if !errors.Is(err, &Error{EType: LocalCatastrophic}) || len(s.delivered) != 0 {
		t.Errorf("got %v, delivered %+v", err, s.delivered)
	}
}

func TestErrorSaysWhatHappenedToWhat(t *testing.T) {
	for name, want := range map[string]string{
		"nothing at all":         "ddp: local catastrophic error: a segment of 0 octets is shorter than a DDP header (14 tagged, 18 untagged)",
		"tagged, version 2":      "ddp: tagged buffer error: invalid DDP version: the segment says version 2, the stream is version 1",
		"half behind the buffer": "ddp: tagged buffer error: base or bounds violation: 2 octets at offset 0x1fff of STag 0x00001234",
		"queue 4":                "ddp: untagged buffer error: invalid QN: queue 4, expected 0 to 3",
		"gap":                    "ddp: untagged buffer error: invalid MO: message 1 on queue 0 goes on at offset 91, expected 90 (buffer of 100 octets)",
	} {
		for _, c := range refusals {
			if c.name != name {
				continue
			}
			_, r := atRefusal(t)
			if err := r.ULPDU(c.segment); err.Error() != want {
				t.Errorf("%s:\n got %s\nwant %s", name, err, want)
			}
		}
	}
	if got, want := (&Error{EType: 3, Code: 7, detail: "x"}).Error(), "ddp: error of type 0x3, code 0x07: x"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
