package rdmap

import (
	"fmt"
	"slices"
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
	r.send(writeOf(1), writeOf(2), writeOf(114), writeOf(3), sendOf(4), writeOf(5), writeOf(0), writeOf(6), writeOf(115), writeOf(7), fenced, writeOf(8))
	if want := []int{3, 1, 1, 1}; !slices.Equal(r.ulp.runs, want) {
		t.Errorf("runs of %v, expected %v", r.ulp.runs, want)
	}
	r.line.takes = -1
	r.writer()
	want(t, "sent", r.sent(), write(1), write(2), write(114), write(3), "Send 0#1+0 4.", write(5), write(0), write(6),
		"RDMA Write 0x22:0x1000 114...", "RDMA Write 0x22:0x1072 1.", write(7), write(9), write(8))
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
