package nfs

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weft-rdma/weft/oncrpc"
)

// unhex reads octets in hexadecimal, with any blanks between them.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A message is arguments or results.
type message interface {
	Encode(*oncrpc.Encoder)
	Decode(*oncrpc.Decoder)
}

func encode(m message) ([]byte, error) {
	e := oncrpc.NewEncoder(nil)
	m.Encode(&e)
	return e.Finish()
}

func decode(b []byte, m message) error {
	d := oncrpc.NewDecoder(b, "message")
	m.Decode(&d)
	return d.End()
}

// fresh returns a zero message of the type of m.
func fresh(m message) message {
	return reflect.New(reflect.TypeOf(m).Elem()).Interface().(message)
}

// Parts of messages, and what they mean.
const (
	fh32Hex  = "00000020 a0a1a2a3 a4a5a6a7 a8a9aaab acadaeaf b0b1b2b3 b4b5b6b7 b8b9babb bcbdbebf"
	fh5Hex   = "00000005 0102030405 000000"
	attrHex  = "00000001 000081a4 00000002 000003e8 000003e9 00000000 00001388 00000000 00002000 00000008 00000001" + fsidHex + timesHex
	fsidHex  = "00000000 0000fd01 00000001 00000007" // fsid, fileid
	timesHex = "65000001 00000001 65000002 3b9ac9ff 65000003 00000003"
	preHex   = "00000001 00000000 00001000 65000004 00000004 65000005 00000005"
	none     = "00000000"
	some     = "00000001"
	verfHex  = "0102030405060708"
	nameHex  = "00000005 6361ff2e74 000000" // "ca\xff.t": no encoding is implied
	setHex   = "00000001 000001a4 00000000 00000001 00000064 00000001 00000001 00000000 00000001 00000002 65000006 00000006"
)

var (
	fh5    = FH{1, 2, 3, 4, 5}
	fh32   = FH{0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, 0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xbb, 0xbc, 0xbd, 0xbe, 0xbf}
	verf   = Verifier{1, 2, 3, 4, 5, 6, 7, 8}
	where  = DirOpArgs{fh5, "ca\xff.t"}
	attr   = Attributes{Type: TypeReg, Mode: 0o100644, NLink: 2, UID: 1000, GID: 1001, Size: 5000, Used: 8192, Rdev: Specdata{8, 1}, FSID: 0xfd01, FileID: 1<<32 | 7, Atime: Time{0x65000001, 1}, Mtime: Time{0x65000002, 999999999}, Ctime: Time{0x65000003, 3}}
	post   = PostOpAttr{true, attr}
	wcc    = WccData{PreOpAttr{true, 4096, Time{0x65000004, 4}, Time{0x65000005, 5}}, post}
	toSet  = SetAttributes{Mode: SetUint32{true, 0o644}, GID: SetUint32{true, 100}, Size: SetUint64{true, 1 << 32}, Atime: SetTime{How: SetToServerTime}, Mtime: SetTime{SetToClientTime, Time{0x65000006, 6}}}
	entry1 = Entry{FileID: 7, Name: "ca\xff.t", Cookie: 1 << 40}
)

const (
	whereHex = fh5Hex + nameHex
	postHex  = some + attrHex
	wccHex   = preHex + postHex
)

