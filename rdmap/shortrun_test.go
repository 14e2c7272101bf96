package rdmap

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// write is what a Write of n octets looks like.
func write(n int) string { return fmt.Sprintf("RDMA Write 0x22:0x1000 %d.", n) }

// Short Writes behind one another are sent in runs. What stands between them is sent in its turn,
// and each is complete when it has left.
func TestShortWritesAreSentInRunsInTheOrderOfPosting(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes = 4 })
	fenced := writeOf(9)
	fenced.Fence = true
	r.send(writeOf(1), writeOf(2), writeOf(110), writeOf(3), sendOf(4), writeOf(5), writeOf(0), writeOf(6), writeOf(111), writeOf(7), fenced, writeOf(8))
	if want := []int{3, 1, 1, 1}; !slices.Equal(r.ulp.runs, want) {
		t.Errorf("runs of %v, expected %v", r.ulp.runs, want)
	}
	r.line.takes = -1
	r.writer()
	want(t, "sent", r.sent(), write(1), write(2), write(110), write(3), "Send 0#1+0 4.", write(5), write(0), write(6), write(111), write(7), write(9), write(8))
	want(t, "told", r.ulp.told(), "sent 4", "sent 12")
	if got := r.Stats.MessagesOut.Load(); got != 12 {
		t.Errorf("%d messages counted, expected 12", got)
	}
	if len(r.hold.uses) > 0 {
		t.Errorf("memory is still held for %+v", r.hold.uses)
	}
}

// A run has an end, and the next one follows.
func TestMoreWritesThanARunHas(t *testing.T) {
	const n = 2*ddp.RunLength + 3
	r := newRig(t, func(_ *Config, l *line) { l.room = 1000 })
	all := make([]Operation, n)
	for i := range all {
		all[i] = writeOf(uint32(1 + i%50))
	}
	r.send(all...)
	if want := []int{ddp.RunLength, ddp.RunLength, 2}; !slices.Equal(r.ulp.runs, want) {
		t.Errorf("runs of %v, expected %v", r.ulp.runs, want)
	}
	sent := r.sent()
	if len(sent) != n {
		t.Fatalf("%d left, expected %d", len(sent), n)
	}
	for i, s := range sent {
		if s != write(1+i%50) {
			t.Errorf("message %d is %q", i, s)
		}
	}
	want(t, "told", r.ulp.told(), fmt.Sprintf("sent %d", n))
}

// Each Write of a run is held for its own segment: revoking one leaves those before it alone.
func TestRevokedWriteOfARunIsTheOneThatFails(t *testing.T) {
	for taken := range 4 {
		for revoked := taken + 1; revoked <= 6; revoked++ {
			r := newRig(t, func(_ *Config, l *line) { l.takes = taken })
			r.send(writeOf(1), writeOf(2), writeOf(3), writeOf(4), writeOf(5), writeOf(6))
			r.stuck(func() { r.hold.revoke(uint64(revoked)) })
			var sent, told []string
			for i := 1; i < revoked; i++ {
				sent = append(sent, write(i))
			}
			if taken > 0 {
				told = append(told, fmt.Sprintf("sent %d", taken))
			}
			if revoked > taken+1 {
				told = append(told, fmt.Sprintf("sent %d", revoked-1))
			}
			told = append(told, fmt.Sprintf("failed %d", revoked))
			slices.Sort(told)
			got := r.ulp.told()
			slices.Sort(got)
			what := fmt.Sprintf("%d taken, %d revoked: ", taken, revoked)
			want(t, what+"sent", r.sent(), append(sent, "Terminate 2#1+0 4.")...)
			want(t, what+"told", got, told...)
		}
	}
}

// Memory of a run that cannot be read has its Writes go one by one, so that those in front of the
// one at fault are sent.
func TestUnreadableWriteOfARunIsTheOneThatFails(t *testing.T) {
	for bad := 1; bad <= 6; bad++ {
		r := newRig(t, unreadable(byte('0'+bad)))
		r.send(writeOf(1), writeOf(2), writeOf(3), writeOf(4), writeOf(5), writeOf(6))
		var sent []string
		for i := 1; i < bad; i++ {
			sent = append(sent, write(i))
		}
		want(t, "sent", r.sent(), append(sent, "Terminate 2#1+0 4.")...)
		if told := r.ulp.told(); !slices.Contains(told, fmt.Sprintf("failed %d", bad)) {
			t.Errorf("told %q, expected that %d failed", told, bad)
		}
		if len(r.ulp.runs) > 1 {
			t.Errorf("runs of %v, expected no other behind the one that faults", r.ulp.runs)
		}
		if len(r.hold.uses) > 0 {
			t.Errorf("memory is still held for %+v", r.hold.uses)
		}
	}
}

