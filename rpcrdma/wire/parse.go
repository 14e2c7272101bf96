// This file reads headers. A count or a length is held against the limits and
// against what is left of the message before anything is done by it.

package wire

import "encoding/binary"

// Parse reads the header at the start of b, which is all of a received Send,
// and returns what follows it: the RPC message of an RDMA_MSG or RDMA_MSGP,
// which refers to b, and nil for other types, whatever follows their header.
//
// Parse does not distinguish calls and replies: [Header.Direction] does, and
// [Header.CheckCall] or [Header.CheckReply] make the other checks. An RDMA_ERROR with
// ERR_VERS is read under any version, because its form is the same in all (RFC 8166 §7).
// An unassigned error code is kept, and its words are ignored.
//
// Every error is an [*Error]. The lists are then empty; XID, Version, Credits
// and Proc are as received unless the fault is [FaultShort].
func (h *Header) Parse(b []byte, r *Rules) (payload []byte, err error) {
	*h = Header{reads: h.reads, sorted: h.sorted, writes: h.writes, segments: h.segments}
	if len(b) < fixedLen {
		return nil, Errorf(FaultShort, "%d octets, expected at least %d", len(b), fixedLen)
	}
	fixed := Header{
		XID:     binary.BigEndian.Uint32(b),
		Version: binary.BigEndian.Uint32(b[4:]),
		Credits: binary.BigEndian.Uint32(b[8:]),
		Proc:    Proc(binary.BigEndian.Uint32(b[12:])),
	}
	if least := leastLen(fixed.Version, fixed.Proc); len(b) < least {
		return nil, Errorf(FaultShort, "%v of version %d has %d octets, expected at least %d", fixed.Proc, fixed.Version, len(b), least)
	}
	h.XID, h.Version, h.Credits, h.Proc = fixed.XID, fixed.Version, fixed.Credits, fixed.Proc

	c := cursor{b: b, at: fixedLen}
	switch {
	case h.Proc == ProcError: // before the version: nothing answers an error
		return nil, h.parseError(&c)
	case h.Version != Version:
		return nil, Errorf(FaultVersion, "version %d, expected %d", h.Version, Version)
	case h.Proc == ProcDone:
		return nil, nil
	case h.Proc > ProcError:
		return nil, Errorf(FaultChunk, "%v, expected 0 to 4", h.Proc)
	case h.Proc == ProcMsgP:
		h.Align, _ = c.word()
		h.Threshold, _ = c.word() // leastLen counts them both
		if h.Align > MaxAlign {
			return nil, Errorf(FaultChunk, "alignment %d, expected at most %d", h.Align, MaxAlign)
		}
	}
	if err := h.parseLists(&c, r); err != nil {
		h.Reads, h.Writes, h.Reply, h.HasReply = nil, nil, nil, false
		return nil, err
	}
	if h.Proc == ProcNoMsg {
		return nil, nil
	}
	payload = b[c.at:]
	if err := h.CheckXID(payload, r); err != nil {
		h.Reads, h.Writes, h.Reply, h.HasReply = nil, nil, nil, false
		return nil, err
	}
	return payload, nil
}

// leastLen returns the octets that a message has at least. RFC 8166 §4.5 has
// everything below 28 dropped before any parsing, and leaves out that its own
// ERR_CHUNK is shorter, and RFC 5666's RDMA_DONE.
func leastLen(version uint32, p Proc) int {
	switch {
	case p == ProcError:
		return ErrChunkLen
	case p == ProcDone && version == Version:
		return DoneLen
	case p == ProcMsgP && version == Version:
		return NullMsgPLen
	}
	return NullLen
}

// CheckXID checks that stream, an RPC message, begins with the XID of the header. Parse
// does so for an inline message. For an RDMA_NOMSG the caller does, when it has fetched
// the message.
func (h *Header) CheckXID(stream []byte, r *Rules) error {
	if len(stream) < 4 {
		return Errorf(FaultChunk, "%v of XID %#x holds %d octets of an RPC message, expected at least its XID", h.Proc, h.XID, len(stream))
	}
	if xid := binary.BigEndian.Uint32(stream); xid != h.XID && !r.AnyXID {
		return Errorf(FaultChunk, "RPC message of XID %#x in an %v of XID %#x", xid, h.Proc, h.XID)
	}
	return nil
}

// parseError reads what follows the fixed words of an RDMA_ERROR. What cannot
// be read is unexpected, so that no side answers it.
func (h *Header) parseError(c *cursor) error {
	code, _ := c.word() // leastLen counts it
	h.Err = ErrorCode(code)
	if h.Version != Version && h.Err != ErrVers {
		return Errorf(FaultUnexpected, "RDMA_ERROR of version %d with %v, expected version %d or ERR_VERS", h.Version, h.Err, Version)
	}
	if h.Err != ErrVers {
		return nil
	}
	if c.left() < 8 {
		return Errorf(FaultUnexpected, "ERR_VERS of %d octets, expected %d", len(c.b), ErrVersLen)
	}
	h.Low, _ = c.word()
	h.High, _ = c.word()
	return nil
}

func (h *Header) parseLists(c *cursor, r *Rules) (err error) {
	if err = h.parseReads(c, r); err != nil {
		return err
	}
	if h.segments, err = h.parseWrites(c, h.segments[:0], r); err != nil {
		return err
	}
	h.segments, err = h.parseReply(c, h.segments, r)
	return err
}

