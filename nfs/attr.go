// This file holds what servers tell of files: attributes, and those before and
// after an operation (RFC 1813 §2.5, §2.6).

package nfs

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/weft-rdma/weft/oncrpc"
)

// A FileType is what a file is (ftype3).
type FileType uint32

const (
	TypeReg  FileType = 1 // regular file
	TypeDir  FileType = 2 // directory
	TypeBlk  FileType = 3 // block special device
	TypeChr  FileType = 4 // character special device
	TypeLnk  FileType = 5 // symbolic link
	TypeSock FileType = 6 // socket
	TypeFifo FileType = 7 // named pipe
)

var fileTypes = [...]struct {
	name string
	mode fs.FileMode
}{
	TypeReg:  {"NF3REG", 0},
	TypeDir:  {"NF3DIR", fs.ModeDir},
	TypeBlk:  {"NF3BLK", fs.ModeDevice},
	TypeChr:  {"NF3CHR", fs.ModeDevice | fs.ModeCharDevice},
	TypeLnk:  {"NF3LNK", fs.ModeSymlink},
	TypeSock: {"NF3SOCK", fs.ModeSocket},
	TypeFifo: {"NF3FIFO", fs.ModeNamedPipe},
}

func (t FileType) known() bool { return t >= TypeReg && t <= TypeFifo }

func (t FileType) String() string {
	if t.known() {
		return fileTypes[t].name
	}
	return fmt.Sprintf("ftype3 %d", uint32(t))
}

// Mode is the type as Go has it: bits of [fs.ModeType].
func (t FileType) Mode() fs.FileMode {
	if t.known() {
		return fileTypes[t].mode
	}
	return fs.ModeIrregular
}

func decodeFileType(d *oncrpc.Decoder) FileType {
	at := d.Pos()
	t := FileType(d.Uint32())
	if !t.known() {
		d.Fail(at, "%v, want 1 to 7", t)
	}
	return t
}

// Mode bits beside the nine permissions (mode3). Bits above ModeMask have no
// meaning.
const (
	ModeSetUID uint32 = 0o4000
	ModeSetGID uint32 = 0o2000
	ModeSticky uint32 = 0o1000
	ModeMask   uint32 = 0o7777
)

// A Time is an instant (nfstime3): seconds since the beginning of 1970 in UTC,
// which reach into the year 2106.
type Time struct {
	Sec  uint32
	Nsec uint32 // below 1e9; messages may hold more
}

// TimeOf is t, or the nearest that there is.
func TimeOf(t time.Time) Time {
	switch sec := t.Unix(); {
	case sec < 0:
		return Time{}
	case sec > 1<<32-1:
		return Time{1<<32 - 1, 999_999_999}
	default:
		return Time{uint32(sec), uint32(t.Nanosecond())}
	}
}

// Time is t as Go has it.
func (t Time) Time() time.Time { return time.Unix(int64(t.Sec), int64(t.Nsec)) }

// Encode appends t to e.
func (t Time) Encode(e *oncrpc.Encoder) {
	e.Uint32(t.Sec)
	e.Uint32(t.Nsec)
}

// Decode reads t from d.
func (t *Time) Decode(d *oncrpc.Decoder) { t.Sec, t.Nsec = d.Uint32(), d.Uint32() }

// A Specdata names a device (specdata3).
type Specdata struct{ Major, Minor uint32 }

// Encode appends s to e.
func (s Specdata) Encode(e *oncrpc.Encoder) {
	e.Uint32(s.Major)
	e.Uint32(s.Minor)
}

// Decode reads s from d.
func (s *Specdata) Decode(d *oncrpc.Decoder) { s.Major, s.Minor = d.Uint32(), d.Uint32() }

// Attributes are what a server tells of a file (fattr3), in 84 octets.
type Attributes struct {
	Type     FileType
	Mode     uint32 // permissions and what ModeMask has
	NLink    uint32 // hard links
	UID, GID uint32
	Size     uint64   // octets
	Used     uint64   // octets on disk
	Rdev     Specdata // of TypeBlk and TypeChr
	FSID     uint64   // the file system
	FileID   uint64   // within it
	Atime    Time     // the data were last read
	Mtime    Time     // the data were last changed
	Ctime    Time     // the attributes were last changed
}

