package rdmap

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// asks is the peer's Read of n octets at 0x33:8 into its 0x77:0x700.
func asks(msn, n uint32) []byte {
	return readRequestTo(msn, ReadRequest{SinkSTag: 0x77, SinkTO: 0x700, Size: n, SourceSTag: 0x33, SourceTO: 8})
}

// adds is the peer's FetchAdd of 1 at 0x44:16.
func adds(msn, id uint32) []byte {
	return atomicRequestTo(msn, AtomicRequest{ID: id, STag: 0x44, TO: 16, Data: 1})
}

// The peer's Reads are answered by RDMAP alone, each by one Read Response to
// the STag and offset that it named, in the order of the requests.
//
// Claims: R-4.4-2 R-5.2.1-3 R-5.2.1-4 R-5.2.1-8 R-5.2.1-11 R-5.2.2-2 R-5.2.2-7 R-5.2.2-9 R-5.5-20 R-5.5-23
// Claims: R-1.2-8
func TestReadsAreAnsweredInOrderWithoutTheULP(t *testing.T) {
	r := newRig(t)
	source := r.region(0x33, 0, 400, '.')
	copy(source.data[8:], "source")
	r.take(
		asks(1, 130),
		readRequestTo(2, ReadRequest{SinkSTag: 0xffffffff, SinkTO: 1<<64 - 4, Size: 6, SourceSTag: 0x33, SourceTO: 8}),
		asks(3, 1),
	)
	if got := string(r.line.written[2].payload); got != "source" {
		t.Errorf("the second response carries %q", got)
	}
	want(t, "sent", r.sent(),
		"RDMA Read Response 0x77:0x700 114...", "RDMA Read Response 0x77:0x772 16.",
		"RDMA Read Response 0xffffffff:0xfffffffffffffffc 6.",
		"RDMA Read Response 0x77:0x700 1.",
	)
	want(t, "told", r.ulp.told())
	if n := r.Stats.ReadsServed.Load(); n != 3 || !r.Idle() {
		t.Errorf("%d Reads counted, idle %v", n, r.Idle())
	}
}

// Claims: R-5.2.1-14 R-5.2.1-15
func TestReadOfNoOctetsIsAnsweredWhateverItNames(t *testing.T) {
	r := newRig(t)
	r.region(0xdef, 0, 0, 0).fault = ddp.FaultDisabled
	r.take(readRequestTo(1, ReadRequest{SinkSTag: 0xabc, SinkTO: 5, SourceSTag: 0xdef, SourceTO: 1<<64 - 1}))
	want(t, "sent", r.sent(), "RDMA Read Response 0xabc:0x5 0.")
}

// Atomics are executed one after the other in the order of the requests, as
// their turn to be answered comes, and share the queue with Reads.
//
// Claims: X-1.1-1 X-5-4 X-5.2-1 X-5.2-2 X-5.2.1-6 X-5.2.1-15 X-5.2.1-16 X-5.2.1-20 X-5.2.1-21 X-5.2.2-5 X-5.2.2-6 X-5.2.2-11
// Claims: X-5.1-2 X-5.4-10 X-5.4-11
func TestAtomicsAreAnsweredInOrderWithoutTheULP(t *testing.T) {
	r := newRig(t)
	word := r.region(0x44, 16, 8, 5)
	r.region(0x33, 8, 8, '.')
	r.take(
		adds(1, 70),
		atomicRequestTo(2, AtomicRequest{AOpCode: AOpCmpSwap, ID: 71, STag: 0x44, TO: 16, Data: 9, Mask: 255, Compare: 6, CompareMask: 255}),
		asks(3, 8),
		adds(4, 70),
	)
	for i, want := range []AtomicResponse{{70, 5}, {71, 6}, {}, {70, 9}} {
		var got AtomicResponse
		if err := got.Parse(r.line.written[i].payload); want.ID > 0 && (err != nil || got != want) {
			t.Errorf("response %d is %+v, %v; want %+v", i, got, err, want)
		}
	}
	want(t, "sent", r.sent(),
		"Atomic Response 3#1+0 12.", "Atomic Response 3#2+0 12.", "RDMA Read Response 0x77:0x700 8.", "Atomic Response 3#3+0 12.")
	want(t, "executed", r.ulp.told(), "FetchAdd", "CmpSwap", "FetchAdd")
	if word.data[0] != 10 || r.Stats.AtomicsServed.Load() != 3 {
		t.Errorf("%d in memory, %d atomics counted; want 10, 3", word.data[0], r.Stats.AtomicsServed.Load())
	}
}

