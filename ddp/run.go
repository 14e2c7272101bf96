// This file takes runs: segments of one tagged message that have arrived together. Each is
// checked, and then the memory for all of them is looked up at once.

package ddp

import (
	"encoding/binary"

	"github.com/weft-rdma/weft/internal/memcopy"
)

// ULPDUs takes several whole segments (see [RunSink]).
func (r *Receiver) ULPDUs(us [][]byte) error {
	for len(us) > 0 && !r.failed {
		if err := r.check(us[0], len(us[0])); err != nil {
			return r.fail(err)
		}
		n := r.run(us)
		if n == 1 {
			if err := r.put(us[0]); err != nil {
				return err
			}
			n += r.takeAlike(us[1:])
		} else if err := r.putRun(us[:n]); err != nil {
			return err
		}
		us = us[n:]
	}
	return nil
}

// run returns how many segments at the front of us are to be placed together, with the first,
// which is at hand. The others go on with its message, each behind the payload of the one
// before, and pass the checks that AdmitTagged makes. If there are others, their memory is held.
func (r *Receiver) run(us [][]byte) int {
	s, j := &r.seg, &r.join
	if !s.isTagged || s.tagged.Last || s.payload == 0 || r.joins == nil {
		return 1
	}
	r.alone()
	first := &s.tagged
	// The others, as if they were one segment.
	j.tagged = Tagged{Version: first.Version, RsvdULP: first.RsvdULP, STag: first.STag, TO: first.TO + uint64(s.payload)}
	for _, u := range us[1:] {
		if !j.goesOn(u) {
			break
		}
		n := len(u) - TaggedLen
		j.payload += n
		j.lengths = append(j.lengths, n)
		if j.tagged.Last = u[0]&flagLast != 0; j.tagged.Last {
			break
		}
	}
	j.last = j.tagged.Last
	if len(j.lengths) == 0 || !r.joins.Joins(&j.tagged, j.payload) {
		return 1
	}
	n := s.payload + j.payload
	r.dst, _ = r.ulp.PlaceTagged(r.dst[:0], first, n)
	if length(r.dst) < n {
		r.forget() // each of them is to show whether it is at fault
		return 1
	}
	return 1 + len(j.lengths)
}

func length(pieces [][]byte) (n int) {
	for _, p := range pieces {
		n += len(p)
	}
	return n
}

// goesOn reports that u is a segment with payload that goes on behind what has been joined.
func (j *join) goesOn(u []byte) bool {
	h := &j.tagged
	return len(u) > TaggedLen && u[0]&^flagLast == flagTagged|h.Version && u[1] == h.RsvdULP &&
		binary.BigEndian.Uint32(u[2:]) == h.STag && binary.BigEndian.Uint64(u[6:]) == h.TO+uint64(j.payload)
}

// putRun places a run, for which run has found the memory, and counts its segments.
func (r *Receiver) putRun(us [][]byte) error {
	s, j := &r.seg, &r.join
	left := r.dst
	at := left[0]
	for _, u := range us {
		for p := u[TaggedLen:]; len(p) > 0; {
			if len(at) == 0 {
				left = left[1:]
				at = left[0]
			}
			n := memcopy.Copy(at, p)
			at, p = at[n:], p[n:]
		}
		j.begins += len(u) - TaggedLen // for reach, if the next cannot be written
	}
	j.begins = 0
	r.forget()
	if err := r.finish(); err != nil {
		return err
	}
	s.atHand(us[1])
	if err := r.ulp.AdmitTagged(&j.tagged, j.payload); err != nil {
		return r.fail(err)
	}
	s.atHand(us[len(us)-1])
	return r.finish()
}

// atHand makes s the segment u, which is of the same kind.
func (s *segment) atHand(u []byte) {
	s.length, s.payload = len(u), len(u)-s.headerLen
	copy(s.header[:s.headerLen], u)
	if s.isTagged {
		s.tagged.Parse(u)
	} else {
		s.untagged.Parse(u)
	}
}
