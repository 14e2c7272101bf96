// This file holds the procedures that tell of file systems: FSSTAT, FSINFO and
// PATHCONF (RFC 1813 §3.3.18 to §3.3.20).

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

// Encode appends r to e.
func (r *FsstatRes) Encode(e *oncrpc.Encoder) {
	e.Uint32(uint32(r.Stat))
	r.Attr.Encode(e)
	if r.Stat != OK {
		return
	}
	e.Uint64(r.TotalBytes)
	e.Uint64(r.FreeBytes)
	e.Uint64(r.AvailBytes)
	e.Uint64(r.TotalFiles)
	e.Uint64(r.FreeFiles)
	e.Uint64(r.AvailFiles)
	e.Uint32(r.Invarsec)
}

// Decode reads r from d.
func (r *FsstatRes) Decode(d *oncrpc.Decoder) {
	*r = FsstatRes{Stat: Stat(d.Uint32())}
	r.Attr.Decode(d)
	if r.Stat != OK {
		return
	}
	r.TotalBytes = d.Uint64()
	r.FreeBytes = d.Uint64()
	r.AvailBytes = d.Uint64()
	r.TotalFiles = d.Uint64()
	r.FreeFiles = d.Uint64()
	r.AvailFiles = d.Uint64()
	r.Invarsec = d.Uint32()
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

// Encode appends r to e.
func (r *FsinfoRes) Encode(e *oncrpc.Encoder) {
	e.Uint32(uint32(r.Stat))
	r.Attr.Encode(e)
	if r.Stat != OK {
		return
	}
	e.Uint32(r.ReadMax)
	e.Uint32(r.ReadPref)
	e.Uint32(r.ReadMult)
	e.Uint32(r.WriteMax)
	e.Uint32(r.WritePref)
	e.Uint32(r.WriteMult)
	e.Uint32(r.DirPref)
	e.Uint64(r.MaxFileSize)
	r.TimeDelta.Encode(e)
	e.Uint32(uint32(r.Properties))
}

// Decode reads r from d.
func (r *FsinfoRes) Decode(d *oncrpc.Decoder) {
	*r = FsinfoRes{Stat: Stat(d.Uint32())}
	r.Attr.Decode(d)
	if r.Stat != OK {
		return
	}
	r.ReadMax = d.Uint32()
	r.ReadPref = d.Uint32()
	r.ReadMult = d.Uint32()
	r.WriteMax = d.Uint32()
	r.WritePref = d.Uint32()
	r.WriteMult = d.Uint32()
	r.DirPref = d.Uint32()
	r.MaxFileSize = d.Uint64()
	r.TimeDelta.Decode(d)
	r.Properties = Properties(d.Uint32())
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

// Encode appends r to e.
func (r *PathconfRes) Encode(e *oncrpc.Encoder) {
	e.Uint32(uint32(r.Stat))
	r.Attr.Encode(e)
	if r.Stat != OK {
		return
	}
	e.Uint32(r.LinkMax)
	e.Uint32(r.NameMax)
	e.Bool(r.NoTrunc)
	e.Bool(r.ChownRestricted)
	e.Bool(r.CaseInsensitive)
	e.Bool(r.CasePreserving)
}

// Decode reads r from d.
func (r *PathconfRes) Decode(d *oncrpc.Decoder) {
	*r = PathconfRes{Stat: Stat(d.Uint32())}
	r.Attr.Decode(d)
	if r.Stat != OK {
		return
	}
	r.LinkMax = d.Uint32()
	r.NameMax = d.Uint32()
	r.NoTrunc = d.Bool()
	r.ChownRestricted = d.Bool()
	r.CaseInsensitive = d.Bool()
	r.CasePreserving = d.Bool()
}