func (h *Header) parseReads(c *cursor, r *Rules) error {
	list := h.reads[:0]
	most := uint64(r.MaxSegments()) * uint64(r.MaxChunks())
	for {
		more, err := c.more("Read list")
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if uint64(len(list)) == most {
			return Errorf(FaultChunk, "Read list of more than %d entries", most)
		}
		at := c.at
		entry, err := c.octets(ReadSegmentLen, "Read list entry")
		if err != nil {
			return err
		}
		s := ReadSegment{binary.BigEndian.Uint32(entry), parseSegment(entry[4:])}
		if s.Position%4 != 0 { // RFC 8166 §3.4.5
			return Errorf(FaultChunk, "Read list entry %d at octet %d has position %d, expected a multiple of 4", len(list), at, s.Position)
		}
		if s.wraps() {
			return Errorf(FaultChunk, "Read list entry %d at octet %d: %d octets from offset %#x go beyond the last one", len(list), at, s.Length, s.Offset)
		}
		list = append(list, s)
		h.reads = list
	}
	h.Reads = list[:len(list):len(list)]
	h.sorted = append(h.sorted[:0], list...)
	SortReads(h.sorted)
	return r.CheckReads(h.sorted)
}

// CheckReads holds a sorted Read list against the limits.
func (r *Rules) CheckReads(sorted []ReadSegment) error {
	var total uint64
	for chunks := 0; len(sorted) > 0; chunks++ {
		if chunks == r.MaxChunks() {
			return Errorf(FaultChunk, "more than %d Read chunks", chunks)
		}
		chunk, rest, octets := NextChunk(sorted)
		if len(chunk) > r.MaxSegments() {
			return Errorf(FaultChunk, "Read chunk at position %d has %d segments, expected at most %d", chunk[0].Position, len(chunk), r.MaxSegments())
		}
		if total += octets; total > uint64(r.MaxOctets()) {
			return Errorf(FaultChunk, "Read list of %d octets or more, expected at most %d", total, r.MaxOctets())
		}
		sorted = rest
	}
	return nil
}

// parseWrites and parseReply append the segments that they read to store.

func (h *Header) parseWrites(c *cursor, store []Segment, r *Rules) ([]Segment, error) {
	list := h.writes[:0]
	var total uint64
	for {
		more, err := c.more("Write list")
		if err != nil {
			return store, err
		}
		if !more {
			break
		}
		if len(list) == r.MaxChunks() {
			return store, Errorf(FaultChunk, "more than %d Write chunks", len(list))
		}
		chunk, grown, err := c.chunk(store, "Write chunk", r)
		if err != nil {
			return store, err
		}
		store = grown
		if total += chunk.Length(); total > uint64(r.MaxOctets()) {
			return store, Errorf(FaultChunk, "Write list of %d octets or more, expected at most %d", total, r.MaxOctets())
		}
		list = append(list, chunk)
		h.writes = list
	}
	h.Writes = list[:len(list):len(list)]
	return store, nil
}

func (h *Header) parseReply(c *cursor, store []Segment, r *Rules) ([]Segment, error) {
	there, err := c.more("Reply chunk")
	if err != nil || !there {
		return store, err
	}
	chunk, store, err := c.chunk(store, "Reply chunk", r)
	if err != nil {
		return store, err
	}
	if n := chunk.Length(); n > uint64(r.MaxOctets()) {
		return store, Errorf(FaultChunk, "Reply chunk of %d octets, expected at most %d", n, r.MaxOctets())
	}
	h.Reply, h.HasReply = chunk, true
	return store, nil
}

// A cursor walks over a message.
type cursor struct {
	b  []byte
	at int
}

func (c *cursor) left() int { return len(c.b) - c.at }

func (c *cursor) octets(n int, what string) ([]byte, error) {
	if c.left() < n {
		return nil, Errorf(FaultChunk, "%s at octet %d needs %d octets, %d are left", what, c.at, n, c.left())
	}
	c.at += n
	return c.b[c.at-n : c.at], nil
}

func (c *cursor) word() (uint32, error) {
	b, err := c.octets(4, "word")
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(b), nil
}

// more reads the word that says whether an optional item follows.
func (c *cursor) more(what string) (bool, error) {
	b, err := c.octets(4, what)
	if err != nil {
		return false, err
	}
	w := binary.BigEndian.Uint32(b)
	if w > 1 { // RFC 4506 §4.19: optional-data is discriminated by a bool
		return false, Errorf(FaultChunk, "%s has %#x at octet %d, expected 0 or 1", what, w, c.at-4)
	}
	return w == 1, nil
}

// chunk reads a counted array of segments and appends them to store. The chunk that it
// returns is a part of store with no spare capacity.
func (c *cursor) chunk(store []Segment, what string, r *Rules) (WriteChunk, []Segment, error) {
	at := c.at
	b, err := c.octets(4, what)
	if err != nil {
		return nil, store, err
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(r.MaxSegments()) {
		return nil, store, Errorf(FaultChunk, "%s at octet %d has %d segments, expected at most %d", what, at, n, r.MaxSegments())
	}
	if uint64(n) > uint64(c.left())/segmentLen {
		return nil, store, Errorf(FaultChunk, "%s at octet %d has %d segments, and %d octets are left for them", what, at, n, c.left())
	}
	first := len(store)
	for i := range int(n) {
		s := parseSegment(c.b[c.at:])
		if s.wraps() {
			return nil, store, Errorf(FaultChunk, "%s at octet %d: segment %d, %d octets from offset %#x, goes beyond the last one", what, at, i, s.Length, s.Offset)
		}
		c.at += segmentLen
		store = append(store, s)
	}
	return WriteChunk(store[first:len(store):len(store)]), store, nil
}
