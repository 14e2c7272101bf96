package rdmap

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
		for name, in := range map[string]func(i int, payload string) []byte{
			"Send":     func(i int, payload string) []byte { return whole(OpSend, uint32(i+1), []byte(payload)) },
			"Response": func(_ int, payload string) []byte { return tagged(OpReadResponse, 0x11, 0x100, true, []byte(payload)) },
		} {
			r := newRig(t, depths(0, 64))
			r.region(0x11, 0x100, 64, '.')
			r.receive(3, 3, 3, 3)
			r.send(readOf(3), readOf(3), readOf(3), readOf(3))
			r.ulp.another = func() { c.end(r) }
			if err := r.feed(in(0, "one"), in(1, "two"), in(2, "six"), in(3, "ten")); err == nil || r.ulp.others != 1 {
				t.Errorf("%s, %s: %v, expected %v; %d were placed as others", name, c.name, err, c.want, r.ulp.others)
			}
			if n := r.Stats.MessagesIn.Load(); n != 2 {
				t.Errorf("%s, %s: %d messages, expected 2", name, c.name, n)
			}
		}
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

// Read Responses that have arrived together are placed and counted as single ones, each at its
// own Read.
func TestAlikeReadResponsesAnswerTheirReads(t *testing.T) {
	r := newRig(t, depths(0, 64))
	m := r.region(0x11, 0x100, 64, '.')
	for i := range 5 {
		op := readOf(uint32(i + 1))
		op.SinkTO = 0x100 + uint64(10*i)
		r.post(op)
	}
	r.Kick()
	var in [][]byte
	for i := range 5 {
		in = append(in, tagged(OpReadResponse, 0x11, 0x100+uint64(10*i), true, bytes.Repeat([]byte{byte('a' + i)}, i+1)))
	}
	r.take(in...)
	if got := strings.ReplaceAll(string(m.data), ".", ""); got != "abbcccddddeeeee" {
		t.Errorf("%q is in place", got)
	}
	want(t, "told", r.ulp.told(), "responded 1 0x0", "answered 5")
	if r.ulp.others != 4 || r.Stats.MessagesIn.Load() != 5 || !r.responses.allReported() || r.responses.len() != 0 {
		t.Errorf("%d placed as others, %d messages, %d Reads wait", r.ulp.others, r.Stats.MessagesIn.Load(), r.responses.len())
	}
}

// A Read of which more is to be done than to complete it is answered by itself, before the next is
// looked at.
func TestAReadThatDoesMoreIsAnsweredByItself(t *testing.T) {
	r := newRig(t, depths(0, 64))
	r.region(0x11, 0x100, 64, '.')
	r.send(readOf(1), readOf(1), readOf(1), readOf(1), readOf(1))
	r.ulp.apart = 3
	one := tagged(OpReadResponse, 0x11, 0x100, true, []byte("x"))
	r.take(one, one, one, one, one)
	want(t, "told", r.ulp.told(), "responded 1 0x0", "answered 2", "responded 3 0x0", "answered 5")
}

// Sends that have arrived together complete their receives in order, and are delivered behind the
// gate.
func TestAlikeSendsCompleteTheirReceives(t *testing.T) {
	r := newRig(t)
	r.receive(3, 3, 5, 3)
	into := slices.Clone(r.ulp.receives)
	r.take(whole(OpSendSE, 1, []byte("one")), whole(OpSendSE, 2, []byte("tw")), whole(OpSendSE, 3, []byte("three")), whole(OpSendSE, 4, []byte("4")))
	if got := fmt.Sprintf("%s", into); got != "[one tw\x00 three 4\x00\x00]" {
		t.Errorf("%q is in place", got)
	}
	want(t, "told", r.ulp.told(), "delivered Send with SE 3", "delivered Send with SE [2 5 1]")
	if n := r.Stats.MessagesIn.Load(); n != 4 || len(r.ulp.receives) != 0 {
		t.Errorf("%d messages, %d receives are left", n, len(r.ulp.receives))
	}
}

// A run has no more Sends than it has room for.
func TestMoreAlikeSendsThanARunHas(t *testing.T) {
	r := newRig(t)
	var in [][]byte
	for i := range 70 {
		r.receive(1)
		in = append(in, whole(OpSend, uint32(i+1), []byte("x")))
	}
	r.take(in...)
	told := r.ulp.told()
	n := 0
	for _, line := range told {
		if list, run := strings.CutPrefix(line, "delivered Send ["); run {
			n += 1 + strings.Count(list, " ")
		} else {
			n++
		}
	}
	if n != 70 || len(told) != 6 || len(r.ulp.receives) != 0 {
		t.Errorf("told %q", told)
	}
}

