// This file holds the procedures that make files: CREATE, MKDIR, SYMLINK and
// MKNOD (RFC 1813 §3.3.8 to §3.3.11).

package nfs

import (
	"fmt"

	"github.com/weft-rdma/weft/oncrpc"
)

// A CreateMode says what CREATE does about a file that is there already
// (createmode3).
type CreateMode uint32

const (
	Unchecked CreateMode = 0 // it is taken; a size of 0 that is set truncates it
	Guarded   CreateMode = 1 // NFS3ERR_EXIST
	Exclusive CreateMode = 2 // NFS3ERR_EXIST, unless it was made with the same verifier
)

func (m CreateMode) String() string {
	switch m {
	case Unchecked:
		return "UNCHECKED"
	case Guarded:
		return "GUARDED"
	case Exclusive:
		return "EXCLUSIVE"
	}
	return fmt.Sprintf("createmode3 %d", uint32(m))
}

// CreateArgs are the arguments of CREATE.
type CreateArgs struct {
	Where DirOpArgs
	Mode  CreateMode
	Attr  SetAttributes // of Unchecked and Guarded
	Verf  Verifier      // of Exclusive
}

func (a *CreateArgs) fields(c *coder) {
	a.Where.fields(c)
	c.uint32((*uint32)(&a.Mode))
	switch a.Mode {
	case Unchecked, Guarded:
		a.Attr.fields(c)
	case Exclusive:
		a.Verf.fields(c)
	default:
		c.fail("%v, expected 0 to 2", a.Mode)
	}
}

// Encode appends a to e.
func (a *CreateArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *CreateArgs) Decode(d *oncrpc.Decoder) {
	*a = CreateArgs{}
	a.fields(decoderFrom(d))
}

// CreateRes are the results of CREATE, MKDIR, SYMLINK and MKNOD.
type CreateRes struct {
	Stat   Stat
	Object PostOpFH   // if OK
	Attr   PostOpAttr // of the object, if OK
	DirWcc WccData
}

func (r *CreateRes) fields(c *coder) {
	if c.stat(&r.Stat) {
		r.Object.fields(c)
		r.Attr.fields(c)
	}
	r.DirWcc.fields(c)
}

// Encode appends r to e.
func (r *CreateRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d.
func (r *CreateRes) Decode(d *oncrpc.Decoder) {
	*r = CreateRes{}
	r.fields(decoderFrom(d))
}

// MkdirArgs are the arguments of MKDIR.
type MkdirArgs struct {
	Where DirOpArgs
	Attr  SetAttributes
}

func (a *MkdirArgs) fields(c *coder) {
	a.Where.fields(c)
	a.Attr.fields(c)
}

// Encode appends a to e.
func (a *MkdirArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *MkdirArgs) Decode(d *oncrpc.Decoder) {
	*a = MkdirArgs{}
	a.fields(decoderFrom(d))
}

// SymlinkArgs are the arguments of SYMLINK.
type SymlinkArgs struct {
	Where DirOpArgs
	Attr  SetAttributes
	Path  string // what the link holds; at most MaxPath octets
}

func (a *SymlinkArgs) fields(c *coder) {
	a.Where.fields(c)
	a.Attr.fields(c)
	c.path(&a.Path)
}

// Encode appends a to e.
func (a *SymlinkArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *SymlinkArgs) Decode(d *oncrpc.Decoder) {
	*a = SymlinkArgs{}
	a.fields(decoderFrom(d))
}

// MknodArgs are the arguments of MKNOD.
type MknodArgs struct {
	Where DirOpArgs
	Type  FileType      // TypeChr, TypeBlk, TypeSock or TypeFifo; others say nothing more
	Attr  SetAttributes // of these
	Spec  Specdata      // of TypeChr and TypeBlk
}

func (a *MknodArgs) fields(c *coder) {
	a.Where.fields(c)
	a.Type.fields(c)
	switch a.Type {
	case TypeChr, TypeBlk:
		a.Attr.fields(c)
		a.Spec.fields(c)
	case TypeSock, TypeFifo:
		a.Attr.fields(c)
	}
}

// Encode appends a to e.
func (a *MknodArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *MknodArgs) Decode(d *oncrpc.Decoder) {
	*a = MknodArgs{}
	a.fields(decoderFrom(d))
}
