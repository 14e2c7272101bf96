// This file holds what an endpoint accepts: limits, and what of RFC 5666 is
// spoken beyond RFC 8166.

package wire

import "cmp"

// Limits that hold where [Rules] names none.
const (
	DefaultSegments = 256
	DefaultChunks   = 16
	DefaultOctets   = 8 << 20
)

// Rules say what an endpoint accepts. The zero value is RFC 8166 with the
// default limits. A Rules may be used by many at a time as long as nobody
// changes it.
type Rules struct {
	// Segments limits the segments of one chunk, Chunks the chunks of one
	// list, and Octets the sum of the lengths in one list: what a peer may ask
	// to be fetched or filled for one RPC (RFC 8166 §8.1.4). Zero or less
	// stands for the default. A requester's own calls must keep to the limits
	// too, as replies repeat their lists.
	Segments, Chunks, Octets int

	MSGP     bool // take RDMA_MSGP (RFC 5666 §3.9); RFC 8166 §4.6.1 refuses it
	ReadRead bool // take Read lists in replies (RFC 5666 §3.8); RFC 8166 §4.3.1 forbids them

	// AnyXID accepts an RPC message whose XID is not the header's and goes by
	// the header's alone (RFC 5666 §4.1, a MAY).
	AnyXID bool

	// NoChunks refuses calls that have any chunk, which is what a responder in
	// the reverse direction does that has no support for them (RFC 8167 §5.3).
	NoChunks bool
}

// limit is configured, or standard if that says nothing.
func limit(configured, standard int) int {
	return cmp.Or(max(configured, 0), standard)
}

func (r *Rules) MaxSegments() int { return limit(r.Segments, DefaultSegments) }
func (r *Rules) MaxChunks() int   { return limit(r.Chunks, DefaultChunks) }
func (r *Rules) MaxOctets() int   { return limit(r.Octets, DefaultOctets) }