// FileMode is type and mode as Go has them.
func (a *Attributes) FileMode() fs.FileMode {
	m := a.Type.Mode() | fs.FileMode(a.Mode)&fs.ModePerm
	for _, bit := range [...]struct {
		nfs uint32
		fs  fs.FileMode
	}{{ModeSetUID, fs.ModeSetuid}, {ModeSetGID, fs.ModeSetgid}, {ModeSticky, fs.ModeSticky}} {
		if a.Mode&bit.nfs != 0 {
			m |= bit.fs
		}
	}
	return m
}

// Encode appends a to e.
func (a *Attributes) Encode(e *oncrpc.Encoder) {
	e.Uint32(uint32(a.Type))
	e.Uint32(a.Mode)
	e.Uint32(a.NLink)
	e.Uint32(a.UID)
	e.Uint32(a.GID)
	e.Uint64(a.Size)
	e.Uint64(a.Used)
	a.Rdev.Encode(e)
	e.Uint64(a.FSID)
	e.Uint64(a.FileID)
	a.Atime.Encode(e)
	a.Mtime.Encode(e)
	a.Ctime.Encode(e)
}

// Decode reads a from d.
func (a *Attributes) Decode(d *oncrpc.Decoder) {
	a.Type = decodeFileType(d)
	a.Mode = d.Uint32()
	a.NLink = d.Uint32()
	a.UID = d.Uint32()
	a.GID = d.Uint32()
	a.Size = d.Uint64()
	a.Used = d.Uint64()
	a.Rdev.Decode(d)
	a.FSID = d.Uint64()
	a.FileID = d.Uint64()
	a.Atime.Decode(d)
	a.Mtime.Decode(d)
	a.Ctime.Decode(d)
}

// A PostOpAttr is attributes after an operation, which a server returns if it
// can (post_op_attr).
type PostOpAttr struct {
	Follows bool // they are there (attributes_follow)
	Attr    Attributes
}

// Encode appends p to e.
func (p *PostOpAttr) Encode(e *oncrpc.Encoder) {
	e.Optional(p.Follows)
	if p.Follows {
		p.Attr.Encode(e)
	}
}

// Decode reads p from d.
func (p *PostOpAttr) Decode(d *oncrpc.Decoder) {
	*p = PostOpAttr{Follows: d.Optional()}
	if p.Follows {
		p.Attr.Decode(d)
	}
}

// A PreOpAttr is what tells whether a file was changed between two looks at it:
// a few attributes of before an operation (pre_op_attr, wcc_attr).
type PreOpAttr struct {
	Follows      bool // they are there (attributes_follow)
	Size         uint64
	Mtime, Ctime Time
}

// Before is the attributes of a file as they are before an operation.
func Before(a *Attributes) PreOpAttr {
	return PreOpAttr{Follows: true, Size: a.Size, Mtime: a.Mtime, Ctime: a.Ctime}
}

// Encode appends p to e.
func (p *PreOpAttr) Encode(e *oncrpc.Encoder) {
	e.Optional(p.Follows)
	if p.Follows {
		e.Uint64(p.Size)
		p.Mtime.Encode(e)
		p.Ctime.Encode(e)
	}
}

// Decode reads p from d.
func (p *PreOpAttr) Decode(d *oncrpc.Decoder) {
	*p = PreOpAttr{Follows: d.Optional()}
	if p.Follows {
		p.Size = d.Uint64()
		p.Mtime.Decode(d)
		p.Ctime.Decode(d)
	}
}

// WccData is what weak cache consistency takes: a file before and after an
// operation, with no other operation between the two (wcc_data).
type WccData struct {
	Before PreOpAttr
	After  PostOpAttr
}

// Encode appends w to e.
func (w *WccData) Encode(e *oncrpc.Encoder) {
	w.Before.Encode(e)
	w.After.Encode(e)
}

// Decode reads w from d.
func (w *WccData) Decode(d *oncrpc.Decoder) {
	w.Before.Decode(d)
	w.After.Decode(d)
}
