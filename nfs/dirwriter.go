// This file holds the writer of listings, which counts octets as the limits of
// READDIR and READDIRPLUS do (RFC 1813 §3.3.16, §3.3.17).

package nfs

import "github.com/weft-rdma/weft/oncrpc"

// A DirWriter encodes the results of READDIR or READDIRPLUS, as many entries as
// the arguments allow.
type DirWriter struct {
	e     oncrpc.Encoder
	plus  bool
	left  int // octets for entries by count or maxcount
	names int // octets for names, cookies and ids by dircount
	n     int // entries
}

// listingEnd is the octets behind the entries: that there are no more, and
// whether that was the end of the directory.
const listingEnd = 4 + 4

// NewReaddir begins the results of READDIR, behind what e holds, with count as
// in the arguments. E has room for [Proc.MaxResults] and the count, best.
func NewReaddir(e oncrpc.Encoder, dir *PostOpAttr, verf Verifier, count uint32) *DirWriter {
	return newDirWriter(e, false, dir, verf, count, count)
}

// NewReaddirplus begins the results of READDIRPLUS. Dircount limits names,
// cookies and ids with their XDR overhead, and lets one entry pass always.
func NewReaddirplus(e oncrpc.Encoder, dir *PostOpAttr, verf Verifier, dircount, maxcount uint32) *DirWriter {
	return newDirWriter(e, true, dir, verf, dircount, maxcount)
}

func newDirWriter(e oncrpc.Encoder, plus bool, dir *PostOpAttr, verf Verifier, names, count uint32) *DirWriter {
	w := &DirWriter{e: e, plus: plus, names: int(min(names, MaxListing)), left: int(min(count, MaxListing))}
	head := Listing{DirAttr: *dir, Verf: verf}
	before := w.e.Pos()
	head.head(encoderTo(&w.e))
	w.left -= w.e.Pos() - before - 4 + listingEnd // the counts do not count the status
	return w
}

// Add adds the entry, or reports that it does not fit. Nothing can be added after that.
// For a Name, Attr or Object beyond its limit see Finish.
func (w *DirWriter) Add(n *Entry) bool {
	if !w.takes(n) {
		w.left = -1
		return false
	}
	before, c := w.e.Pos(), encoderTo(&w.e)
	c.more(true)
	n.name(c)
	w.names -= w.e.Pos() - before
	if w.plus {
		n.file(c)
	}
	w.left -= w.e.Pos() - before
	w.n++
	return true
}

// takes reports whether n fits. It is measured only where the longest entry with its
// name would not fit.
func (w *DirWriter) takes(n *Entry) bool {
	if most := longestEntry + len(n.Name); most <= w.left && most <= w.names {
		return true
	}
	name, size := n.len(w.plus)
	return size <= w.left && (!w.plus || name <= w.names || w.n == 0)
}

// Len is how many entries have been added. If not even one had room, the answer
// is NFS3ERR_TOOSMALL instead.
func (w *DirWriter) Len() int { return w.n }

// Fits reports whether the counts have room for the frame around the entries.
func (w *DirWriter) Fits() bool { return w.left >= 0 || w.n > 0 }

// Finish returns what the Encoder was given with the results behind it. EOF says
// that the directory ends behind the last entry.
func (w *DirWriter) Finish(eof bool) ([]byte, error) {
	w.e.Optional(false)
	w.e.Bool(eof)
	return w.e.Finish()
}
