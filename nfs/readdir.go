// This file holds the procedures that list directories: READDIR and READDIRPLUS
// (RFC 1813 §3.3.16, §3.3.17).

package nfs

import "github.com/weft-rdma/weft/oncrpc"

// MaxListing limits the octets that READDIR or READDIRPLUS return in one reply.
const MaxListing = 1 << 20

// ReaddirArgs are the arguments of READDIR.
type ReaddirArgs struct {
	Dir    FH
	Cookie uint64   // 0: from the start, else of the last entry seen
	Verf   Verifier // zeros with cookie 0, else what came with the last entry
	Count  uint32   // the most octets of the results, without their status
}

// Encode appends a to e.
func (a *ReaddirArgs) Encode(e *oncrpc.Encoder) {
	a.Dir.Encode(e)
	e.Uint64(a.Cookie)
	a.Verf.encode(e)
	e.Uint32(a.Count)
}

// Decode reads a from d.
func (a *ReaddirArgs) Decode(d *oncrpc.Decoder) {
	a.Dir.Decode(d)
	a.Cookie = d.Uint64()
	a.Verf.decode(d)
	a.Count = d.Uint32()
}

// ReaddirplusArgs are the arguments of READDIRPLUS.
type ReaddirplusArgs struct {
	Dir      FH
	Cookie   uint64   // 0: from the start, else of the last entry seen
	Verf     Verifier // zeros with cookie 0, else what came with the last entry
	DirCount uint32   // the most octets of names, cookies and file ids
	MaxCount uint32   // the most octets of the results, without their status
}

// Encode appends a to e.
func (a *ReaddirplusArgs) Encode(e *oncrpc.Encoder) {
	a.Dir.Encode(e)
	e.Uint64(a.Cookie)
	a.Verf.encode(e)
	e.Uint32(a.DirCount)
	e.Uint32(a.MaxCount)
}

// Decode reads a from d.
func (a *ReaddirplusArgs) Decode(d *oncrpc.Decoder) {
	a.Dir.Decode(d)
	a.Cookie = d.Uint64()
	a.Verf.decode(d)
	a.DirCount = d.Uint32()
	a.MaxCount = d.Uint32()
}

// An Entry is a file in a directory (entry3, entryplus3).
type Entry struct {
	FileID uint64
	Name   string
	Cookie uint64     // where the listing goes on
	Attr   PostOpAttr // of READDIRPLUS, as Object
	Object PostOpFH
}

// len is the octets of an entry of READDIR with the word before it: what of
// READDIRPLUS counts against dircount.
func (n *Entry) len() int { return 4 + 8 + 4 + oncrpc.RoundUp(len(n.Name)) + 8 }

// plusLen is the octets of an entry of READDIRPLUS with the word before it.
func (n *Entry) plusLen() int {
	l := n.len() + 4 + 4
	if n.Attr.Follows {
		l += fattrLen
	}
	if n.Object.Follows {
		l += 4 + oncrpc.RoundUp(len(n.Object.FH))
	}
	return l
}

func (n *Entry) encode(e *oncrpc.Encoder, plus bool) {
	e.Uint64(n.FileID)
	e.String(n.Name, MaxName)
	e.Uint64(n.Cookie)
	if plus {
		n.Attr.Encode(e)
		n.Object.Encode(e)
	}
}

func (n *Entry) decode(d *oncrpc.Decoder, plus bool) {
	n.FileID = d.Uint64()
	n.Name = d.String(MaxName)
	n.Cookie = d.Uint64()
	if plus {
		n.Attr.Decode(d)
		n.Object.Decode(d)
	}
}

// A ReaddirRes is the results of READDIR.
type ReaddirRes struct{ Listing }

// Encode appends r to e.
func (r *ReaddirRes) Encode(e *oncrpc.Encoder) { r.encode(e, false) }

// Decode reads r from d.
func (r *ReaddirRes) Decode(d *oncrpc.Decoder) { r.decode(d, false) }

// A ReaddirplusRes is the results of READDIRPLUS.
type ReaddirplusRes struct{ Listing }

// Encode appends r to e.
func (r *ReaddirplusRes) Encode(e *oncrpc.Encoder) { r.encode(e, true) }

// Decode reads r from d.
func (r *ReaddirplusRes) Decode(d *oncrpc.Decoder) { r.decode(d, true) }

// A Listing is a part of a directory. Servers make one by a [DirWriter], which
// keeps to the counts of the arguments.
type Listing struct {
	Stat    Stat
	DirAttr PostOpAttr
	Verf    Verifier // if OK, as what follows
	Entries []Entry
	EOF     bool // the directory ends behind them
}

func (r *Listing) encode(e *oncrpc.Encoder, plus bool) {
	r.encodeHead(e)
	if r.Stat != OK {
		return
	}
	for i := range r.Entries {
		e.Optional(true)
		r.Entries[i].encode(e, plus)
	}
	e.Optional(false)
	e.Bool(r.EOF)
}

// encodeHead encodes what is before the entries.
func (r *Listing) encodeHead(e *oncrpc.Encoder) {
	e.Uint32(uint32(r.Stat))
	r.DirAttr.Encode(e)
	if r.Stat == OK {
		r.Verf.encode(e)
	}
}

// decode keeps the memory of Entries.
func (r *Listing) decode(d *oncrpc.Decoder, plus bool) {
	*r = Listing{Stat: Stat(d.Uint32()), Entries: r.Entries[:0]}
	r.DirAttr.Decode(d)
	if r.Stat != OK {
		return
	}
	r.Verf.decode(d)
	for d.Optional() {
		r.Entries = append(r.Entries, Entry{})
		r.Entries[len(r.Entries)-1].decode(d, plus)
	}
	r.EOF = d.Bool()
	if d.Err() != nil {
		r.Entries = nil
	}
}
