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

func (a *ReaddirArgs) fields(c *coder) {
	a.Dir.fields(c)
	c.uint64(&a.Cookie)
	a.Verf.fields(c)
	c.uint32(&a.Count)
}

// Encode appends a to e.
func (a *ReaddirArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *ReaddirArgs) Decode(d *oncrpc.Decoder) {
	*a = ReaddirArgs{}
	a.fields(decoderFrom(d))
}

// Walk has w go through the arguments.
func (a *ReaddirArgs) Walk(w Walker) { a.fields(walkerBy(w)) }

// ReaddirplusArgs are the arguments of READDIRPLUS.
type ReaddirplusArgs struct {
	Dir      FH
	Cookie   uint64   // 0: from the start, else of the last entry seen
	Verf     Verifier // zeros with cookie 0, else what came with the last entry
	DirCount uint32   // the most octets of names, cookies and file ids
	MaxCount uint32   // the most octets of the results, without their status
}

func (a *ReaddirplusArgs) fields(c *coder) {
	a.Dir.fields(c)
	c.uint64(&a.Cookie)
	a.Verf.fields(c)
	c.uint32(&a.DirCount)
	c.uint32(&a.MaxCount)
}

// Encode appends a to e.
func (a *ReaddirplusArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *ReaddirplusArgs) Decode(d *oncrpc.Decoder) {
	*a = ReaddirplusArgs{}
	a.fields(decoderFrom(d))
}

// Walk has w go through the arguments.
func (a *ReaddirplusArgs) Walk(w Walker) { a.fields(walkerBy(w)) }

// An Entry is a file in a directory (entry3, entryplus3).
type Entry struct {
	FileID uint64
	Name   string
	Cookie uint64     // where the listing goes on
	Attr   PostOpAttr // of READDIRPLUS, as Object
	Object PostOpFH
}

func (n *Entry) fields(c *coder, plus bool) {
	n.name(c)
	if plus {
		n.file(c)
	}
}

// name is what READDIR returns, and what counts against dircount.
func (n *Entry) name(c *coder) {
	c.uint64(&n.FileID)
	c.string(&n.Name, MaxName)
	c.uint64(&n.Cookie)
}

// file is what READDIRPLUS adds.
func (n *Entry) file(c *coder) {
	n.Attr.fields(c)
	n.Object.fields(c)
}

// longestEntry is the most octets of an entry with the word before it, without its name.
var longestEntry = func() int {
	c := coder{mode: bounding}
	c.more(true)
	new(Entry).fields(&c, true)
	return c.n - MaxName + 3 // the name's roundup
}()

// len returns the octets of an entry with the word before it: those that count
// against dircount, and all.
func (n *Entry) len(plus bool) (name, all int) {
	c := coder{mode: measuring}
	c.more(true)
	n.name(&c)
	name = c.n
	if plus {
		n.file(&c)
	}
	return name, c.n
}

// A ReaddirRes is the results of READDIR.
type ReaddirRes struct{ Listing }

func (r *ReaddirRes) fields(c *coder) { r.Listing.fields(c, false) }

// Encode appends r to e.
func (r *ReaddirRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d. It keeps the memory of Entries.
func (r *ReaddirRes) Decode(d *oncrpc.Decoder) { r.decode(d, false) }

// A ReaddirplusRes is the results of READDIRPLUS.
type ReaddirplusRes struct{ Listing }

func (r *ReaddirplusRes) fields(c *coder) { r.Listing.fields(c, true) }

// Encode appends r to e.
func (r *ReaddirplusRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d. It keeps the memory of Entries.
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

func (r *Listing) fields(c *coder, plus bool) {
	if !r.head(c) {
		return
	}
	for i := 0; c.more(i < len(r.Entries)); i++ {
		if c.mode == decoding {
			r.Entries = append(r.Entries, Entry{})
		}
		r.Entries[i].fields(c, plus)
	}
	c.bool(&r.EOF)
}

// head goes through what is before the entries, and reports whether there can be
// any.
func (r *Listing) head(c *coder) bool {
	ok := c.stat(&r.Stat)
	r.DirAttr.fields(c)
	if ok {
		r.Verf.fields(c)
	}
	return ok
}

func (r *Listing) decode(d *oncrpc.Decoder, plus bool) {
	*r = Listing{Entries: r.Entries[:0]}
	r.fields(decoderFrom(d), plus)
	if d.Err() != nil {
		r.Entries = nil
	}
}
