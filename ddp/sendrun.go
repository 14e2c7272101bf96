// This file sends runs: tagged messages of one segment each, which go to the LLP together.

package ddp

import "encoding/binary"

// RunLength is how many messages a [TaggedRun] has at most.
const RunLength = 64

// A TaggedRun is tagged messages that each fit into one segment. The ULP fills it in.
type TaggedRun struct {
	N        int // how many there are
	Targets  [RunLength]Target
	Payloads [RunLength][]byte // in one piece each

	headers [RunLength * TaggedLen]byte
}

// A Target is where a tagged message goes.
type Target struct {
	STag uint32
	TO   uint64
}

// Pieces returns the memory of the messages.
func (r *TaggedRun) Pieces() [][]byte { return r.Payloads[:r.N] }

// RunRoom is how many octets each message of a run may have; 0 if the LLP takes no runs.
func (s *Sender) RunRoom() int {
	if s.runs == nil {
		return 0
	}
	return max(s.llp.MULPDU(), minMULPDU) - TaggedLen
}

// AppendRun submits the messages of a run and gives them to the LLP. No message may be Active. It
// may fault in payload, see [LLP]: then nothing is appended, once Truncate(Appended()) was called.
func (s *Sender) AppendRun(rsvdULP uint8, r *TaggedRun) {
	first := control(flagTagged, true, s.version)
	for i := range r.Targets[:r.N] {
		to, h := &r.Targets[i], r.headers[i*TaggedLen:][:TaggedLen]
		h[0], h[1] = first, rsvdULP
		binary.BigEndian.PutUint32(h[2:], to.STag)
		binary.BigEndian.PutUint64(h[6:], to.TO)
	}
	s.runs.AppendRun(r.headers[:r.N*TaggedLen], TaggedLen, r.Pieces())
	s.count += uint64(r.N)
}
