package mpa

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// A joiner has the Conn place ULPDUs together, behind headers of skip octets.
type joiner struct {
	collector
	skip    int
	most    int    // ULPDUs that may join one
	run     []byte // payload of the ULPDU begun and of those joined
	lengths []int  // of their payload
	next    int    // of lengths: the next to end
	head    []byte // of that one
	joined  int    // in all
	refuses bool   // Begin says no to a ULPDU that has joined
	refuse  error  // and why
}

func (j *joiner) Begin(head []byte, length int) (int, bool, error) {
	if j.next == len(j.lengths) {
		j.next, j.lengths, j.run = 0, []int{length - j.skip}, make([]byte, length-j.skip)
	} else if j.refuses {
		return 0, false, j.refuse
	}
	j.head = bytes.Clone(head[:j.skip])
	return j.skip, true, nil
}

func (j *joiner) MayJoin() bool { return len(j.lengths) <= j.most }

func (j *joiner) Join(head []byte, length int) (int, bool) {
	if len(j.lengths) > j.most || length <= j.skip {
		return 0, false
	}
	j.joined++
	j.lengths = append(j.lengths, length-j.skip)
	j.run = append(j.run, make([]byte, length-j.skip)...)
	return j.skip, true
}

func (j *joiner) Window(dst [][]byte, off int) ([][]byte, error) {
	for rest := j.run[off-j.skip:]; len(rest) > 0; {
		n := min(25000, len(rest))
		dst = append(dst, rest[:n], nil)
		rest = rest[n:]
	}
	return dst, nil
}

func (j *joiner) End() error {
	n := j.lengths[j.next]
	j.next++
	j.got = append(j.got, append(j.head, j.run[:n]...))
	j.run = j.run[n:]
	return nil
}

// manyLengths are those of long ULPDUs, with all paddings, and a few short ones.
func manyLengths() []int {
	lengths := []int{20}
	for i := range 60 {
		lengths = append(lengths, 60000+i)
		if i%25 == 0 {
			lengths = append(lengths, 30, 18, 19)
		}
	}
	return append(lengths, 64768, 64767, 64766, 64765)
}

// ULPDUs that are placed together are the same as ULPDUs placed one by one, however the stream
// is cut, and whatever of it has arrived when they are looked for.
func TestULPDUsThatJoinAreTheSameHoweverTheStreamIsCut(t *testing.T) {
	want, wire, _ := wireOf(Params{}, manyLengths()...)
	for _, skip := range []int{14, 18} {
		for seed := range uint64(12) {
			rng := rand.New(rand.NewPCG(seed, 1))
			portions := []func() int{whole, random(3000), random(70000), random(1 << 20)}
			f := &fed{wire: wire, direct: true, portion: portions[seed%uint64(len(portions))]}
			f.peeks = func() int { return rng.IntN(1 << 20) }
			s := &joiner{skip: skip, most: rng.IntN(20)}
			c := feed(f, Params{Initiator: true})
			if err := c.Receive(s); err != io.EOF {
				t.Fatalf("skip %d, seed %d: %v, expected EOF", skip, seed, err)
			}
			if !bytes.Equal(bytes.Join(s.got, nil), bytes.Join(want, nil)) {
				t.Fatalf("skip %d, seed %d: %d ULPDUs arrived, expected %d, or they differ", skip, seed, len(s.got), len(want))
			}
			if got := c.Stats(); got.FPDUsIn != uint64(len(want)) || got.OctetsIn != uint64(len(wire)) {
				t.Errorf("skip %d, seed %d: counted %d FPDUs of %d octets, expected %d of %d", skip, seed, got.FPDUsIn, got.OctetsIn, len(want), len(wire))
			}
			if s.most > 0 && seed > 0 && s.joined == 0 {
				t.Errorf("skip %d, seed %d: none joined", skip, seed)
			}
		}
	}
}

