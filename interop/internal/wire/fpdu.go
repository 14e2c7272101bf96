// This file cuts a stream into FPDUs.

package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

const (
	markerSpacing = 512
	maxULPDU      = 64768
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// An FPDU is a framed ULPDU (RFC 5044 §4).
type FPDU struct {
	First, Last int    // the packets that brought its first and last octet
	Shared      bool   // another FPDU, or a part of one, is in one of these packets
	ULPDU       []byte // without markers
	Markers     int    // inside it or directly before it
	Segment     Segment
}

// A cutter cuts one direction, from the first octet of Full Operation on.
type cutter struct {
	sender  Direction
	flow    *Flow
	base    int // offset in flow where Full Operation begins
	pos     int // octets since base, markers included
	markers bool
	crc     bool

	start   int // where the FPDU's length field stands, -1 before it is reached
	sum     uint32
	count   int // markers met
	pointer error
}

// next returns the next FPDU; ok is false at the end of what was captured.
// err says that the framing cannot be trusted any further; faults do not
// disturb it.
func (c *cutter) next() (f FPDU, ok bool, faults []Finding, err error) {
	if c.base+c.pos >= len(c.flow.Octets) {
		return FPDU{}, false, nil, nil
	}
	c.start, c.sum, c.count, c.pointer = -1, 0, 0, nil
	begin := c.pos
	header, err := c.take(2)
	if err != nil {
		return FPDU{}, false, nil, err
	}
	length := int(binary.BigEndian.Uint16(header))
	if length == 0 || length > maxULPDU {
		return FPDU{}, false, nil, fmt.Errorf("ULPDU_Length %d, expected 1 to %d", length, maxULPDU)
	}
	ulpdu, err := c.take(length)
	if err != nil {
		return FPDU{}, false, nil, err
	}
	pad, err := c.take((4 - (length+2)%4) % 4)
	if err != nil {
		return FPDU{}, false, nil, err
	}
	if err := c.skipMarker(); err != nil {
		return FPDU{}, false, nil, err
	}
	if c.base+c.pos+4 > len(c.flow.Octets) {
		return FPDU{}, false, nil, fmt.Errorf("the capture ends before the CRC of an FPDU of %d octets", length)
	}
	trailer := binary.LittleEndian.Uint32(c.flow.Octets[c.base+c.pos:])
	c.pos += 4
	f = FPDU{
		First: c.flow.packetOf(c.base + begin), Last: c.flow.packetOf(c.base + c.pos - 1),
		ULPDU: ulpdu, Markers: c.count,
	}
	fault := func(rule Rule, format string, args ...any) {
		faults = append(faults, Finding{c.sender, f.Last, rule, fmt.Sprintf(format, args...)})
	}
	if c.crc && trailer != c.sum {
		fault(RuleCRC, "the FPDU's CRC is %08x, its octets give %08x", trailer, c.sum)
	}
	if c.pointer != nil {
		fault(RuleMarker, "%v", c.pointer)
	}
	for _, octet := range pad {
		if octet != 0 {
			fault(RulePad, "PAD octets % x, expected zero (RFC 5044 §4.1)", pad)
			break
		}
	}
	return f, true, faults, nil
}

// take returns the next n octets that are not markers.
func (c *cutter) take(n int) ([]byte, error) {
	var taken []byte
	for len(taken) < n {
		if err := c.skipMarker(); err != nil {
			return nil, err
		}
		if c.start < 0 {
			c.start = c.pos
		}
		run := n - len(taken)
		if c.markers {
			run = min(run, markerSpacing-c.pos%markerSpacing)
		}
		at := c.base + c.pos
		if at+run > len(c.flow.Octets) {
			return nil, fmt.Errorf("the capture ends inside an FPDU: %d more octets expected", at+run-len(c.flow.Octets))
		}
		octets := c.flow.Octets[at : at+run]
		c.sum = crc32.Update(c.sum, castagnoli, octets)
		taken = append(taken, octets...)
		c.pos += run
	}
	return taken, nil
}

// skipMarker checks and passes the marker that stands at every 512th octet,
// beginning with the first (RFC 5044 §4.3).
func (c *cutter) skipMarker() error {
	if !c.markers || c.pos%markerSpacing != 0 {
		return nil
	}
	at := c.base + c.pos
	if at+4 > len(c.flow.Octets) {
		return fmt.Errorf("the capture ends inside a marker")
	}
	marker := c.flow.Octets[at : at+4]
	want := 0
	if c.start >= 0 {
		want = c.pos - c.start
	}
	if got := int(binary.BigEndian.Uint16(marker[2:])); got != want || marker[0]|marker[1] != 0 {
		c.pointer = fmt.Errorf("marker % x at stream octet %d, expected FPDUPTR %d and zeros before it", marker, c.pos, want)
	}
	c.sum = crc32.Update(c.sum, castagnoli, marker)
	c.pos += 4
	c.count++
	return nil
}