// The peer's requests take turns with Writes, which then go one by one.
func TestRequestsOfThePeerDoNotWaitForARun(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.fenced = true })
	r.region(0x33, 8, 400, '.')
	r.take(asks(1, 5), asks(2, 6))
	r.line.fenced = false
	r.send(writeOf(1), writeOf(2), writeOf(3), writeOf(4), writeOf(5))
	sent := r.sent()
	if last := slices.IndexFunc(sent, func(s string) bool { return s == "RDMA Read Response 0x77:0x700 6." }); last < 0 || last > 3 {
		t.Errorf("sent %q, expected the answers in turns with Writes", sent)
	}
	if len(sent) != 7 {
		t.Errorf("sent %q, expected 7 messages", sent)
	}
}

// What ends the stream is heeded between two runs.
func TestNoRunFollowsTheEndOfTheStream(t *testing.T) {
	for name, end := range map[string]func(r *rig){
		"Terminate": func(r *rig) { r.Terminate(errLocal) },
		"Abandon":   func(r *rig) { r.Abandon() },
		"Close":     func(r *rig) { r.Close() },
	} {
		r := newRig(t, func(_ *Config, l *line) { l.room = 1000 })
		r.post(slices.Repeat([]Operation{writeOf(1)}, 3*ddp.RunLength)...)
		r.ulp.took = func() { end(r) }
		r.Kick()
		if len(r.ulp.runs) != 1 {
			t.Errorf("%s: %d runs, expected one", name, len(r.ulp.runs))
		}
	}
}

// question is what a Read Request looks like.
func question(msn int) string { return fmt.Sprintf("RDMA Read Request 1#%d+0 28.", msn) }

// Reads behind one another are asked for in runs, up to ORD.
//
// Claims: R-6.1-8
func TestReadsAreAskedForInRuns(t *testing.T) {
	r := newRig(t, depths(0, 5), func(_ *Config, l *line) { l.room = 1000 })
	m := r.region(0x11, 0x100, 64, '.')
	var all []Operation
	for i := range 9 {
		op := readOf(uint32(i + 1))
		op.SinkTO = 0x100 + uint64(i)
		all = append(all, op)
	}
	all[7] = fenced(all[7])
	r.send(all...)
	want(t, "sent", r.sent(), question(1), question(2), question(3), question(4), question(5))
	if !slices.Equal(r.ulp.runs, []int{4}) {
		t.Errorf("runs of %v, expected one of 4", r.ulp.runs)
	}
	answer := func(i int) []byte {
		return tagged(OpReadResponse, 0x11, 0x100+uint64(i), true, bytes.Repeat([]byte{byte('1' + i)}, i+1))
	}
	r.take(answer(0), answer(1))
	want(t, "sent", r.sent(), question(6), question(7))
	r.take(answer(2), answer(3), answer(4), answer(5))
	want(t, "sent before the fence", r.sent())
	r.take(answer(6))
	want(t, "sent behind the fence", r.sent(), question(8), question(9))
	r.take(answer(7), answer(8))
	if got := strings.TrimRight(string(m.data), "."); got != "123456789"+strings.Repeat("9", 8) {
		t.Errorf("%q is in place", got)
	}
	if !r.responses.allReported() || r.Stats.MessagesOut.Load() != 9 {
		t.Errorf("not all is answered, or %d messages were counted", r.Stats.MessagesOut.Load())
	}
}

// The Read of a run that the peer's Terminate message names is the one that fails.
func TestTheReadOfARunThatThePeerRefusesIsTheOneThatFails(t *testing.T) {
	for bad := 1; bad <= 4; bad++ {
		r := newRig(t)
		r.region(0x11, 0x100, 10, '.')
		r.send(readOf(1), readOf(1), readOf(1), readOf(1))
		h := ddp.Untagged{Last: true, Version: 1, RsvdULP: ControlUntagged(1, OpReadRequest, 0), QN: QueueRequest, MSN: uint32(bad)}
		ticket, ok := r.TerminatedRequest(&TerminateError{DDPHeader: h.Append(nil)})
		if !ok || ticket != uint64(bad) {
			t.Errorf("message %d is that of Read %d, %v", bad, ticket, ok)
		}
	}
}

