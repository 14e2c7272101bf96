// This file holds the MOUNT protocol, from which clients get the first handle (RFC 1813 §5
// and Appendix I; version 1 is RFC 1094 Appendix A).

package nfs

import (
	"fmt"
	"io/fs"

	"github.com/weft-rdma/weft/oncrpc"
)

// The program MOUNT. Version 3 returns handles of NFS version 3; version 1, those
// of NFS version 2. The messages of all procedures but MNT are the same.
const (
	MountProgram = 100005
	MountV1      = 1
	MountV3      = 3
)

// Limits of the MOUNT protocol.
const (
	MaxMountPath = 1024     // octets of a path (MNTPATHLEN)
	MaxMountName = 255      // octets of a name (MNTNAMLEN)
	MaxFlavors   = 64       // authentication flavors of a MountRes
	MaxMounts    = 64 << 10 // entries of a list, and names of a group
)

// A MountProc is a procedure of MOUNT.
type MountProc uint32

// The procedures, with arguments and results.
const (
	MountNull    MountProc = 0 // nothing; nothing
	MountMnt     MountProc = 1 // MountPath; MountRes
	MountDump    MountProc = 2 // nothing; MountList
	MountUmnt    MountProc = 3 // MountPath; nothing
	MountUmntAll MountProc = 4 // nothing; nothing
	MountExport  MountProc = 5 // nothing; ExportList
)

var mountProcNames = [...]string{"NULL", "MNT", "DUMP", "UMNT", "UMNTALL", "EXPORT"}

func (p MountProc) String() string {
	if int64(p) < int64(len(mountProcNames)) {
		return mountProcNames[p]
	}
	return fmt.Sprintf("MOUNT procedure %d", uint32(p))
}

// A MountStat is how MNT ended (mountstat3). One that is not MountOK is an error.
type MountStat uint32

// The status codes (mountstat3).
const (
	MountOK             MountStat = 0
	MountErrPerm        MountStat = 1
	MountErrNoEnt       MountStat = 2
	MountErrIO          MountStat = 5
	MountErrAcces       MountStat = 13
	MountErrNotDir      MountStat = 20
	MountErrInval       MountStat = 22
	MountErrNameTooLong MountStat = 63
	MountErrNotSupp     MountStat = 10004
	MountErrServerFault MountStat = 10006
)

// stat is the code of NFS with the same number and meaning.
func (s MountStat) stat() Stat { return Stat(s) }

// String is the name of the code: MNT3ERR_NOENT.
func (s MountStat) String() string {
	switch s {
	case MountOK:
		return "MNT3_OK"
	case MountErrPerm, MountErrNoEnt, MountErrIO, MountErrAcces, MountErrNotDir,
		MountErrInval, MountErrNameTooLong, MountErrNotSupp, MountErrServerFault:
		return "MNT3ERR" + s.stat().String()[len("NFS3ERR"):]
	}
	return fmt.Sprintf("mountstat3 %d", uint32(s))
}

// Error says in words what the code says.
func (s MountStat) Error() string {
	if name, ok := statNames[s.stat()]; ok && s.stat() != OK {
		return name[1] + " (" + s.String() + ")"
	}
	return s.String()
}

// Err is nil for MountOK, else s.
func (s MountStat) Err() error {
	if s == MountOK {
		return nil
	}
	return s
}

// Is reports whether s says what target does: see [Stat].
func (s MountStat) Is(target error) bool {
	return target != fs.ErrExist && s.stat().Is(target)
}

// MountPath is the arguments of MNT and UMNT: the path of a directory on the
// server (dirpath).
type MountPath struct{ Path string }

func (p *MountPath) fields(c *coder) {
	c.string(&p.Path, MaxMountPath)
}

// Encode appends p to e.
func (p *MountPath) Encode(e *oncrpc.Encoder) { p.fields(encoderTo(e)) }

// Decode reads p from d.
func (p *MountPath) Decode(d *oncrpc.Decoder) {
	*p = MountPath{}
	p.fields(decoderFrom(d))
}

// MountRes are the results of MNT in version 3 (mountres3).
type MountRes struct {
	Stat    MountStat
	FH      FH              // of the directory; if MountOK, as what follows
	Flavors []oncrpc.Flavor // that the server takes, the best first; at most MaxFlavors
}

func (r *MountRes) fields(c *coder) {
	c.uint32((*uint32)(&r.Stat))
	if r.Stat != MountOK {
		return
	}
	r.FH.fields(c)
	for i := range c.elements(len(r.Flavors), MaxFlavors) {
		if c.mode == decoding {
			r.Flavors = append(r.Flavors, 0)
		}
		c.uint32((*uint32)(&r.Flavors[i]))
	}
}

// Encode appends r to e.
func (r *MountRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d.
func (r *MountRes) Decode(d *oncrpc.Decoder) {
	*r = MountRes{}
	r.fields(decoderFrom(d))
}

// A MountV1Res is the results of MNT in versions 1 and 2 (fhstatus).
type MountV1Res struct {
	Stat uint32   // an error number of Unix; 0: there is a handle
	FH   [32]byte // of NFS version 2
}

func (r *MountV1Res) fields(c *coder) {
	c.uint32(&r.Stat)
	if r.Stat == 0 {
		c.fixed(r.FH[:])
	}
}

// Encode appends r to e.
func (r *MountV1Res) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d.
func (r *MountV1Res) Decode(d *oncrpc.Decoder) {
	*r = MountV1Res{}
	r.fields(decoderFrom(d))
}

// A Mount says which client has mounted which directory, as far as the server remembers
// (mountbody).
type Mount struct {
	Host string // at most MaxMountName octets
	Path string // at most MaxMountPath octets
}

// A MountList is the results of DUMP (mountlist), at most MaxMounts entries.
type MountList []Mount

func (l *MountList) fields(c *coder) {
	for i := 0; c.next(i, len(*l), "mounts"); i++ {
		if c.mode == decoding {
			*l = append(*l, Mount{})
		}
		m := &(*l)[i]
		c.string(&m.Host, MaxMountName)
		c.string(&m.Path, MaxMountPath)
	}
}

// Encode appends l to e.
func (l MountList) Encode(e *oncrpc.Encoder) { l.fields(encoderTo(e)) }

// Decode reads l from d. It keeps the memory of l.
func (l *MountList) Decode(d *oncrpc.Decoder) {
	*l = (*l)[:0]
	l.fields(decoderFrom(d))
}

// An Export says what may be mounted, and by whom (exportnode).
type Export struct {
	Path   string   // at most MaxMountPath octets
	Groups []string // names of hosts or groups of them, each at most MaxMountName octets; none: everybody
}

// An ExportList is the results of EXPORT (exports), at most MaxMounts entries.
type ExportList []Export

func (l *ExportList) fields(c *coder) {
	for i := 0; c.next(i, len(*l), "exports"); i++ {
		if c.mode == decoding {
			*l = append(*l, Export{})
		}
		x := &(*l)[i]
		c.string(&x.Path, MaxMountPath)
		for j := 0; c.next(j, len(x.Groups), "groups"); j++ {
			if c.mode == decoding {
				x.Groups = append(x.Groups, "")
			}
			c.string(&x.Groups[j], MaxMountName)
		}
	}
}

// Encode appends l to e.
func (l ExportList) Encode(e *oncrpc.Encoder) { l.fields(encoderTo(e)) }

// Decode reads l from d. It keeps the memory of l.
func (l *ExportList) Decode(d *oncrpc.Decoder) {
	*l = (*l)[:0]
	l.fields(decoderFrom(d))
}
