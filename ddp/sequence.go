// This file counts messages on the untagged queues (RFC 5041 §4.3).

package ddp

// Queues is the number of untagged queues that a stream has: 0 for Sends, 1 for
// Read and Atomic Requests, 2 for Terminate (RFC 5040 §4.1) and 3 for Atomic
// Responses (RFC 7306 §4.1).
const Queues = 4

// Sequence numbers the messages of one direction of a stream, each queue on its
// own. The zero value stands at the start of the stream. Not safe for
// concurrent use.
type Sequence struct {
	last [Queues]uint32 // MSN given out last on each queue
}

// Next gives the MSN of the next message on queue qn, below [Queues]: 1 for the
// first, and 0 after 2^32-1 (RFC 5041 §4.3).
func (s *Sequence) Next(qn uint32) uint32 {
	s.last[qn]++
	return s.last[qn]
}

// upcoming is the MSN that Next would give.
func (s *Sequence) upcoming(qn uint32) uint32 { return s.last[qn] + 1 }

// skip is n calls of Next.
func (s *Sequence) skip(qn uint32, n int) { s.last[qn] += uint32(n) }