// Sends go in runs as Writes do, of either kind, and each has its MSN.
//
// Claims: R-5.3-5
func TestShortSendsAreSentInRuns(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes = 3 })
	solicited := Operation{Opcode: OpSendSE, Length: 6}
	r.send(sendOf(1), sendOf(2), sendOf(110), solicited, solicited, sendOf(3), writeOf(4), sendOf(0), sendOf(5))
	if want := []int{2, 1, 1}; !slices.Equal(r.ulp.runs, want) {
		t.Errorf("runs of %v, expected %v", r.ulp.runs, want)
	}
	r.line.takes = -1
	r.writer()
	want(t, "sent", r.sent(), "Send 0#1+0 1.", "Send 0#2+0 2.", "Send 0#3+0 110.", "Send with SE 0#4+0 6.", "Send with SE 0#5+0 6.",
		"Send 0#6+0 3.", write(4), "Send 0#7+0 0.", "Send 0#8+0 5.")
	want(t, "told", r.ulp.told(), "sent 3", "sent 9")
}

// Memory of a run of Sends that cannot be read has them go one by one, with the MSNs that they
// would have had.
func TestUnreadableSendOfARunIsTheOneThatFails(t *testing.T) {
	for bad := 1; bad <= 6; bad++ {
		r := newRig(t, unreadable(byte('0'+bad)))
		r.send(sendOf(1), sendOf(2), sendOf(3), sendOf(4), sendOf(5), sendOf(6))
		var sent []string
		for i := 1; i < bad; i++ {
			sent = append(sent, fmt.Sprintf("Send 0#%d+0 %d.", i, i))
		}
		want(t, "sent", r.sent(), append(sent, "Terminate 2#1+0 4.")...)
		if told := r.ulp.told(); !slices.Contains(told, fmt.Sprintf("failed %d", bad)) {
			t.Errorf("told %q, expected that %d failed", told, bad)
		}
	}
}

// replies is what the answers to requests of 1, 2 and so on octets look like.
func replies(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("RDMA Read Response 0x77:%#x %d.", 0x700+i, i+1))
	}
	return lines
}

// questions are the peer's for 1, 2 and so on octets.
func questions(n int) (in [][]byte) {
	for i := range n {
		in = append(in, readRequestTo(uint32(i+1), ReadRequest{SinkSTag: 0x77, SinkTO: 0x700 + uint64(i), Size: uint32(i + 1), SourceSTag: 0x33, SourceTO: 8}))
	}
	return in
}

// Short Reads of the peer are answered in runs, in their order, from memory that is not held any
// longer.
//
// Claims: R-5.2.2-7
func TestShortReadsAreAnsweredInRuns(t *testing.T) {
	r := newRig(t, depths(8, 0), digests, func(_ *Config, l *line) { l.fenced, l.room = true, 1000 })
	source := r.region(0x33, 8, 8, 'a')
	r.take(questions(8)...)
	r.line.fenced, r.line.takes = false, 0
	r.Kick()
	if len(r.hold.uses) > 0 || r.ulp.sources != 6 {
		t.Errorf("memory is held for %+v, %d answers went with others", r.hold.uses, r.ulp.sources)
	}
	if r.requests.len() != 0 {
		t.Errorf("%d requests keep their places", r.requests.len())
	}
	copy(source.data, "bbbbbbbb")
	r.line.takes = -1
	r.writer()
	for i := range r.line.written {
		if p := r.line.written[i].payload; !bytes.Equal(p, bytes.Repeat([]byte{'a'}, i+1)) {
			t.Errorf("answer %d has %q", i, p)
		}
	}
	want(t, "sent", r.sent(), replies(8)...)
	s := &r.Stats
	if s.ReadsServed.Load() != 8 || s.ReadOctets.Load() != 36 || s.MessagesOut.Load() != 8 {
		t.Errorf("%d Reads of %d octets served, %d messages", s.ReadsServed.Load(), s.ReadOctets.Load(), s.MessagesOut.Load())
	}
}