// golden are messages in octets that were written by hand after RFC 1813.
var golden = []struct {
	name string
	hex  string
	m    message
}{
	{"GETATTR arguments", fh32Hex, &GetattrArgs{fh32}},
	{"GETATTR results", none + attrHex, &GetattrRes{Attr: attr}},
	{"GETATTR failed", "00000046", &GetattrRes{Stat: ErrStale}},
	{"SETATTR arguments", fh5Hex + setHex + none, &SetattrArgs{Object: fh5, New: toSet}},
	{"SETATTR arguments that set nothing, with a guard", fh5Hex + none + none + none + none + none + none + some + "65000007 00000007",
		&SetattrArgs{Object: fh5, Guard: SetattrGuard{true, Time{0x65000007, 7}}}},
	{"SETATTR results", none + wccHex, &WccRes{Wcc: wcc}},
	{"SETATTR failed", "00002712" + none + none, &WccRes{Stat: ErrNotSync}},
	{"LOOKUP arguments", whereHex, &where},
	{"LOOKUP results", none + fh5Hex + postHex + none, &LookupRes{Object: fh5, Attr: post}},
	{"LOOKUP failed", "00000002" + postHex, &LookupRes{Stat: ErrNoEnt, DirAttr: post}},
	{"ACCESS arguments", fh5Hex + "0000001f", &AccessArgs{fh5, AccessRead | AccessLookup | AccessModify | AccessExtend | AccessDelete}},
	{"ACCESS results", none + none + "00000021", &AccessRes{Access: AccessRead | AccessExecute}},
	{"ACCESS failed", "0000000d" + postHex, &AccessRes{Stat: ErrAcces, Attr: post}},
	{"READLINK arguments", fh5Hex, &ReadlinkArgs{fh5}},
	{"READLINK results", none + postHex + "00000006 2e2e2f612f62 0000", &ReadlinkRes{Attr: post, Path: "../a/b"}},
	{"READLINK failed", "00000016" + none, &ReadlinkRes{Stat: ErrInval}},
	{"READ arguments", fh5Hex + "00000001 00000002 00001770", &ReadArgs{fh5, 1<<32 | 2, 6000}},
	{"READ results", none + none + "00000003 00000001 00000003 61626300", &ReadRes{Count: 3, EOF: true, Data: []byte("abc")}},
	{"READ failed", "00000005" + postHex, &ReadRes{Stat: ErrIO, Attr: post}},
	{"WRITE arguments", fh5Hex + "00000000 00000001 00000003 00000002 00000003 61626300", &WriteArgs{fh5, 1, 3, FileSync, []byte("abc")}},
	{"WRITE results", none + wccHex + "00000003 00000001" + verfHex, &WriteRes{Wcc: wcc, Count: 3, Committed: DataSync, Verf: verf}},
	{"WRITE failed", "0000001c" + preHex + none, &WriteRes{Stat: ErrNoSpc, Wcc: WccData{Before: wcc.Before}}},
	{"CREATE arguments, unchecked", whereHex + none + setHex, &CreateArgs{Where: where, Attr: toSet}},
	{"CREATE arguments, guarded", whereHex + some + setHex, &CreateArgs{Where: where, Mode: Guarded, Attr: toSet}},
	{"CREATE arguments, exclusive", whereHex + "00000002" + verfHex, &CreateArgs{Where: where, Mode: Exclusive, Verf: verf}},
	{"CREATE results", none + some + fh5Hex + postHex + wccHex, &CreateRes{Object: PostOpFH{true, fh5}, Attr: post, DirWcc: wcc}},
	{"CREATE results without the handle", none + none + none + none + none, &CreateRes{}},
	{"CREATE failed", "00000011" + wccHex, &CreateRes{Stat: ErrExist, DirWcc: wcc}},
	{"MKDIR arguments", whereHex + setHex, &MkdirArgs{where, toSet}},
	{"SYMLINK arguments", whereHex + setHex + "00000003 61 2f62 00", &SymlinkArgs{where, toSet, "a/b"}},
	{"MKNOD arguments, device", whereHex + "00000004" + setHex + "00000001 00000003", &MknodArgs{where, TypeChr, toSet, Specdata{1, 3}}},
	{"MKNOD arguments, pipe", whereHex + "00000007" + setHex, &MknodArgs{Where: where, Type: TypeFifo, Attr: toSet}},
	{"MKNOD arguments, directory", whereHex + "00000002", &MknodArgs{Where: where, Type: TypeDir}},
	{"RENAME arguments", whereHex + fh32Hex + "00000001 62000000", &RenameArgs{where, DirOpArgs{fh32, "b"}}},
	{"RENAME results", none + wccHex + none + none, &RenameRes{FromWcc: wcc}},
	{"RENAME failed", "00000012" + none + none + wccHex, &RenameRes{Stat: ErrXDev, ToWcc: wcc}},
	{"LINK arguments", fh32Hex + whereHex, &LinkArgs{fh32, where}},
	{"LINK results", none + postHex + wccHex, &LinkRes{Attr: post, DirWcc: wcc}},
	{"LINK failed", "0000001f" + none + none + none, &LinkRes{Stat: ErrMLink}},
	{"READDIR arguments", fh5Hex + "00000100 00000000" + verfHex + "00002000", &ReaddirArgs{fh5, 1 << 40, verf, 8192}},
	{"READDIR results", none + postHex + verfHex +
		some + "00000000 00000007" + nameHex + "00000100 00000000" +
		some + "00000000 00000008 00000001 62000000 ffffffff ffffffff" +
		none + some,
		&ReaddirRes{Listing{DirAttr: post, Verf: verf, Entries: []Entry{entry1, {FileID: 8, Name: "b", Cookie: 1<<64 - 1}}, EOF: true}}},
	{"READDIR failed", "00002713" + none, &ReaddirRes{Listing{Stat: ErrBadCookie}}},
	{"READDIRPLUS arguments", fh5Hex + "00000100 00000000" + verfHex + "00000200 00002000", &ReaddirplusArgs{fh5, 1 << 40, verf, 512, 8192}},
	{"READDIRPLUS results", none + none + verfHex +
		some + "00000000 00000007" + nameHex + "00000100 00000000" + postHex + some + fh5Hex +
		some + "00000000 00000008 00000001 62000000 00000000 00000002" + none + none +
		none + none,
		&ReaddirplusRes{Listing{Verf: verf, Entries: []Entry{
			{FileID: 7, Name: "ca\xff.t", Cookie: 1 << 40, Attr: post, Object: PostOpFH{true, fh5}},
			{FileID: 8, Name: "b", Cookie: 2},
		}}}},
	{"READDIRPLUS failed", "00002714" + postHex, &ReaddirplusRes{Listing{Stat: ErrNotSupp, DirAttr: post}}},
	{"FSSTAT results", none + postHex +
		"00000000 00000006 00000000 00000005 00000000 00000004 00000000 00000003 00000000 00000002 00000000 00000001 0000001e",
		&FsstatRes{Attr: post, TotalBytes: 6, FreeBytes: 5, AvailBytes: 4, TotalFiles: 3, FreeFiles: 2, AvailFiles: 1, Invarsec: 30}},
	{"FSSTAT failed", "00002711" + none, &FsstatRes{Stat: ErrBadHandle}},
	{"FSINFO results", none + none +
		"00100000 00080000 00001000 00100001 00080001 00001001 00002000 7fffffff ffffffff 00000000 00000001 0000001b",
		&FsinfoRes{ReadMax: 1 << 20, ReadPref: 1 << 19, ReadMult: 4096, WriteMax: 1<<20 + 1, WritePref: 1<<19 + 1, WriteMult: 4097, DirPref: 8192,
			MaxFileSize: 1<<63 - 1, TimeDelta: Time{0, 1}, Properties: PropLink | PropSymlink | PropHomogeneous | PropCanSetTime}},
	{"FSINFO failed", "00002716" + postHex, &FsinfoRes{Stat: ErrServerFault, Attr: post}},
	{"PATHCONF results", none + none + "0000fde8 000000ff 00000001 00000000 00000001 00000000",
		&PathconfRes{LinkMax: 65000, NameMax: 255, NoTrunc: true, CaseInsensitive: true}},
	{"PATHCONF failed", "00002718" + none, &PathconfRes{Stat: ErrJukebox}},
	{"COMMIT arguments", fh5Hex + "00000000 00000001 00000002", &CommitArgs{fh5, 1, 2}},
	{"COMMIT results", none + wccHex + verfHex, &CommitRes{Wcc: wcc, Verf: verf}},
	{"COMMIT failed", "00000045" + none + none, &CommitRes{Stat: ErrDQuot}},

	{"MNT and UMNT arguments", "00000004 2f737276", &MountPath{"/srv"}},
	{"MNT results", none + fh5Hex + "00000002 00000001 00000000", &MountRes{FH: fh5, Flavors: []oncrpc.Flavor{oncrpc.FlavorSys, oncrpc.FlavorNone}}},
	{"MNT failed", "0000000d", &MountRes{Stat: MountErrAcces}},
	{"MNT results of version 1", none + fh32Hex[9:], &MountV1Res{FH: [32]byte(fh32)}},
	{"MNT failed in version 1", "00000002", &MountV1Res{Stat: 2}},
	{"DUMP results", some + "00000001 68000000 00000002 2f730000" + some + "00000000 00000001 2f000000" + none, &MountList{{"h", "/s"}, {"", "/"}}},
	{"EXPORT results", some + "00000001 2f000000 00000000" + some + "00000002 2f730000" + some + "00000001 2a000000" + some + "00000001 68000000" + none + none,
		&ExportList{{Path: "/"}, {Path: "/s", Groups: []string{"*", "h"}}}},
}

