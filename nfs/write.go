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

func decodeStable(d *oncrpc.Decoder) StableHow {
	at := d.Pos()
	s := StableHow(d.Uint32())
	if s > FileSync {
		d.Fail(at, "%v, want 0 to 2", s)
	}
	return s
}

// A Verifier is eight octets that its maker compares and nobody else looks into
// (writeverf3, createverf3, cookieverf3).
type Verifier [8]byte

func (v *Verifier) encode(e *oncrpc.Encoder) { e.Fixed(v[:]) }

func (v *Verifier) decode(d *oncrpc.Decoder) {
	*v = Verifier{}
	copy(v[:], d.Fixed(len(v)))
}

// WriteArgs are the arguments of WRITE.
type WriteArgs struct {
	File   FH
	Offset uint64 // in octets, as Count
	Count  uint32 // octets to write
	Stable StableHow
	Data   []byte // Count octets, at most MaxData
}

// Encode appends a to e.
func (a *WriteArgs) Encode(e *oncrpc.Encoder) {
	a.EncodeHead(e)
	e.Fixed(a.Data)
}

// EncodeHead appends to e what comes before the octets of Data, which its caller
// sends from where they are, with their roundup behind.
func (a *WriteArgs) EncodeHead(e *oncrpc.Encoder) {
	a.File.Encode(e)
	e.Uint64(a.Offset)
	e.Uint32(a.Count)
	e.Uint32(uint32(a.Stable))
	e.Length(len(a.Data), MaxData)
}

// Decode reads a from d. A count that contradicts the data fails: RFC 1813 has
// them agree, and leaves open what happens if they do not.
func (a *WriteArgs) Decode(d *oncrpc.Decoder) {
	a.File.Decode(d)
	a.Offset = d.Uint64()
	at := d.Pos()
	a.Count = d.Uint32()
	a.Stable = decodeStable(d)
	a.Data = d.Opaque(MaxData)
	if d.Err() == nil && int64(len(a.Data)) != int64(a.Count) {
		d.Fail(at, "count %d, with %d octets of data", a.Count, len(a.Data))
	}
}

// WriteRes are the results of WRITE.
type WriteRes struct {
	Stat      Stat
	Wcc       WccData
	Count     uint32    // octets written; if OK, as what follows
	Committed StableHow // at least what was asked for
	Verf      Verifier  // of this run of the server
}

// Encode appends r to e.
func (r *WriteRes) Encode(e *oncrpc.Encoder) {
	e.Uint32(uint32(r.Stat))
	r.Wcc.Encode(e)
	if r.Stat == OK {
		e.Uint32(r.Count)
		e.Uint32(uint32(r.Committed))
		r.Verf.encode(e)
	}
}

// Decode reads r from d.
func (r *WriteRes) Decode(d *oncrpc.Decoder) {
	*r = WriteRes{Stat: Stat(d.Uint32())}
	r.Wcc.Decode(d)
	if r.Stat == OK {
		r.Count = d.Uint32()
		r.Committed = decodeStable(d)
		r.Verf.decode(d)
	}
}

// CommitArgs are the arguments of COMMIT.
type CommitArgs struct {
	File   FH
	Offset uint64 // in octets, as Count
	Count  uint32 // 0: up to the end of the file
}

// Encode appends a to e.
func (a *CommitArgs) Encode(e *oncrpc.Encoder) {
	a.File.Encode(e)
	e.Uint64(a.Offset)
	e.Uint32(a.Count)
}

// Decode reads a from d.
func (a *CommitArgs) Decode(d *oncrpc.Decoder) {
	a.File.Decode(d)
	a.Offset = d.Uint64()
	a.Count = d.Uint32()
}

// CommitRes are the results of COMMIT.
type CommitRes struct {
	Stat Stat
	Wcc  WccData
	Verf Verifier // if OK; another one than a WRITE's says that its data may be lost
}

// Encode appends r to e.
func (r *CommitRes) Encode(e *oncrpc.Encoder) {
	e.Uint32(uint32(r.Stat))
	r.Wcc.Encode(e)
	if r.Stat == OK {
		r.Verf.encode(e)
	}
}

// Decode reads r from d.
func (r *CommitRes) Decode(d *oncrpc.Decoder) {
	*r = CommitRes{Stat: Stat(d.Uint32())}
	r.Wcc.Decode(d)
	if r.Stat == OK {
		r.Verf.decode(d)
	}
}
