// This file sends runs: messages of one segment each, which go to the LLP together.

package ddp

import "encoding/binary"

// RunLength is how many messages a [Run] has at most.
const RunLength = 64

// A Run is messages that each fit into one segment. The ULP fills it in.
type Run struct {
	N        int               // how many there are
	Targets  [RunLength]Target // of tagged messages
	Payloads [RunLength][]byte // in one piece each

	headers [RunLength * UntaggedLen]byte
}

// A Target is where a tagged message goes.
type Target struct {
	STag uint32
	TO   uint64
}

// Pieces returns the memory of the messages.
func (r *Run) Pieces() [][]byte { return r.Payloads[:r.N] }

// RunRoom is how many octets each message of a run may have; 0 if the LLP takes no runs.
func (s *Sender) RunRoom() int {
	if s.runs == nil {
		return 0
	}
	return max(s.llp.MULPDU(), minMULPDU) - UntaggedLen
}

// AppendTaggedRun submits the messages of a run and gives them to the LLP, which reads each octet
// once. No message may be Active. It may fault in payload, see [LLP]: then nothing is appended,
// once Truncate(Appended()) was called.
func (s *Sender) AppendTaggedRun(rsvdULP uint8, r *Run) {
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

// AppendUntaggedRun is AppendTaggedRun for messages to queue qn, below [Queues]. It returns the
// MSN of the first.
func (s *Sender) AppendUntaggedRun(rsvdULP [5]byte, qn uint32, r *Run) (msn uint32) {
	msn = s.seq.upcoming(qn)
	for i := range r.N {
		h := r.headers[i*UntaggedLen:][:0:UntaggedLen]
		appendUntagged(h, true, s.version, &rsvdULP, qn, msn+uint32(i), 0)
	}
	s.runs.AppendRun(r.headers[:r.N*UntaggedLen], UntaggedLen, r.Pieces())
	s.seq.skip(qn, r.N)
	s.count += uint64(r.N)
	return msn
}