// A request is not executed before it has been delivered, nor before the responses to the
// requests before it have been generated.
//
// Claims: R-5.5-12 R-5.5-20 X-5.4-5 X-5.4-7
func TestRequestStartsWhenAllBeforeItIsDone(t *testing.T) {
	r := newRig(t)
	r.region(0x44, 16, 8, 5)
	source := r.region(0x33, 8, 400, 'a')
	r.line.room, r.line.takes = 1, 0
	r.receive(4)
	// A Write and a Send before the requests have changed what they see.
	r.take(tagged(OpWrite, 0x33, 8, true, []byte("b")), tagged(OpWrite, 0x44, 16, true, []byte{7}),
		whole(OpSend, 1, nil), asks(1, 200), adds(2, 1))
	want(t, "told while the first answer is stuck", r.ulp.told(), "delivered Send 0")
	source.data[150] = 'c' // not read yet
	r.line.takes = -1
	r.writer()
	want(t, "told", r.ulp.told(), "FetchAdd")
	var a AtomicResponse
	if err := a.Parse(r.line.written[2].payload); err != nil || a.Original != 7 {
		t.Errorf("the atomic found %d, %v; want 7", a.Original, err)
	}
	if first, second := r.line.written[0].payload, r.line.written[1].payload; first[0] != 'b' || second[150-114] != 'c' {
		t.Errorf("the response carries %q and %q", first, second)
	}
	want(t, "sent", r.sent(),
		"RDMA Read Response 0x77:0x700 114...", "RDMA Read Response 0x77:0x772 86.", "Atomic Response 3#1+0 12.")
}

// Responses to the peer and operations of this side alternate, message by message, so that
// neither starves the other.
func TestAnswersAndOperationsTakeTurns(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.fenced = true })
	r.region(0x33, 8, 200, '.')
	r.take(asks(1, 1), asks(2, 200), asks(3, 1))
	r.post(sendOf(1), sendOf(200), sendOf(1), sendOf(1))
	r.line.fenced = false
	r.Kick()
	want(t, "sent", r.sent(),
		"RDMA Read Response 0x77:0x700 1.",
		"Send 0#1+0 1.",
		"RDMA Read Response 0x77:0x700 114...", "RDMA Read Response 0x77:0x772 86.",
		"Send 0#2+0 110...", "Send 0#2+110 90.",
		"RDMA Read Response 0x77:0x700 1.",
		"Send 0#3+0 1.",
		"Send 0#4+0 1.",
	)
}

// A queue that stalls on its own requests still answers: otherwise two sides could wait
// for each other forever.
func TestStalledQueueAnswersThePeer(t *testing.T) {
	r := newRig(t, func(c *Config, _ *line) { c.ORD = 1 })
	r.region(0x33, 8, 1, '.')
	r.send(readOf(1), readOf(1))
	r.sent()
	r.take(asks(1, 1))
	want(t, "sent", r.sent(), "RDMA Read Response 0x77:0x700 1.")
}

