// This file holds WRITE and COMMIT (RFC 1813 §3.3.7, §3.3.21).

package nfs

import (
	"fmt"

	"github.com/weft-rdma/weft/oncrpc"
)

// A StableHow says what is on stable storage when WRITE returns (stable_how).
type StableHow uint32

const (
	Unstable StableHow = 0 // possibly nothing
	DataSync StableHow = 1 // the data, and what it takes to find them
	FileSync StableHow = 2 // data and all attributes
)

func (s StableHow) String() string {
	switch s {
	case Unstable:
		return "UNSTABLE"
	case DataSync:
		return "DATA_SYNC"
	case FileSync:
		return "FILE_SYNC"
	}
	return fmt.Sprintf("stable_how %d", uint32(s))
}

func (s *StableHow) fields(c *coder) {
	c.uint32((*uint32)(s))
	if *s > FileSync {
		c.refuse(4, "%v, expected 0 to 2", *s)
	}
}

// A Verifier is eight opaque octets, which only the side that made them interprets
// (writeverf3, createverf3, cookieverf3).
type Verifier [8]byte

func (v *Verifier) fields(c *coder) { c.fixed(v[:]) }

// WriteArgs are the arguments of WRITE.
type WriteArgs struct {
	File   FH
	Offset uint64 // in octets, as Count
	Count  uint32 // octets to write
	Stable StableHow
	Data   []byte // Count octets, at most MaxData
}

func (a *WriteArgs) fields(c *coder) {
	a.File.fields(c)
	c.uint64(&a.Offset)
	c.uint32(&a.Count)
	a.Stable.fields(c)
	c.data(&a.Data, a.Count)
}

// Encode appends a to e.
func (a *WriteArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// EncodeHead appends to e what comes before the octets of Data. The caller sends
// those from where they are, and their roundup behind them.
func (a *WriteArgs) EncodeHead(e *oncrpc.Encoder) {
	a.fields(&coder{mode: encoding, e: e, headOnly: true, count: len(a.Data)})
}

// Decode reads a from d. It fails where Count is not the length of Data: RFC 1813
// has them agree, and leaves open what happens if they do not.
func (a *WriteArgs) Decode(d *oncrpc.Decoder) {
	*a = WriteArgs{}
	a.fields(decoderFrom(d))
}

// WriteRes are the results of WRITE.
type WriteRes struct {
	Stat      Stat
	Wcc       WccData
	Count     uint32    // octets written; if OK, as what follows
	Committed StableHow // at least what was asked for
	Verf      Verifier  // of this run of the server
}

func (r *WriteRes) fields(c *coder) {
	ok := c.stat(&r.Stat)
	r.Wcc.fields(c)
	if ok {
		c.uint32(&r.Count)
		r.Committed.fields(c)
		r.Verf.fields(c)
	}
}

// Encode appends r to e.
func (r *WriteRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d.
func (r *WriteRes) Decode(d *oncrpc.Decoder) {
	*r = WriteRes{}
	r.fields(decoderFrom(d))
}

// CommitArgs are the arguments of COMMIT.
type CommitArgs struct {
	File   FH
	Offset uint64 // in octets, as Count
	Count  uint32 // 0: up to the end of the file
}

func (a *CommitArgs) fields(c *coder) {
	a.File.fields(c)
	c.uint64(&a.Offset)
	c.uint32(&a.Count)
}

// Encode appends a to e.
func (a *CommitArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *CommitArgs) Decode(d *oncrpc.Decoder) {
	*a = CommitArgs{}
	a.fields(decoderFrom(d))
}

// CommitRes are the results of COMMIT.
type CommitRes struct {
	Stat Stat
	Wcc  WccData
	Verf Verifier // if OK; another one than a WRITE's says that its data may be lost
}

func (r *CommitRes) fields(c *coder) {
	ok := c.stat(&r.Stat)
	r.Wcc.fields(c)
	if ok {
		r.Verf.fields(c)
	}
}

// Encode appends r to e.
func (r *CommitRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d.
func (r *CommitRes) Decode(d *oncrpc.Decoder) {
	*r = CommitRes{}
	r.fields(decoderFrom(d))
}