func TestMessagesHaveTheOctetsOfRFC1813(t *testing.T) {
	for _, tt := range golden {
		t.Run(tt.name, func(t *testing.T) {
			want := unhex(t, tt.hex)
			got, err := encode(tt.m)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("encoded to\n%x, %v, want\n%x", got, err, want)
			}
			m := fresh(tt.m)
			if err := decode(want, m); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.m, m, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMessageThatEndsEarlyOrLateIsNoMessage(t *testing.T) {
	for _, tt := range golden {
		whole := unhex(t, tt.hex)
		for n := range len(whole) {
			if err := decode(whole[:n], fresh(tt.m)); !errors.Is(err, oncrpc.ErrShort) {
				t.Fatalf("%s, %d of %d octets: %v, want %v", tt.name, n, len(whole), err, oncrpc.ErrShort)
			}
		}
		if err := decode(append(whole, 0, 0, 0, 0), fresh(tt.m)); !errors.Is(err, oncrpc.ErrTrailing) {
			t.Errorf("%s and a word: %v, want %v", tt.name, err, oncrpc.ErrTrailing)
		}
	}
}

func TestAMessageDecodedOverAnotherKeepsNothingOfIt(t *testing.T) {
	for _, over := range golden {
		for _, tt := range golden {
			if reflect.TypeOf(over.m) != reflect.TypeOf(tt.m) {
				continue
			}
			m := fresh(tt.m)
			if err := decode(unhex(t, over.hex), m); err != nil {
				t.Fatal(err)
			}
			if err := decode(unhex(t, tt.hex), m); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.m, m, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s over %s (-want +got):\n%s", tt.name, over.name, diff)
			}
		}
	}
}

func TestNoResultsAreLongerThanTheirProcedureSays(t *testing.T) {
	for i := range golden {
		p, ok := procOf(golden[i].name)
		if !ok || strings.Contains(golden[i].name, "arguments") {
			continue
		}
		variable := 0
		switch m := golden[i].m.(type) {
		case *ReadRes:
			variable = oncrpc.RoundUp(len(m.Data))
		case *ReadlinkRes:
			variable = oncrpc.RoundUp(len(m.Path))
		case *ReaddirRes:
			for _, n := range m.Entries {
				variable += n.len()
			}
		case *ReaddirplusRes:
			for _, n := range m.Entries {
				variable += n.plusLen()
			}
		}
		if got := len(unhex(t, golden[i].hex)) - variable; got > p.MaxResults() {
			t.Errorf("%s: %d octets, of at most %d", golden[i].name, got, p.MaxResults())
		}
	}
	if n := Proc(1 << 31).MaxResults(); n != 0 {
		t.Errorf("a procedure that does not exist has %d octets of results", n)
	}
}

// procOf finds the procedure at the start of a golden message's name.
func procOf(name string) (Proc, bool) {
	word, _, _ := strings.Cut(name, " ")
	for p, n := range procNames {
		if n == word {
			return Proc(p), true
		}
	}
	return 0, false
}

func TestMessagesBeyondALimitAreRefusedBothWays(t *testing.T) {
	long := strings.Repeat("x", MaxPath+1)
	for name, tt := range map[string]struct {
		m    message
		kind error
	}{
		"handle":               {&GetattrArgs{make(FH, MaxFH+1)}, oncrpc.ErrLimit},
		"name":                 {&DirOpArgs{Name: long}, oncrpc.ErrLimit},
		"symbolic link":        {&SymlinkArgs{Path: long}, oncrpc.ErrLimit},
		"link read":            {&ReadlinkRes{Path: long}, oncrpc.ErrLimit},
		"data written":         {&WriteArgs{Count: MaxData + 1, Data: make([]byte, MaxData+1)}, oncrpc.ErrLimit},
		"data read":            {&ReadRes{Count: MaxData + 1, Data: make([]byte, MaxData+1)}, oncrpc.ErrLimit},
		"entry":                {&ReaddirRes{Listing{Entries: []Entry{{Name: long}}}}, oncrpc.ErrLimit},
		"path to mount":        {&MountPath{long[:MaxMountPath+1]}, oncrpc.ErrLimit},
		"flavors":              {&MountRes{Flavors: make([]oncrpc.Flavor, MaxFlavors+1)}, oncrpc.ErrLimit},
		"path of a mount":      {&MountList{{Path: long[:MaxMountPath+1]}}, oncrpc.ErrLimit},
		"host of a mount":      {&MountList{{Host: long[:MaxMountName+1]}}, oncrpc.ErrLimit},
		"group":                {&ExportList{{Groups: []string{long[:MaxMountName+1]}}}, oncrpc.ErrLimit},
		"mode of creation":     {&CreateArgs{Mode: 3}, oncrpc.ErrValue},
		"way of setting times": {&MkdirArgs{Attr: SetAttributes{Mtime: SetTime{How: 3}}}, oncrpc.ErrValue},
		"mounts":               {&many, oncrpc.ErrValue},
	} {
		if _, err := encode(tt.m); !errors.Is(err, tt.kind) {
			t.Errorf("%s: encoded with %v, want %v", name, err, tt.kind)
		}
	}
	for name, tt := range map[string]struct {
		hex  string
		m    message
		kind error
	}{
		"handle":                   {"00000041" + strings.Repeat("00", 68), &GetattrArgs{}, oncrpc.ErrLimit},
		"name":                     {none + "00001001" + strings.Repeat("00", 0x1004), &DirOpArgs{}, oncrpc.ErrLimit},
		"link read":                {none + none + "00001001" + strings.Repeat("00", 0x1004), &ReadlinkRes{}, oncrpc.ErrLimit},
		"data written":             {none + none + none + "00400001 00000000 00400001", &WriteArgs{}, oncrpc.ErrLimit},
		"data read":                {none + none + "00400001 00000000 00400001", &ReadRes{}, oncrpc.ErrLimit},
		"count of data written":    {none + none + none + "00000002 00000000 00000003 61626300", &WriteArgs{}, oncrpc.ErrValue},
		"count of data read":       {none + none + "00000002 00000000 00000003 61626300", &ReadRes{}, oncrpc.ErrValue},
		"stability asked for":      {none + none + none + none + "00000003" + none, &WriteArgs{}, oncrpc.ErrValue},
		"stability of a write":     {none + none + none + none + "00000003" + verfHex, &WriteRes{}, oncrpc.ErrValue},
		"type of file":             {none + "00000008" + strings.Repeat("00", 80), &GetattrRes{}, oncrpc.ErrValue},
		"type of a file to make":   {whereHex + none, &MknodArgs{}, oncrpc.ErrValue},
		"mode of creation":         {whereHex + "00000003", &CreateArgs{}, oncrpc.ErrValue},
		"way of setting times":     {whereHex + none + none + none + none + "00000003" + none, &MkdirArgs{}, oncrpc.ErrValue},
		"boolean":                  {"00000002" + none, &PostOpAttrRes{}, oncrpc.ErrValue},
		"flavors":                  {none + fh5Hex + "00000041" + strings.Repeat("00000001", 65), &MountRes{}, oncrpc.ErrLimit},
		"mounts":                   {strings.Repeat(some+none+none, MaxMounts+1) + none, &MountList{}, oncrpc.ErrValue},
		"groups of an export":      {some + none + strings.Repeat(some+none, MaxMounts+1) + none + none, &ExportList{}, oncrpc.ErrValue},
		"exports beyond the limit": {strings.Repeat(some+none+none, MaxMounts+1) + none, &ExportList{}, oncrpc.ErrValue},
	} {
		if err := decode(unhex(t, tt.hex), tt.m); !errors.Is(err, tt.kind) {
			t.Errorf("%s: decoded with %v, want %v", name, err, tt.kind)
		}
	}
}

// PostOpAttrRes is a message for a part that others are made of.
type PostOpAttrRes struct{ PostOpAttr }

var many = MountList(make([]Mount, MaxMounts+1))

// FuzzMessage decodes octets as each kind of message. What is decoded can be
// encoded, to octets that say the same, which is no longer than what came in.
func FuzzMessage(f *testing.F) {
	for i, tt := range golden {
		f.Add(uint8(i), unhex(f, tt.hex))
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		m := fresh(golden[int(kind)%len(golden)].m)
		if decode(b, m) != nil {
			return
		}
		once, err := encode(m)
		if err != nil {
			t.Fatalf("%+v decoded from %x does not encode: %v", m, b, err)
		}
		if len(once) != len(b) {
			t.Errorf("%d octets decode to what has %d", len(b), len(once))
		}
		again := fresh(m)
		if err := decode(once, again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("decoded again (-first +second):\n%s", diff)
		}
	})
}
