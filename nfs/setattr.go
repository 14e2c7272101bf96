// This file holds GETATTR and SETATTR, and the attributes that can be set (RFC
// 1813 §2.5, §3.3.1, §3.3.2).

package nfs

import (
	"fmt"

	"github.com/weft-rdma/weft/oncrpc"
)

// A TimeHow says how a time is to be set (time_how).
type TimeHow uint32

const (
	DontChange      TimeHow = 0
	SetToServerTime TimeHow = 1 // to the server's clock
	SetToClientTime TimeHow = 2 // to a time that follows
)

func (h TimeHow) String() string {
	switch h {
	case DontChange:
		return "DONT_CHANGE"
	case SetToServerTime:
		return "SET_TO_SERVER_TIME"
	case SetToClientTime:
		return "SET_TO_CLIENT_TIME"
	}
	return fmt.Sprintf("time_how %d", uint32(h))
}

// A SetUint32 is a value to set, or none (set_mode3, set_uid3, set_gid3).
type SetUint32 struct {
	Set   bool
	Value uint32
}

func (s SetUint32) encode(e *oncrpc.Encoder) {
	e.Optional(s.Set)
	if s.Set {
		e.Uint32(s.Value)
	}
}

func (s *SetUint32) decode(d *oncrpc.Decoder) {
	*s = SetUint32{Set: d.Optional()}
	if s.Set {
		s.Value = d.Uint32()
	}
}

// A SetUint64 is a value to set, or none (set_size3).
type SetUint64 struct {
	Set   bool
	Value uint64
}

func (s SetUint64) encode(e *oncrpc.Encoder) {
	e.Optional(s.Set)
	if s.Set {
		e.Uint64(s.Value)
	}
}

func (s *SetUint64) decode(d *oncrpc.Decoder) {
	*s = SetUint64{Set: d.Optional()}
	if s.Set {
		s.Value = d.Uint64()
	}
}

// A SetTime is a time to set (set_atime, set_mtime).
type SetTime struct {
	How  TimeHow
	Time Time // of SetToClientTime
}

func (s SetTime) encode(e *oncrpc.Encoder) {
	e.Uint32(uint32(s.How))
	switch s.How {
	case DontChange, SetToServerTime:
	case SetToClientTime:
		s.Time.Encode(e)
	default:
		e.Fail("%v, want 0 to 2", s.How)
	}
}

func (s *SetTime) decode(d *oncrpc.Decoder) {
	at := d.Pos()
	*s = SetTime{How: TimeHow(d.Uint32())}
	switch s.How {
	case DontChange, SetToServerTime:
	case SetToClientTime:
		s.Time.Decode(d)
	default:
		d.Fail(at, "%v, want 0 to 2", s.How)
	}
}

// A SetAttributes says which attributes to set, and to what (sattr3). The zero
// value sets none. It has 24 to 60 octets.
type SetAttributes struct {
	Mode         SetUint32
	UID, GID     SetUint32
	Size         SetUint64
	Atime, Mtime SetTime
}

// Encode appends s to e.
func (s *SetAttributes) Encode(e *oncrpc.Encoder) {
	s.Mode.encode(e)
	s.UID.encode(e)
	s.GID.encode(e)
	s.Size.encode(e)
	s.Atime.encode(e)
	s.Mtime.encode(e)
}

// Decode reads s from d.
func (s *SetAttributes) Decode(d *oncrpc.Decoder) {
	s.Mode.decode(d)
	s.UID.decode(d)
	s.GID.decode(d)
	s.Size.decode(d)
	s.Atime.decode(d)
	s.Mtime.decode(d)
}

// GetattrArgs are the arguments of GETATTR.
type GetattrArgs struct{ Object FH }

// Encode appends a to e.
func (a *GetattrArgs) Encode(e *oncrpc.Encoder) { a.Object.Encode(e) }

// Decode reads a from d.
func (a *GetattrArgs) Decode(d *oncrpc.Decoder) { a.Object.Decode(d) }

// GetattrRes are the results of GETATTR.
type GetattrRes struct {
	Stat Stat
	Attr Attributes // if OK
}

// Encode appends r to e.
func (r *GetattrRes) Encode(e *oncrpc.Encoder) {
	e.Uint32(uint32(r.Stat))
	if r.Stat == OK {
		r.Attr.Encode(e)
	}
}

// Decode reads r from d.
func (r *GetattrRes) Decode(d *oncrpc.Decoder) {
	*r = GetattrRes{Stat: Stat(d.Uint32())}
	if r.Stat == OK {
		r.Attr.Decode(d)
	}
}

// SetattrArgs are the arguments of SETATTR.
type SetattrArgs struct {
	Object FH
	New    SetAttributes
	Guard  SetattrGuard
}

// A SetattrGuard makes SETATTR fail with NFS3ERR_NOT_SYNC unless the file's ctime
// is the given one (sattrguard3).
type SetattrGuard struct {
	Check bool
	Ctime Time
}

// Encode appends a to e.
func (a *SetattrArgs) Encode(e *oncrpc.Encoder) {
	a.Object.Encode(e)
	a.New.Encode(e)
	e.Optional(a.Guard.Check)
	if a.Guard.Check {
		a.Guard.Ctime.Encode(e)
	}
}

// Decode reads a from d.
func (a *SetattrArgs) Decode(d *oncrpc.Decoder) {
	a.Object.Decode(d)
	a.New.Decode(d)
	a.Guard = SetattrGuard{Check: d.Optional()}
	if a.Guard.Check {
		a.Guard.Ctime.Decode(d)
	}
}

// A WccRes is the results of SETATTR, of the file, and of REMOVE and RMDIR, of
// the directory.
type WccRes struct {
	Stat Stat
	Wcc  WccData
}

// Encode appends r to e.
func (r *WccRes) Encode(e *oncrpc.Encoder) {
	e.Uint32(uint32(r.Stat))
	r.Wcc.Encode(e)
}

// Decode reads r from d.
func (r *WccRes) Decode(d *oncrpc.Decoder) {
	r.Stat = Stat(d.Uint32())
	r.Wcc.Decode(d)
}