// The source of a Read Response can be changed by anyone at any moment. With a
// digest a private copy is sent; without one, what is there as it leaves.
func TestReadResponseIsCopiedUnderADigestOnly(t *testing.T) {
	for _, digest := range []bool{true, false} {
		r := newRig(t, func(_ *Config, l *line) { l.digests, l.takes, l.mulpdu = digest, 0, 1024 })
		source := r.region(0x33, 8, 500, 'a')
		r.take(asks(1, 500))
		copy(source.data, bytes.Repeat([]byte{'b'}, 500))
		if digest == (len(r.hold.uses) > 0) {
			t.Errorf("digest %v: %d regions are held", digest, len(r.hold.uses))
		}
		r.line.takes = -1
		r.writer()
		s := r.line.written[0]
		if same := &s.pieces[0][0] == &source.data[0]; same == digest {
			t.Errorf("digest %v: sent by reference %v", digest, same)
		}
		if sent := s.payload[499]; sent == 'a' != digest {
			t.Errorf("digest %v: %c was sent", digest, sent)
		}
	}
}

// As many requests as IRD find a place, and a place is free again as soon as the peer can
// have its response.
//
// Claims: R-5.2.2-3 R-6.1-5 R-6.1-9 R-5.2.1-2 X-5.2.1-14 X-5.2.2-7 X-5.2-1 V-10.4-1
// Claims: ME-4.1-1 S-2.2.8-1
func TestAllOfIRDIsUsableAndNoMore(t *testing.T) {
	r := newRig(t, func(c *Config, l *line) { c.IRD = 3; l.takes, l.mulpdu = 0, 1024 })
	r.region(0x33, 8, 400, '.')
	r.region(0x44, 16, 8, 0)
	r.line.room = 1
	r.take(asks(1, 400), adds(2, 1), asks(3, 1)) // the first one's response is cut, and stuck
	r.take(asks(4, 1))
	err := r.feed(adds(5, 1))
	if got := codeOf(t, err); got != "1/2/03" || !strings.Contains(err.Error(), "agreed 3 RDMA Reads and atomics") {
		t.Errorf("code %s, want 1/2/03 and the limit: %v", got, err)
	}
	r.line.takes = -1
	r.writer()
	want(t, "sent", r.sent(),
		"RDMA Read Response 0x77:0x700 400.", "Atomic Response 3#1+0 12.",
		"RDMA Read Response 0x77:0x700 1.", "RDMA Read Response 0x77:0x700 1.")
}

// A stream with no places refuses the first request.
func TestNoIRDTakesNoRequest(t *testing.T) {
	r := newRig(t, func(c *Config, _ *line) { c.IRD = 0 })
	if got := codeOf(t, r.feed(asks(1, 0))); got != "1/2/03" {
		t.Errorf("code %s, want 1/2/03", got)
	}
}

