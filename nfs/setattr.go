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

func (s *SetUint32) fields(c *coder) {
	if c.optional(&s.Set) {
		c.uint32(&s.Value)
	}
}

// A SetUint64 is a value to set, or none (set_size3).
type SetUint64 struct {
	Set   bool
	Value uint64
}

func (s *SetUint64) fields(c *coder) {
	if c.optional(&s.Set) {
		c.uint64(&s.Value)
	}
}

// A SetTime is a time to set (set_atime, set_mtime).
type SetTime struct {
	How  TimeHow
	Time Time // of SetToClientTime
}

func (s *SetTime) fields(c *coder) {
	c.uint32((*uint32)(&s.How))
	switch s.How {
	case DontChange, SetToServerTime:
	case SetToClientTime:
		s.Time.fields(c)
	default:
		c.fail("%v, expected 0 to 2", s.How)
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

func (s *SetAttributes) fields(c *coder) {
	s.Mode.fields(c)
	s.UID.fields(c)
	s.GID.fields(c)
	s.Size.fields(c)
	s.Atime.fields(c)
	s.Mtime.fields(c)
}

// Encode appends s to e.
func (s *SetAttributes) Encode(e *oncrpc.Encoder) { s.fields(encoderTo(e)) }

// Decode reads s from d.
func (s *SetAttributes) Decode(d *oncrpc.Decoder) {
	*s = SetAttributes{}
	s.fields(decoderFrom(d))
}

// GetattrArgs are the arguments of GETATTR.
type GetattrArgs struct{ Object FH }

func (a *GetattrArgs) fields(c *coder) {
	a.Object.fields(c)
}

// Encode appends a to e.
func (a *GetattrArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *GetattrArgs) Decode(d *oncrpc.Decoder) {
	*a = GetattrArgs{}
	a.fields(decoderFrom(d))
}

// GetattrRes are the results of GETATTR.
type GetattrRes struct {
	Stat Stat
	Attr Attributes // if OK
}

func (r *GetattrRes) fields(c *coder) {
	if c.stat(&r.Stat) {
		r.Attr.fields(c)
	}
}

// Encode appends r to e.
func (r *GetattrRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d.
func (r *GetattrRes) Decode(d *oncrpc.Decoder) {
	*r = GetattrRes{}
	r.fields(decoderFrom(d))
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

func (a *SetattrArgs) fields(c *coder) {
	a.Object.fields(c)
	a.New.fields(c)
	if c.optional(&a.Guard.Check) {
		a.Guard.Ctime.fields(c)
	}
}

// Encode appends a to e.
func (a *SetattrArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *SetattrArgs) Decode(d *oncrpc.Decoder) {
	*a = SetattrArgs{}
	a.fields(decoderFrom(d))
}

// A WccRes is the results of SETATTR, of the file, and of REMOVE and RMDIR, of
// the directory.
type WccRes struct {
	Stat Stat
	Wcc  WccData
}

func (r *WccRes) fields(c *coder) {
	c.stat(&r.Stat)
	r.Wcc.fields(c)
}

// Encode appends r to e.
func (r *WccRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d.
func (r *WccRes) Decode(d *oncrpc.Decoder) {
	*r = WccRes{}
	r.fields(decoderFrom(d))
}
