// The procedures that describe file systems: FSSTAT, FSINFO and PATHCONF (RFC 1813 §3.3.18
// to §3.3.20).

package nfs

import "github.com/weft-rdma/weft/oncrpc"

// FsstatArgs, FsinfoArgs and PathconfArgs are the arguments of FSSTAT, FSINFO and
// PATHCONF: any file of the file system, the root, and a file.
type (
	FsstatArgs   = GetattrArgs
	FsinfoArgs   = GetattrArgs
	PathconfArgs = GetattrArgs
)

// FsstatRes are the results of FSSTAT.
type FsstatRes struct {
	Stat Stat
	Attr PostOpAttr

	TotalBytes, FreeBytes, AvailBytes uint64 // of the file system: all, free, and free for the caller; if OK, as what follows
	TotalFiles, FreeFiles, AvailFiles uint64 // the same of slots for files
	Invarsec                          uint32 // seconds for which this will not change
}

func (r *FsstatRes) fields(c *coder) {
	ok := c.stat(&r.Stat)
	r.Attr.fields(c)
	if !ok {
		return
	}
	c.uint64(&r.TotalBytes)
	c.uint64(&r.FreeBytes)
	c.uint64(&r.AvailBytes)
	c.uint64(&r.TotalFiles)
	c.uint64(&r.FreeFiles)
	c.uint64(&r.AvailFiles)
	c.uint32(&r.Invarsec)
}

// Encode appends r to e.
func (r *FsstatRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d.
func (r *FsstatRes) Decode(d *oncrpc.Decoder) {
	*r = FsstatRes{}
	r.fields(decoderFrom(d))
}

// Properties are what a file system can do (FSF3_LINK and so on).
type Properties uint32

const (
	PropLink        Properties = 0x01 // hard links
	PropSymlink     Properties = 0x02 // symbolic links
	PropHomogeneous Properties = 0x08 // PATHCONF is the same for all files
	PropCanSetTime  Properties = 0x10 // SETATTR can set times to TimeDelta
)

// FsinfoRes are the results of FSINFO. Sizes are in octets.
type FsinfoRes struct {
	Stat Stat
	Attr PostOpAttr

	ReadMax, ReadPref, ReadMult    uint32 // of a READ: at most, best, and a good multiple; if OK, as what follows
	WriteMax, WritePref, WriteMult uint32 // of a WRITE
	DirPref                        uint32 // of a READDIR, best
	MaxFileSize                    uint64
	TimeDelta                      Time // the resolution of times
	Properties                     Properties
}

func (r *FsinfoRes) fields(c *coder) {
	ok := c.stat(&r.Stat)
	r.Attr.fields(c)
	if !ok {
		return
	}
	c.uint32(&r.ReadMax)
	c.uint32(&r.ReadPref)
	c.uint32(&r.ReadMult)
	c.uint32(&r.WriteMax)
	c.uint32(&r.WritePref)
	c.uint32(&r.WriteMult)
	c.uint32(&r.DirPref)
	c.uint64(&r.MaxFileSize)
	r.TimeDelta.fields(c)
	c.uint32((*uint32)(&r.Properties))
}

// Encode appends r to e.
func (r *FsinfoRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d.
func (r *FsinfoRes) Decode(d *oncrpc.Decoder) {
	*r = FsinfoRes{}
	r.fields(decoderFrom(d))
}

// PathconfRes are the results of PATHCONF.
type PathconfRes struct {
	Stat Stat
	Attr PostOpAttr

	LinkMax         uint32 // hard links of a file; if OK, as what follows
	NameMax         uint32 // octets of a name
	NoTrunc         bool   // a longer name is an error, and not cut
	ChownRestricted bool   // only a privileged user gives files away
	CaseInsensitive bool   // "A" and "a" name the same file
	CasePreserving  bool   // a name is kept as it was given
}

func (r *PathconfRes) fields(c *coder) {
	ok := c.stat(&r.Stat)
	r.Attr.fields(c)
	if !ok {
		return
	}
	c.uint32(&r.LinkMax)
	c.uint32(&r.NameMax)
	c.bool(&r.NoTrunc)
	c.bool(&r.ChownRestricted)
	c.bool(&r.CaseInsensitive)
	c.bool(&r.CasePreserving)
}

// Encode appends r to e.
func (r *PathconfRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d.
func (r *PathconfRes) Decode(d *oncrpc.Decoder) {
	*r = PathconfRes{}
	r.fields(decoderFrom(d))
}