// What does not go with others is answered in its turn: long Reads, atomics, memory in pieces or
// elsewhere.
func TestAnswersOutsideOfRunsKeepTheirTurn(t *testing.T) {
	for name, c := range map[string]struct {
		option func(*rig)
		in     [][]byte
		out    []string
	}{
		"long": {func(*rig) {}, [][]byte{asks(1, 1), asks(2, 2), asks(3, 111), asks(4, 4)},
			[]string{"RDMA Read Response 0x77:0x700 1.", "RDMA Read Response 0x77:0x700 2.", "RDMA Read Response 0x77:0x700 111.", "RDMA Read Response 0x77:0x700 4."}},
		"atomic": {func(*rig) {}, [][]byte{asks(1, 1), asks(2, 2), adds(3, 7), asks(4, 4)},
			[]string{"RDMA Read Response 0x77:0x700 1.", "RDMA Read Response 0x77:0x700 2.", "Atomic Response 3#1+0 12.", "RDMA Read Response 0x77:0x700 4."}},
		"empty": {func(*rig) {}, [][]byte{asks(1, 1), asks(2, 2), asks(3, 0), asks(4, 4)},
			[]string{"RDMA Read Response 0x77:0x700 1.", "RDMA Read Response 0x77:0x700 2.", "RDMA Read Response 0x77:0x700 0.", "RDMA Read Response 0x77:0x700 4."}},
		"elsewhere": {func(r *rig) { r.ulp.split = true }, [][]byte{asks(1, 1), asks(2, 2), asks(3, 3), asks(4, 4)},
			[]string{"RDMA Read Response 0x77:0x700 1.", "RDMA Read Response 0x77:0x700 2.", "RDMA Read Response 0x77:0x700 3.", "RDMA Read Response 0x77:0x700 4."}},
	} {
		r := newRig(t, func(_ *Config, l *line) { l.fenced, l.room = true, 1000 })
		r.region(0x33, 8, 200, '.')
		r.region(0x44, 16, 8, 0)
		c.option(r)
		r.take(c.in...)
		r.line.fenced = false
		r.Kick()
		want(t, name, r.sent(), c.out...)
	}
}

// A queue that is stalled does not keep answers from going in runs.
func TestAStalledQueueDoesNotHoldUpRunsOfAnswers(t *testing.T) {
	r := newRig(t, depths(8, 1), func(_ *Config, l *line) { l.room = 1000 })
	r.region(0x33, 8, 8, '.')
	r.send(readOf(1), readOf(1), sendOf(1))
	r.sent()
	r.take(questions(8)...)
	if r.ulp.sources == 0 {
		t.Error("each answer went by itself")
	}
	want(t, "sent", r.sent(), replies(8)...)
}

// Memory of a run of answers that cannot be read, or is refused, has them go one by one, so that
// those before it are sent, and the Terminate message is about it.
func TestTheAnswerOfARunThatCannotBeSentIsTheOneAtFault(t *testing.T) {
	for bad := range 6 {
		for name, spoil := range map[string]func(r *rig){
			"unreadable": func(r *rig) { r.line.bad, r.line.faults = 'x', true },
			"revoked":    func(r *rig) { r.ulp.forget(0x34) },
		} {
			r := newRig(t, depths(8, 0), func(_ *Config, l *line) { l.fenced, l.room = true, 1000 })
			r.region(0x33, 8, 8, 'a')
			r.region(0x34, 8, 8, 'x')
			in := questions(6)
			in[bad] = readRequestTo(uint32(bad+1), ReadRequest{SinkSTag: 0x77, SinkTO: 0x700, Size: 1, SourceSTag: 0x34, SourceTO: 8})
			r.take(in...)
			spoil(r)
			r.line.fenced = false
			r.Kick()
			r.Kick()
			m := r.terminated()
			var h ddp.Untagged
			if !h.Parse(m.DDPHeader) || h.MSN != uint32(bad+1) {
				t.Errorf("%s: the Terminate message is about %+v, expected message %d", name, h, bad+1)
			}
			sent := r.sent()
			want(t, name, sent[:len(sent)-1], replies(bad)...)
		}
	}
}

// An operation that was posted while answers were being gathered is complete when it has left, and
// not before.
func TestAnOperationBehindARunOfAnswersCompletesByItself(t *testing.T) {
	for taken := range 11 {
		r := newRig(t, depths(8, 0), func(_ *Config, l *line) { l.fenced, l.room = true, 1000 })
		r.region(0x33, 8, 8, 'a')
		r.take(questions(8)...)
		r.line.fenced, r.line.takes = false, taken
		r.post(writeOf(1))
		r.ulp.sourced = func() {
			r.ulp.sourced = nil
			r.post(writeOf(1))
		}
		r.Kick()
		var told []string
		switch {
		case taken > 9:
			told = []string{"sent 2"}
		case taken > 1:
			told = []string{"sent 1"}
		}
		want(t, fmt.Sprintf("%d taken: told", taken), r.ulp.told(), told...)
		r.line.takes = -1
		if taken < 10 {
			r.writer()
		}
		sent := r.sent()
		if n := len(sent); n != 10 || sent[1] != write(1) || sent[9] != write(1) {
			t.Errorf("%q left, expected the Writes in the second and the last place", sent)
		}
	}
}