// Messages that have arrived together come to what they come to one by one: the same octets in
// place, the same calls, the same error about the same segment.
//
// Claims: R-5.2.2-9 R-6.1-9
func TestMessagesTakenTogetherComeToTheSameAsOneByOne(t *testing.T) {
	together := 0
	for seed := range uint64(4000) {
		x, y := newMix(t, seed), newMix(t, seed)
		x.play(true)
		y.play(false)
		if a, b := x.outcome(), y.outcome(); a != b {
			t.Fatalf("seed %d: together\n%s\none by one\n%s\nin %s", seed, a, b, x.words)
		}
		together += x.ulp.others
	}
	if together < 1000 {
		t.Errorf("%d messages were taken together, expected more", together)
	}
}

// A mix is a stream of the peer's, most of it good, of messages that may be alike.
type mix struct {
	*rig
	in    [][]byte
	words []string
	err   error
	told  []string
	posts [][]byte
}

func newMix(t *testing.T, seed uint64) *mix {
	m := &mix{rig: newRig(t, depths(24, 24), func(c *Config, _ *line) { c.Initiator = false })}
	rng := rand.New(rand.NewPCG(seed, 1))
	m.region(0x11, 0x100, 256, '.')
	m.region(0x33, 0x300, 256, 'r')
	for range 20 {
		m.receive(8)
	}
	m.posts = slices.Clone(m.ulp.receives)
	const own = 24       // Reads of this side
	odd := rng.IntN(400) // one that is for another place, if it is one of them
	for i := range own {
		op := readOf(uint32(1 + i%8))
		op.SinkTO = 0x100 + uint64(8*i)
		if i == odd {
			op.SinkSTag = 0x12
		}
		m.post(op)
	}
	// The first message lets this side send.
	m.add(tagged(OpWrite, 0x11, 0x100, true, []byte("w")), "open")
	sends, requests, answered := uint32(0), uint32(0), 0
	kind := rng.IntN(4)
	bad := rng.IntN(60) // mostly none
	for i := range 40 {
		if rng.IntN(5) == 0 {
			kind = rng.IntN(4)
		}
		off := func(n uint64) uint64 { // what is wrong, if this is the one
			if i == bad && rng.IntN(2) == 0 {
				return n + 1 + uint64(rng.IntN(300))
			}
			return n
		}
		switch kind {
		case 0:
			m.add(tagged(OpWrite, uint32(off(0x11)), off(0x100+uint64(rng.IntN(200))), true, octets(1+rng.IntN(8))), "write")
		case 1:
			sends++
			m.add(whole(OpSend, uint32(off(uint64(sends))), octets(rng.IntN(8+int(off(1))))), "send")
		case 2:
			requests++
			m.add(readRequestTo(uint32(off(uint64(requests))), ReadRequest{SinkSTag: 0x77, SinkTO: uint64(i), Size: uint32(1 + rng.IntN(8)),
				SourceSTag: uint32(off(0x33)), SourceTO: off(0x300)}), "request")
		case 3:
			n := 1 + answered%8
			m.add(tagged(OpReadResponse, uint32(off(0x11)), off(0x100+uint64(8*answered)), true, octets(int(off(uint64(n))))), "response")
			if answered++; answered == own {
				kind = 0
			}
		}
	}
	return m
}

func (m *mix) add(u []byte, word string) { m.in, m.words = append(m.in, u), append(m.words, word) }

// play has the Reads sent and then all the rest received.
func (m *mix) play(together bool) {
	m.take(m.in[0])
	m.Kick()
	m.sent()
	if !together {
		// One by one, and without an end of what has arrived in between.
		m.line.single = true
	}
	m.err = m.feed(m.in[1:]...)
	// Runs are of other lengths.
	for _, line := range m.ulp.told() {
		var upTo int
		var list string
		if n, _ := fmt.Sscanf(line, "answered %d", &upTo); n == 1 {
			m.answered(upTo)
		} else if n, _ := fmt.Sscanf(line, "responded %d", &upTo); n == 1 {
			m.answered(upTo)
		} else if list = strings.TrimPrefix(line, "delivered Send ["); list != line {
			for _, n := range strings.Fields(strings.TrimSuffix(list, "]")) {
				m.told = append(m.told, "delivered Send "+n)
			}
		} else {
			m.told = append(m.told, line)
		}
	}
}

// answered notes a completion for each Read up to that ticket.
func (m *mix) answered(upTo int) {
	n := 0
	for _, line := range m.told {
		if strings.HasPrefix(line, "answered") {
			n++
		}
	}
	for n++; n <= upTo; n++ {
		m.told = append(m.told, fmt.Sprint("answered ", n))
	}
}

func (m *mix) outcome() string {
	header, length := m.Stream.in.receiver.Offending()
	s := &m.Stats
	return fmt.Sprintf("%v\n%q\n% x of %d\n%q %q %q\n%d messages, %d Writes of %d octets, %d requests\nsent %q",
		m.err, m.told, header, length, m.posts, m.ulp.memory[0x11].data, m.ulp.memory[0x33].data,
		s.MessagesIn.Load(), s.Writes.Load(), s.WriteOctets.Load(), m.requests.len(), m.sent())
}
