// Package golden has messages of NFS version 3 and MOUNT octet for octet, with
// what they mean, for the tests of the packages around.
package golden

import (
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// Unhex reads octets in hexadecimal, with any blanks between them.
func Unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A Codec is arguments or results.
type Codec interface {
	Encode(*oncrpc.Encoder)
	Decode(*oncrpc.Decoder)
}

// Encode returns the octets of m.
func Encode(m Codec) ([]byte, error) {
	e := oncrpc.NewEncoder(nil)
	m.Encode(&e)
	return e.Finish()
}

// Decode reads m from b, which is all of it.
func Decode(b []byte, m Codec) error {
	d := oncrpc.NewDecoder(b, "message")
	m.Decode(&d)
	return d.End()
}

// Fresh returns a zero message of the type of m.
func Fresh(m Codec) Codec {
	return reflect.New(reflect.TypeOf(m).Elem()).Interface().(Codec)
}

// Parts of messages, and what they mean.
const (
	FH32Hex  = "00000020 a0a1a2a3 a4a5a6a7 a8a9aaab acadaeaf b0b1b2b3 b4b5b6b7 b8b9babb bcbdbebf"
	FH5Hex   = "00000005 0102030405 000000"
	attrHex  = "00000001 000081a4 00000002 000003e8 000003e9 00000000 00001388 00000000 00002000 00000008 00000001" + fsidHex + timesHex
	fsidHex  = "00000000 0000fd01 00000001 00000007" // fsid, fileid
	timesHex = "65000001 00000001 65000002 3b9ac9ff 65000003 00000003"
	preHex   = "00000001 00000000 00001000 65000004 00000004 65000005 00000005"
	None     = "00000000"
	Some     = "00000001"
	VerfHex  = "0102030405060708"
	NameHex  = "00000005 6361ff2e74 000000" // "ca\xff.t": no encoding is implied
	SetHex   = "00000001 000001a4 00000000 00000001 00000064 00000001 00000001 00000000 00000001 00000002 65000006 00000006"
)

var (
	fh5    = nfs.FH{1, 2, 3, 4, 5}
	fh32   = nfs.FH{0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, 0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xbb, 0xbc, 0xbd, 0xbe, 0xbf}
	verf   = nfs.Verifier{1, 2, 3, 4, 5, 6, 7, 8}
	where  = nfs.DirOpArgs{Dir: fh5, Name: "ca\xff.t"}
	attr   = nfs.Attributes{Type: nfs.TypeReg, Mode: 0o100644, NLink: 2, UID: 1000, GID: 1001, Size: 5000, Used: 8192, Rdev: nfs.Specdata{Major: 8, Minor: 1}, FSID: 0xfd01, FileID: 1<<32 | 7, Atime: nfs.Time{Sec: 0x65000001, Nsec: 1}, Mtime: nfs.Time{Sec: 0x65000002, Nsec: 999999999}, Ctime: nfs.Time{Sec: 0x65000003, Nsec: 3}}
	post   = nfs.PostOpAttr{Follows: true, Attr: attr}
	wcc    = nfs.WccData{Before: nfs.PreOpAttr{Follows: true, Size: 4096, Mtime: nfs.Time{Sec: 0x65000004, Nsec: 4}, Ctime: nfs.Time{Sec: 0x65000005, Nsec: 5}}, After: post}
	toSet  = nfs.SetAttributes{Mode: nfs.SetUint32{Set: true, Value: 0o644}, GID: nfs.SetUint32{Set: true, Value: 100}, Size: nfs.SetUint64{Set: true, Value: 1 << 32}, Atime: nfs.SetTime{How: nfs.SetToServerTime}, Mtime: nfs.SetTime{How: nfs.SetToClientTime, Time: nfs.Time{Sec: 0x65000006, Nsec: 6}}}
	entry1 = nfs.Entry{FileID: 7, Name: "ca\xff.t", Cookie: 1 << 40}
)

const (
	WhereHex = FH5Hex + NameHex
	PostHex  = Some + attrHex
	wccHex   = preHex + PostHex
)

// A Message is arguments or results in octets that were written by hand after RFC 1813.
type Message struct {
	Name string // the procedure, and what
	Hex  string
	M    Codec
}

// Messages are examples of all arguments and results.
var Messages = []Message{
	{"GETATTR arguments", FH32Hex, &nfs.GetattrArgs{Object: fh32}},
	{"GETATTR results", None + attrHex, &nfs.GetattrRes{Attr: attr}},
	{"GETATTR failed", "00000046", &nfs.GetattrRes{Stat: nfs.ErrStale}},
	{"SETATTR arguments", FH5Hex + SetHex + None, &nfs.SetattrArgs{Object: fh5, New: toSet}},
	{"SETATTR arguments that set nothing, with a guard", FH5Hex + None + None + None + None + None + None + Some + "65000007 00000007",
		&nfs.SetattrArgs{Object: fh5, Guard: nfs.SetattrGuard{Check: true, Ctime: nfs.Time{Sec: 0x65000007, Nsec: 7}}}},
	{"SETATTR results", None + wccHex, &nfs.WccRes{Wcc: wcc}},
	{"SETATTR failed", "00002712" + None + None, &nfs.WccRes{Stat: nfs.ErrNotSync}},
	{"LOOKUP arguments", WhereHex, &where},
	{"LOOKUP results", None + FH5Hex + PostHex + None, &nfs.LookupRes{Object: fh5, Attr: post}},
	{"LOOKUP failed", "00000002" + PostHex, &nfs.LookupRes{Stat: nfs.ErrNoEnt, DirAttr: post}},
	{"ACCESS arguments", FH5Hex + "0000001f", &nfs.AccessArgs{Object: fh5, Access: nfs.AccessRead | nfs.AccessLookup | nfs.AccessModify | nfs.AccessExtend | nfs.AccessDelete}},
	{"ACCESS results", None + None + "00000021", &nfs.AccessRes{Access: nfs.AccessRead | nfs.AccessExecute}},
	{"ACCESS failed", "0000000d" + PostHex, &nfs.AccessRes{Stat: nfs.ErrAcces, Attr: post}},
	{"READLINK arguments", FH5Hex, &nfs.ReadlinkArgs{Symlink: fh5}},
	{"READLINK results", None + PostHex + "00000006 2e2e2f612f62 0000", &nfs.ReadlinkRes{Attr: post, Path: "../a/b"}},
	{"READLINK failed", "00000016" + None, &nfs.ReadlinkRes{Stat: nfs.ErrInval}},
	{"READ arguments", FH5Hex + "00000001 00000002 00001770", &nfs.ReadArgs{File: fh5, Offset: 1<<32 | 2, Count: 6000}},
	{"READ results", None + None + "00000003 00000001 00000003 61626300", &nfs.ReadRes{Count: 3, EOF: true, Data: []byte("abc")}},
	{"READ failed", "00000005" + PostHex, &nfs.ReadRes{Stat: nfs.ErrIO, Attr: post}},
	{"WRITE arguments", FH5Hex + "00000000 00000001 00000003 00000002 00000003 61626300", &nfs.WriteArgs{File: fh5, Offset: 1, Count: 3, Stable: nfs.FileSync, Data: []byte("abc")}},
	{"WRITE results", None + wccHex + "00000003 00000001" + VerfHex, &nfs.WriteRes{Wcc: wcc, Count: 3, Committed: nfs.DataSync, Verf: verf}},
	{"WRITE failed", "0000001c" + preHex + None, &nfs.WriteRes{Stat: nfs.ErrNoSpc, Wcc: nfs.WccData{Before: wcc.Before}}},
	{"CREATE arguments, unchecked", WhereHex + None + SetHex, &nfs.CreateArgs{Where: where, Attr: toSet}},
	{"CREATE arguments, guarded", WhereHex + Some + SetHex, &nfs.CreateArgs{Where: where, Mode: nfs.Guarded, Attr: toSet}},
	{"CREATE arguments, exclusive", WhereHex + "00000002" + VerfHex, &nfs.CreateArgs{Where: where, Mode: nfs.Exclusive, Verf: verf}},
	{"CREATE results", None + Some + FH5Hex + PostHex + wccHex, &nfs.CreateRes{Object: nfs.PostOpFH{Follows: true, FH: fh5}, Attr: post, DirWcc: wcc}},
	{"CREATE results without the handle", None + None + None + None + None, &nfs.CreateRes{}},
	{"CREATE failed", "00000011" + wccHex, &nfs.CreateRes{Stat: nfs.ErrExist, DirWcc: wcc}},
	{"MKDIR arguments", WhereHex + SetHex, &nfs.MkdirArgs{Where: where, Attr: toSet}},
	{"SYMLINK arguments", WhereHex + SetHex + "00000003 61 2f62 00", &nfs.SymlinkArgs{Where: where, Attr: toSet, Path: "a/b"}},
	{"MKNOD arguments, device", WhereHex + "00000004" + SetHex + "00000001 00000003", &nfs.MknodArgs{Where: where, Type: nfs.TypeChr, Attr: toSet, Spec: nfs.Specdata{Major: 1, Minor: 3}}},
	{"MKNOD arguments, pipe", WhereHex + "00000007" + SetHex, &nfs.MknodArgs{Where: where, Type: nfs.TypeFifo, Attr: toSet}},
	{"MKNOD arguments, directory", WhereHex + "00000002", &nfs.MknodArgs{Where: where, Type: nfs.TypeDir}},
	{"RENAME arguments", WhereHex + FH32Hex + "00000001 62000000", &nfs.RenameArgs{From: where, To: nfs.DirOpArgs{Dir: fh32, Name: "b"}}},
	{"RENAME results", None + wccHex + None + None, &nfs.RenameRes{FromWcc: wcc}},
	{"RENAME failed", "00000012" + None + None + wccHex, &nfs.RenameRes{Stat: nfs.ErrXDev, ToWcc: wcc}},
	{"LINK arguments", FH32Hex + WhereHex, &nfs.LinkArgs{File: fh32, Link: where}},
	{"LINK results", None + PostHex + wccHex, &nfs.LinkRes{Attr: post, DirWcc: wcc}},
	{"LINK failed", "0000001f" + None + None + None, &nfs.LinkRes{Stat: nfs.ErrMLink}},
	{"READDIR arguments", FH5Hex + "00000100 00000000" + VerfHex + "00002000", &nfs.ReaddirArgs{Dir: fh5, Cookie: 1 << 40, Verf: verf, Count: 8192}},
	{"READDIR results", None + PostHex + VerfHex +
		Some + "00000000 00000007" + NameHex + "00000100 00000000" +
		Some + "00000000 00000008 00000001 62000000 ffffffff ffffffff" +
		None + Some,
		&nfs.ReaddirRes{Listing: nfs.Listing{DirAttr: post, Verf: verf, Entries: []nfs.Entry{entry1, {FileID: 8, Name: "b", Cookie: 1<<64 - 1}}, EOF: true}}},
	{"READDIR failed", "00002713" + None, &nfs.ReaddirRes{Listing: nfs.Listing{Stat: nfs.ErrBadCookie}}},
	{"READDIRPLUS arguments", FH5Hex + "00000100 00000000" + VerfHex + "00000200 00002000", &nfs.ReaddirplusArgs{Dir: fh5, Cookie: 1 << 40, Verf: verf, DirCount: 512, MaxCount: 8192}},
	{"READDIRPLUS results", None + None + VerfHex +
		Some + "00000000 00000007" + NameHex + "00000100 00000000" + PostHex + Some + FH5Hex +
		Some + "00000000 00000008 00000001 62000000 00000000 00000002" + None + None +
		None + None,
		&nfs.ReaddirplusRes{Listing: nfs.Listing{Verf: verf, Entries: []nfs.Entry{
			{FileID: 7, Name: "ca\xff.t", Cookie: 1 << 40, Attr: post, Object: nfs.PostOpFH{Follows: true, FH: fh5}},
			{FileID: 8, Name: "b", Cookie: 2},
		}}}},
	{"READDIRPLUS failed", "00002714" + PostHex, &nfs.ReaddirplusRes{Listing: nfs.Listing{Stat: nfs.ErrNotSupp, DirAttr: post}}},
	{"FSSTAT results", None + PostHex +
		"00000000 00000006 00000000 00000005 00000000 00000004 00000000 00000003 00000000 00000002 00000000 00000001 0000001e",
		&nfs.FsstatRes{Attr: post, TotalBytes: 6, FreeBytes: 5, AvailBytes: 4, TotalFiles: 3, FreeFiles: 2, AvailFiles: 1, Invarsec: 30}},
	{"FSSTAT failed", "00002711" + None, &nfs.FsstatRes{Stat: nfs.ErrBadHandle}},
	{"FSINFO results", None + None +
		"00100000 00080000 00001000 00100001 00080001 00001001 00002000 7fffffff ffffffff 00000000 00000001 0000001b",
		&nfs.FsinfoRes{ReadMax: 1 << 20, ReadPref: 1 << 19, ReadMult: 4096, WriteMax: 1<<20 + 1, WritePref: 1<<19 + 1, WriteMult: 4097, DirPref: 8192,
			MaxFileSize: 1<<63 - 1, TimeDelta: nfs.Time{Sec: 0, Nsec: 1}, Properties: nfs.PropLink | nfs.PropSymlink | nfs.PropHomogeneous | nfs.PropCanSetTime}},
	{"FSINFO failed", "00002716" + PostHex, &nfs.FsinfoRes{Stat: nfs.ErrServerFault, Attr: post}},
	{"PATHCONF results", None + None + "0000fde8 000000ff 00000001 00000000 00000001 00000000",
		&nfs.PathconfRes{LinkMax: 65000, NameMax: 255, NoTrunc: true, CaseInsensitive: true}},
	{"PATHCONF failed", "00002718" + None, &nfs.PathconfRes{Stat: nfs.ErrJukebox}},
	{"COMMIT arguments", FH5Hex + "00000000 00000001 00000002", &nfs.CommitArgs{File: fh5, Offset: 1, Count: 2}},
	{"COMMIT results", None + wccHex + VerfHex, &nfs.CommitRes{Wcc: wcc, Verf: verf}},
	{"COMMIT failed", "00000045" + None + None, &nfs.CommitRes{Stat: nfs.ErrDQuot}},

	{"MNT and UMNT arguments", "00000004 2f737276", &nfs.MountPath{Path: "/srv"}},
	{"MNT results", None + FH5Hex + "00000002 00000001 00000000", &nfs.MountRes{FH: fh5, Flavors: []oncrpc.Flavor{oncrpc.FlavorSys, oncrpc.FlavorNone}}},
	{"MNT failed", "0000000d", &nfs.MountRes{Stat: nfs.MountErrAcces}},
	{"MNT results of version 1", None + FH32Hex[9:], &nfs.MountV1Res{FH: [32]byte(fh32)}},
	{"MNT failed in version 1", "00000002", &nfs.MountV1Res{Stat: 2}},
	{"DUMP results", Some + "00000001 68000000 00000002 2f730000" + Some + "00000000 00000001 2f000000" + None, &nfs.MountList{{Host: "h", Path: "/s"}, {Host: "", Path: "/"}}},
	{"EXPORT results", Some + "00000001 2f000000 00000000" + Some + "00000002 2f730000" + Some + "00000001 2a000000" + Some + "00000001 68000000" + None + None,
		&nfs.ExportList{{Path: "/"}, {Path: "/s", Groups: []string{"*", "h"}}}},
}

// ProcOf finds the procedure at the start of a golden message's name.
func ProcOf(name string) (nfs.Proc, bool) {
	word, _, _ := strings.Cut(name, " ")
	for p := nfs.ProcNull; p <= nfs.ProcCommit; p++ {
		if p.String() == word {
			return p, true
		}
	}
	return 0, false
}