// Claims: R-5.2.1-13 R-7.1-4 R-7.2-6 R-7.2-7 R-7.2-8 R-7.2-9 R-7.2-10 X-5.1.1-6 X-5.1.2-8 X-5.2.1-17 X-8.1-2 X-8.2-4 X-8.2-5
func TestRequestsThatMayNotBeServedAreRefused(t *testing.T) {
	misaligned := func(r *rig) { r.region(0x44, 16, 8, 5).odd = true }
	for _, c := range []struct {
		name string
		code string
		echo bool // the Read Request is told
		in   []byte
		with func(*rig)
	}{
		{"Read, no such STag", "0/1/00", true, asks(1, 8), func(*rig) {}},
		{"Read, one octet low", "0/1/01", true, asks(1, 8), func(r *rig) { r.region(0x33, 9, 8, 0) }},
		{"Read, one octet long", "0/1/01", true, asks(1, 8), func(r *rig) { r.region(0x33, 8, 7, 0) }},
		{"Read, no right", "0/1/02", true, asks(1, 8), func(r *rig) { r.region(0x33, 8, 8, 0).fault = ddp.FaultAccess }},
		{"Read, not of this stream", "0/1/03", true, asks(1, 8), func(r *rig) { r.region(0x33, 8, 8, 0).fault = ddp.FaultAssociation }},
		{"Read, wraps", "0/1/04", true, asks(1, 8), func(r *rig) { r.region(0x33, 8, 8, 0).fault = ddp.FaultWrap }},
		{"Read, not enabled", "1/2/01", false, asks(1, 8), func(r *rig) { r.region(0x33, 8, 8, 0).fault = ddp.FaultDisabled }},
		{"atomic, no such STag", "0/1/00", false, adds(1, 1), func(*rig) {}},
		{"atomic, no right", "0/1/02", false, adds(1, 1), func(r *rig) { r.region(0x44, 16, 8, 5).fault = ddp.FaultAccess }},
		{"FetchAdd, misaligned", "0/2/07", false, adds(1, 1), misaligned},
		{"CmpSwap, misaligned", "0/2/07", false, atomicRequestTo(1, AtomicRequest{AOpCode: AOpCmpSwap, STag: 0x44, TO: 16}), misaligned},
		{"atomic, operation 1", "0/2/06", false, atomicRequestTo(1, AtomicRequest{AOpCode: 1, STag: 0x44, TO: 16}),
			func(r *rig) { r.region(0x44, 16, 8, 5) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			c.with(r)
			err := r.feed(c.in)
			r.Terminate(err)
			r.Kick()
			m := r.terminated()
			if got := code(m.Layer, m.EType, m.Code); got != c.code {
				t.Errorf("code %s, want %s: %v", got, c.code, err)
			}
			if !m.M || int(m.SegmentLength) != len(c.in) || !bytes.Equal(m.DDPHeader, c.in[:ddp.UntaggedLen]) {
				t.Errorf("segment of %d octets told, header % x", m.SegmentLength, m.DDPHeader)
			}
			var asked ReadRequest
			if c.echo {
				_ = asked.Parse(c.in[ddp.UntaggedLen:])
			}
			if m.R != c.echo || m.ReadRequest != asked {
				t.Errorf("Read Request told: %v, %+v", m.R, m.ReadRequest)
			}
			want(t, "sent", r.sent()[1:])
			want(t, "told", r.ulp.told()) // it was found on arrival
			if w := r.ulp.memory[0x44]; w != nil && w.data[0] != 5 {
				t.Error("memory was changed")
			}
		})
	}
}

// Memory is revoked while a Read is being answered: the Terminate reports what was left of
// the Read.
func TestReadWhoseSourceGoesTellsWhatWasLeft(t *testing.T) {
	r := newRig(t, digests, func(_ *Config, l *line) { l.takes, l.room = 1, 1 })
	r.region(0x33, 8, 300, '.')
	r.take(asks(1, 300))
	delete(r.ulp.memory, 0x33)
	r.line.takes = -1
	r.writer()
	m := r.terminated()
	if got := code(m.Layer, m.EType, m.Code); got != "0/1/00" {
		t.Errorf("code %s, want 0/1/00", got)
	}
	// Two segments were cut before the memory went.
	if left := (ReadRequest{0x77, 0x700 + 228, 300 - 228, 0x33, 8 + 228}); m.ReadRequest != left {
		t.Errorf("%+v was left, want %+v", m.ReadRequest, left)
	}
	want(t, "sent", r.sent(), "RDMA Read Response 0x77:0x700 114...", "RDMA Read Response 0x77:0x772 114...", "Terminate 2#1+0 52.")
	want(t, "told", r.ulp.told(), "unanswered")
}

func TestAtomicWhoseTargetGoesIsNotDone(t *testing.T) {
	for _, c := range []struct {
		name, code string
		change     func(*rig)
	}{
		{"gone", "0/1/00", func(r *rig) { delete(r.ulp.memory, 0x44) }},
		{"moved", "0/2/07", func(r *rig) { r.ulp.memory[0x44].odd = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, func(_ *Config, l *line) { l.fenced = true })
			r.region(0x44, 16, 8, 5)
			r.take(adds(1, 1))
			c.change(r)
			r.line.fenced = false
			r.Kick()
			m := r.terminated()
			if got := code(m.Layer, m.EType, m.Code); got != c.code || m.R || len(m.DDPHeader) != ddp.UntaggedLen {
				t.Errorf("Terminate %+v, want %s with the DDP header", m, c.code)
			}
			want(t, "told", r.ulp.told(), "unanswered")
			want(t, "sent", r.sent()[1:])
		})
	}
}
