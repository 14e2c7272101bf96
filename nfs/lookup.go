// This file holds the procedures that look at names and rights: LOOKUP, ACCESS
// and READLINK (RFC 1813 §3.3.3 to §3.3.5).

package nfs

import "github.com/weft-rdma/weft/oncrpc"

// LookupRes are the results of LOOKUP, whose arguments are DirOpArgs.
type LookupRes struct {
	Stat    Stat
	Object  FH         // if OK
	Attr    PostOpAttr // of the object, if OK
	DirAttr PostOpAttr
}

func (r *LookupRes) fields(c *coder) {
	if c.stat(&r.Stat) {
		r.Object.fields(c)
		r.Attr.fields(c)
	}
	r.DirAttr.fields(c)
}

// Encode appends r to e.
func (r *LookupRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d.
func (r *LookupRes) Decode(d *oncrpc.Decoder) {
	*r = LookupRes{}
	r.fields(decoderFrom(d))
}

// An Access is a set of rights (ACCESS3_READ and so on).
type Access uint32

const (
	AccessRead    Access = 0x01 // read data, or a directory
	AccessLookup  Access = 0x02 // look up a name in a directory
	AccessModify  Access = 0x04 // change data or entries that there are
	AccessExtend  Access = 0x08 // write new data or entries
	AccessDelete  Access = 0x10 // delete an entry of a directory
	AccessExecute Access = 0x20 // execute a file
)

// AccessArgs are the arguments of ACCESS.
type AccessArgs struct {
	Object FH
	Access Access // the rights asked about
}

func (a *AccessArgs) fields(c *coder) {
	a.Object.fields(c)
	c.uint32((*uint32)(&a.Access))
}

// Encode appends a to e.
func (a *AccessArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *AccessArgs) Decode(d *oncrpc.Decoder) {
	*a = AccessArgs{}
	a.fields(decoderFrom(d))
}

// AccessRes are the results of ACCESS.
type AccessRes struct {
	Stat   Stat
	Attr   PostOpAttr
	Access Access // the rights there are, if OK
}

func (r *AccessRes) fields(c *coder) {
	ok := c.stat(&r.Stat)
	r.Attr.fields(c)
	if ok {
		c.uint32((*uint32)(&r.Access))
	}
}

// Encode appends r to e.
func (r *AccessRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d.
func (r *AccessRes) Decode(d *oncrpc.Decoder) {
	*r = AccessRes{}
	r.fields(decoderFrom(d))
}

// ReadlinkArgs are the arguments of READLINK.
type ReadlinkArgs struct{ Symlink FH }

func (a *ReadlinkArgs) fields(c *coder) {
	a.Symlink.fields(c)
}

// Encode appends a to e.
func (a *ReadlinkArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *ReadlinkArgs) Decode(d *oncrpc.Decoder) {
	*a = ReadlinkArgs{}
	a.fields(decoderFrom(d))
}

// ReadlinkRes are the results of READLINK.
type ReadlinkRes struct {
	Stat Stat
	Attr PostOpAttr
	Path string // if OK; at most MaxPath octets
}

func (r *ReadlinkRes) fields(c *coder) {
	ok := c.stat(&r.Stat)
	r.Attr.fields(c)
	if ok {
		c.path(&r.Path)
	}
}

// Encode appends r to e.
func (r *ReadlinkRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d.
func (r *ReadlinkRes) Decode(d *oncrpc.Decoder) {
	*r = ReadlinkRes{}
	r.fields(decoderFrom(d))
}

// Walk has w go through the results.
func (r *ReadlinkRes) Walk(w Walker) { r.fields(walkerBy(w)) }
