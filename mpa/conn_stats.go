// What a Conn counts.

package mpa

import "sync/atomic"

// Stats are a Conn's counts since the stream began. They are read one by one,
// not at one instant.
type Stats struct {
	FPDUsIn   uint64 // validated and handed up
	FPDUsOut  uint64 // wholly taken by the connection below
	OctetsIn  uint64 // of the stream, markers and FPDU framing included
	OctetsOut uint64
	Reads     uint64 // calls that read octets from the connection
	Writes    uint64 // calls that wrote octets to it
}

type counters struct {
	framesIn, framesOut atomic.Uint64
	octetsIn, octetsOut atomic.Uint64
	reads, writes       atomic.Uint64
}

// Stats returns the counts. It may be called at any time.
func (c *Conn) Stats() Stats {
	return Stats{
		FPDUsIn:   c.stats.framesIn.Load(),
		FPDUsOut:  c.stats.framesOut.Load(),
		OctetsIn:  c.stats.octetsIn.Load(),
		OctetsOut: c.stats.octetsOut.Load(),
		Reads:     c.stats.reads.Load(),
		Writes:    c.stats.writes.Load(),
	}
}

// Counts returns the FPDUs and octets of Stats, for users that know nothing of MPA.
func (c *Conn) Counts() (fpdusIn, fpdusOut, octetsIn, octetsOut uint64) {
	s := c.Stats()
	return s.FPDUsIn, s.FPDUsOut, s.OctetsIn, s.OctetsOut
}
