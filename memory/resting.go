// This file is the STag indices that were freed last, which are not drawn again for a while.

package memory

import "math"

const (
	// rests is how many freed indices are not drawn again: a peer's stale STag refers to
	// nothing for a long time (RFC 5042 §6.1.1).
	rests = 4096

	// restBits of an index choose its count.
	restBits = 16
)

// resting has the indices freed last, rests of them. It takes some others, one in sixteen, for
// resting, too: those that share restBits bits with one that is. So it needs no search. The
// zero value is empty.
type resting struct{ *restingIndices }

// restingIndices is the memory of a resting that is not empty.
type restingIndices struct {
	ring  [rests]uint32 // in the order in which they were freed; 0 is none
	at    int           // where the next goes
	count [1 << restBits]uint8
}

// has reports whether index rests, or one that is taken for it.
func (r resting) has(index uint32) bool {
	return r.restingIndices != nil && r.count[index%(1<<restBits)] != 0
}

// add adds an index in place of the oldest.
func (r *resting) add(index uint32) {
	if r.restingIndices == nil {
		r.restingIndices = new(restingIndices)
	}
	if oldest := r.ring[r.at]; oldest != 0 {
		// A count that has reached its limit stays there: nobody knows what it should be.
		if c := &r.count[oldest%(1<<restBits)]; *c < math.MaxUint8 {
			*c--
		}
	}
	r.ring[r.at] = index
	r.at = (r.at + 1) % rests
	if c := &r.count[index%(1<<restBits)]; *c < math.MaxUint8 {
		*c++
	}
}
