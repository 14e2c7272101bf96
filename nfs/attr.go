// The attributes of files, also before and after an operation (RFC 1813 §2.5, §2.6).

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

func (t *FileType) fields(c *coder) {
	c.uint32((*uint32)(t))
	if !t.known() {
		c.refuse(4, "%v, expected 1 to 7", *t)
	}
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

func (t *Time) fields(c *coder) {
	if k, ok := c.block(timeLen); ok {
		t.words(&k)
	}
}

// words are the fields of a Time in a block, in timeLen octets.
func (t *Time) words(k *block) {
	k.uint32(&t.Sec)
	k.uint32(&t.Nsec)
}

const timeLen = 8

// Encode appends t to e.
func (t Time) Encode(e *oncrpc.Encoder) { t.fields(encoderTo(e)) }

// Decode reads t from d.
func (t *Time) Decode(d *oncrpc.Decoder) {
	*t = Time{}
	t.fields(decoderFrom(d))
}

// A Specdata names a device (specdata3).
type Specdata struct{ Major, Minor uint32 }

func (s *Specdata) fields(c *coder) {
	c.uint32(&s.Major)
	c.uint32(&s.Minor)
}

// Encode appends s to e.
func (s Specdata) Encode(e *oncrpc.Encoder) { s.fields(encoderTo(e)) }

// Decode reads s from d.
func (s *Specdata) Decode(d *oncrpc.Decoder) {
	*s = Specdata{}
	s.fields(decoderFrom(d))
}

// Attributes are the attributes of a file (fattr3), in 84 octets.
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

func (a *Attributes) fields(c *coder) {
	k, ok := c.block(attributesLen)
	if !ok {
		return
	}
	k.uint32((*uint32)(&a.Type))
	k.uint32(&a.Mode)
	k.uint32(&a.NLink)
	k.uint32(&a.UID)
	k.uint32(&a.GID)
	k.uint64(&a.Size)
	k.uint64(&a.Used)
	k.uint32(&a.Rdev.Major)
	k.uint32(&a.Rdev.Minor)
	k.uint64(&a.FSID)
	k.uint64(&a.FileID)
	a.Atime.words(&k)
	a.Mtime.words(&k)
	a.Ctime.words(&k)
	if !a.Type.known() {
		c.refuse(attributesLen, "%v, expected 1 to 7", a.Type)
	}
}

// attributesLen is the octets of attributes.
const attributesLen = 84

// Encode appends a to e.
func (a *Attributes) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *Attributes) Decode(d *oncrpc.Decoder) {
	*a = Attributes{}
	a.fields(decoderFrom(d))
}

// A PostOpAttr is attributes after an operation, which a server returns if it
// can (post_op_attr).
type PostOpAttr struct {
	Follows bool // they are there (attributes_follow)
	Attr    Attributes
}

func (p *PostOpAttr) fields(c *coder) {
	if c.optional(&p.Follows) {
		p.Attr.fields(c)
	}
}

// Encode appends p to e.
func (p *PostOpAttr) Encode(e *oncrpc.Encoder) { p.fields(encoderTo(e)) }

// Decode reads p from d.
func (p *PostOpAttr) Decode(d *oncrpc.Decoder) {
	*p = PostOpAttr{}
	p.fields(decoderFrom(d))
}

// A PreOpAttr has a few attributes of a file before an operation, by which a client sees
// whether anybody else has changed the file (pre_op_attr, wcc_attr).
type PreOpAttr struct {
	Follows      bool // they are there (attributes_follow)
	Size         uint64
	Mtime, Ctime Time
}

// Before is the attributes of a file as they are before an operation.
func Before(a *Attributes) PreOpAttr {
	return PreOpAttr{Follows: true, Size: a.Size, Mtime: a.Mtime, Ctime: a.Ctime}
}

func (p *PreOpAttr) fields(c *coder) {
	if c.optional(&p.Follows) {
		if k, ok := c.block(8 + 2*timeLen); ok {
			k.uint64(&p.Size)
			p.Mtime.words(&k)
			p.Ctime.words(&k)
		}
	}
}

// Encode appends p to e.
func (p *PreOpAttr) Encode(e *oncrpc.Encoder) { p.fields(encoderTo(e)) }

// Decode reads p from d.
func (p *PreOpAttr) Decode(d *oncrpc.Decoder) {
	*p = PreOpAttr{}
	p.fields(decoderFrom(d))
}

// WccData is what weak cache consistency takes: a file before and after an
// operation, with no other operation between the two (wcc_data).
type WccData struct {
	Before PreOpAttr
	After  PostOpAttr
}

func (w *WccData) fields(c *coder) {
	w.Before.fields(c)
	w.After.fields(c)
}

// Encode appends w to e.
func (w *WccData) Encode(e *oncrpc.Encoder) { w.fields(encoderTo(e)) }

// Decode reads w from d.
func (w *WccData) Decode(d *oncrpc.Decoder) {
	*w = WccData{}
	w.fields(decoderFrom(d))
}