// Where all has arrived, one read places all that joins.
func TestOneReadPlacesAllThatJoins(t *testing.T) {
	_, wire, _ := wireOf(Params{}, 60000, 60000, 60000, 60000)
	f := &fed{wire: wire, direct: true, peeks: whole}
	reads := 0
	f.portion = func() int {
		if reads++; reads == 1 {
			return 1000
		}
		return 1 << 30
	}
	s := &joiner{skip: 14, most: 16}
	if err := feed(f, Params{Initiator: true}).Receive(s); err != io.EOF || len(s.got) != 4 {
		t.Fatalf("%d ULPDUs, %v", len(s.got), err)
	}
	if reads != 3 { // the headers, the rest, the end
		t.Errorf("%d reads, expected 3", reads)
	}
}

// Nothing is looked for that the Sink would not let join: behind a message of one ULPDU, and
// behind the last one of others.
func TestNothingIsPeekedAtThatMayNotJoin(t *testing.T) {
	for most, want := range []int{0, 2, 3} {
		_, wire, _ := wireOf(Params{}, 60000, 60000, 60000, 60000)
		peeks := 0
		f := &fed{wire: wire, direct: true, portion: random(70000)}
		f.peeks = func() int { peeks++; return 1 << 30 }
		s := &joiner{skip: 14, most: most}
		if err := feed(f, Params{Initiator: true}).Receive(s); err != io.EOF || len(s.got) != 4 {
			t.Fatalf("%d may join: %d ULPDUs, %v", most, len(s.got), err)
		}
		if peeks != want {
			t.Errorf("%d may join: peeked %d times, expected %d", most, peeks, want)
		}
	}
}

// What the Sink says of a ULPDU that has joined ends the reception there.
func TestAJoinedULPDUThatIsRefusedEndsTheReception(t *testing.T) {
	refused := errors.New("refused")
	for _, c := range []struct{ refuse, want error }{{refused, refused}, {nil, errRefusedJoined}} {
		_, wire, _ := wireOf(Params{}, 60000, 60000, 60000)
		f := &fed{wire: wire, direct: true, peeks: whole, portion: func() int { return 1000 }}
		s := &joiner{skip: 14, most: 16, refuses: true, refuse: c.refuse}
		if err := feed(f, Params{Initiator: true}).Receive(s); err != c.want {
			t.Errorf("%v, expected %v", err, c.want)
		}
		if len(s.got) != 1 {
			t.Errorf("%d ULPDUs were handed up, expected 1", len(s.got))
		}
	}
}

// A length that no FPDU may have does not join: deliver says what is wrong with it.
func TestALengthThatIsTooLongDoesNotJoin(t *testing.T) {
	_, wire, ends := wireOf(Params{}, 60000, 60000)
	wire[ends[0]], wire[ends[0]+1] = 0xfd, 0x01 // 64769
	f := &fed{wire: wire, direct: true, peeks: whole, portion: func() int { return 1000 }}
	s := &joiner{skip: 14, most: 16}
	if err := feed(f, Params{Initiator: true}).Receive(s); !hasCode(err, CodeMarker) {
		t.Errorf("%v, expected code %d", err, CodeMarker)
	}
	if s.joined > 0 || len(s.got) != 1 {
		t.Errorf("%d joined, %d handed up, expected 0 and 1", s.joined, len(s.got))
	}
}

func TestPlacingTogetherAllocatesNothingOnceWarm(t *testing.T) {
	_, wire, _ := wireOf(Params{}, 20, 60000, 60000, 60000, 20, 60000, 60000)
	f := &fed{direct: true, portion: random(90000), peeks: whole}
	c := feed(f, Params{Initiator: true})
	s := &joining{placing{place: make([]byte, 4*MaxMULPDU)}}
	run := func() {
		f.wire = wire
		c.reader.pos = 0
		if err := c.reader.receive(s); err != io.EOF {
			t.Error(err)
		}
	}
	for range 10 {
		run()
	}
	if allocs := testing.AllocsPerRun(20, run); allocs != 0 {
		t.Errorf("%v allocations, expected none", allocs)
	}
}

// A joining sink puts the payload of all ULPDUs that join behind that of the one begun.
type joining struct{ placing }

func (p *joining) MayJoin() bool { return true }

func (p *joining) Join(_ []byte, length int) (int, bool) {
	if p.length+length > 3*MaxMULPDU {
		return 0, false
	}
	p.length += length - 18
	return 18, true
}
