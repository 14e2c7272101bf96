// This file holds what names files: handles, and names in directories (RFC 1813
// §2.3.3, §2.5, §3.2).

package nfs

import (
	"encoding/hex"

	"github.com/weft-rdma/weft/oncrpc"
)

// Limits of handles, names and paths in octets.
const (
	// MaxFH limits a file handle (NFS3_FHSIZE).
	MaxFH = 64

	// MaxName and MaxPath limit names and symbolic links in messages. RFC 1813 sets no
	// limit. A server returns its own, lower one by PATHCONF, and refuses longer names
	// with NFS3ERR_NAMETOOLONG.
	MaxName = 4096
	MaxPath = 4096
)

// An FH is a file handle (nfs_fh3): at most [MaxFH] octets that mean something to
// its server alone. A decoded one is part of the message.
type FH []byte

// String is the handle in hexadecimal digits.
func (h FH) String() string { return hex.EncodeToString(h) }

func (h *FH) fields(c *coder) {
	c.opaque((*[]byte)(h), MaxFH)
}

// Encode appends h to e.
func (h FH) Encode(e *oncrpc.Encoder) { h.fields(encoderTo(e)) }

// Decode reads h from d.
func (h *FH) Decode(d *oncrpc.Decoder) {
	*h = nil
	h.fields(decoderFrom(d))
}

// A PostOpFH is a handle that a server may return, or not (post_op_fh3).
type PostOpFH struct {
	Follows bool // there is one (handle_follows)
	FH      FH
}

func (p *PostOpFH) fields(c *coder) {
	if c.optional(&p.Follows) {
		p.FH.fields(c)
	}
}

// Encode appends p to e.
func (p *PostOpFH) Encode(e *oncrpc.Encoder) { p.fields(encoderTo(e)) }

// Decode reads p from d.
func (p *PostOpFH) Decode(d *oncrpc.Decoder) {
	*p = PostOpFH{}
	p.fields(decoderFrom(d))
}

// DirOpArgs names a file in a directory (diropargs3). They are the arguments of
// LOOKUP, REMOVE and RMDIR. What Decode takes for a name may be empty, "." or
// "..", and hold any octet; what a server makes of that is its business.
type DirOpArgs struct {
	Dir  FH
	Name string // at most MaxName octets
}

func (a *DirOpArgs) fields(c *coder) {
	a.Dir.fields(c)
	c.string(&a.Name, MaxName)
}

// Encode appends a to e.
func (a *DirOpArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *DirOpArgs) Decode(d *oncrpc.Decoder) {
	*a = DirOpArgs{}
	a.fields(decoderFrom(d))
}
