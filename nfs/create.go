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

// Encode appends a to e.
func (a *CreateArgs) Encode(e *oncrpc.Encoder) {
	a.Where.Encode(e)
	e.Uint32(uint32(a.Mode))
	switch a.Mode {
	case Unchecked, Guarded:
		a.Attr.Encode(e)
	case Exclusive:
		a.Verf.encode(e)
	default:
		e.Fail("%v, want 0 to 2", a.Mode)
	}
}

// Decode reads a from d.
func (a *CreateArgs) Decode(d *oncrpc.Decoder) {
	*a = CreateArgs{}
	a.Where.Decode(d)
	at := d.Pos()
	a.Mode = CreateMode(d.Uint32())
	switch a.Mode {
	case Unchecked, Guarded:
		a.Attr.Decode(d)
	case Exclusive:
		a.Verf.decode(d)
	default:
		d.Fail(at, "%v, want 0 to 2", a.Mode)
	}
}

// CreateRes are the results of CREATE, MKDIR, SYMLINK and MKNOD.
type CreateRes struct {
	Stat   Stat
	Object PostOpFH   // if OK
	Attr   PostOpAttr // of the object, if OK
	DirWcc WccData
}

// Encode appends r to e.
func (r *CreateRes) Encode(e *oncrpc.Encoder) {
	e.Uint32(uint32(r.Stat))
	if r.Stat == OK {
		r.Object.Encode(e)
		r.Attr.Encode(e)
	}
	r.DirWcc.Encode(e)
}

// Decode reads r from d.
func (r *CreateRes) Decode(d *oncrpc.Decoder) {
	*r = CreateRes{Stat: Stat(d.Uint32())}
	if r.Stat == OK {
		r.Object.Decode(d)
		r.Attr.Decode(d)
	}
	r.DirWcc.Decode(d)
}

// MkdirArgs are the arguments of MKDIR.
type MkdirArgs struct {
	Where DirOpArgs
	Attr  SetAttributes
}

// Encode appends a to e.
func (a *MkdirArgs) Encode(e *oncrpc.Encoder) {
	a.Where.Encode(e)
	a.Attr.Encode(e)
}

// Decode reads a from d.
func (a *MkdirArgs) Decode(d *oncrpc.Decoder) {
	a.Where.Decode(d)
	a.Attr.Decode(d)
}

// SymlinkArgs are the arguments of SYMLINK.
type SymlinkArgs struct {
	Where DirOpArgs
	Attr  SetAttributes
	Path  string // what the link holds; at most MaxPath octets
}

// Encode appends a to e.
func (a *SymlinkArgs) Encode(e *oncrpc.Encoder) {
	a.Where.Encode(e)
	a.Attr.Encode(e)
	e.String(a.Path, MaxPath)
}

// Decode reads a from d.
func (a *SymlinkArgs) Decode(d *oncrpc.Decoder) {
	a.Where.Decode(d)
	a.Attr.Decode(d)
	a.Path = d.String(MaxPath)
}

// MknodArgs are the arguments of MKNOD.
type MknodArgs struct {
	Where DirOpArgs
	Type  FileType      // TypeChr, TypeBlk, TypeSock or TypeFifo; others say nothing more
	Attr  SetAttributes // of these
	Spec  Specdata      // of TypeChr and TypeBlk
}

// Encode appends a to e.
func (a *MknodArgs) Encode(e *oncrpc.Encoder) {
	a.Where.Encode(e)
	e.Uint32(uint32(a.Type))
	switch a.Type {
	case TypeChr, TypeBlk:
		a.Attr.Encode(e)
		a.Spec.Encode(e)
	case TypeSock, TypeFifo:
		a.Attr.Encode(e)
	}
}

// Decode reads a from d.
func (a *MknodArgs) Decode(d *oncrpc.Decoder) {
	*a = MknodArgs{}
	a.Where.Decode(d)
	a.Type = decodeFileType(d)
	switch a.Type {
	case TypeChr, TypeBlk:
		a.Attr.Decode(d)
		a.Spec.Decode(d)
	case TypeSock, TypeFifo:
		a.Attr.Decode(d)
	}
}
