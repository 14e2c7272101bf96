package nfs_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/internal/golden"
	"github.com/weft-rdma/weft/oncrpc"
)

func TestMessagesHaveTheOctetsOfRFC1813(t *testing.T) {
	for _, tt := range golden.Messages {
		t.Run(tt.Name, func(t *testing.T) {
			want := golden.Unhex(t, tt.Hex)
			got, err := golden.Encode(tt.M)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("encoded to\n%x, %v, want\n%x", got, err, want)
			}
			m := golden.Fresh(tt.M)
			if err := golden.Decode(want, m); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.M, m, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMessageThatEndsEarlyOrLateIsNoMessage(t *testing.T) {
	for _, tt := range golden.Messages {
		whole := golden.Unhex(t, tt.Hex)
		for n := range len(whole) {
			if err := golden.Decode(whole[:n], golden.Fresh(tt.M)); !errors.Is(err, oncrpc.ErrShort) {
				t.Fatalf("%s, %d of %d octets: %v, want %v", tt.Name, n, len(whole), err, oncrpc.ErrShort)
			}
		}
		if err := golden.Decode(append(whole, 0, 0, 0, 0), golden.Fresh(tt.M)); !errors.Is(err, oncrpc.ErrTrailing) {
			t.Errorf("%s and a word: %v, want %v", tt.Name, err, oncrpc.ErrTrailing)
		}
	}
}

func TestAMessageDecodedOverAnotherKeepsNothingOfIt(t *testing.T) {
	for _, over := range golden.Messages {
		for _, tt := range golden.Messages {
			if reflect.TypeOf(over.M) != reflect.TypeOf(tt.M) {
				continue
			}
			m := golden.Fresh(tt.M)
			if err := golden.Decode(golden.Unhex(t, over.Hex), m); err != nil {
				t.Fatal(err)
			}
			if err := golden.Decode(golden.Unhex(t, tt.Hex), m); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.M, m, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s over %s (-want +got):\n%s", tt.Name, over.Name, diff)
			}
		}
	}
}

func TestNoResultsAreLongerThanTheirProcedureSays(t *testing.T) {
	for i := range golden.Messages {
		p, ok := golden.ProcOf(golden.Messages[i].Name)
		if !ok || strings.Contains(golden.Messages[i].Name, "arguments") {
			continue
		}
		variable := 0
		switch m := golden.Messages[i].M.(type) {
		case *nfs.ReadRes:
			variable = oncrpc.RoundUp(len(m.Data))
		case *nfs.ReadlinkRes:
			variable = oncrpc.RoundUp(len(m.Path))
		case *nfs.ReaddirRes:
			for _, n := range m.Entries {
				variable += n.Len(false)
			}
		case *nfs.ReaddirplusRes:
			for _, n := range m.Entries {
				variable += n.Len(true)
			}
		}
		if got := len(golden.Unhex(t, golden.Messages[i].Hex)) - variable; got > p.MaxResults() {
			t.Errorf("%s: %d octets, of at most %d", golden.Messages[i].Name, got, p.MaxResults())
		}
	}
	// By hand, from RFC 1813 §2.5 and §3.3: post_op_attr has up to 88 octets, wcc_data
	// 116, a handle with its count 68.
	for p, want := range []int{
		0, 88, 120, 4 + 68 + 2*88, 96, 96, 104, 136, 4 + 72 + 88 + 116, 280, 280, 280, 120, 120, 236, 208,
		4 + 88 + 8 + 8, 108, 144, 4 + 88 + 48, 116, 128,
	} {
		if got := nfs.Proc(p).MaxResults(); got != want {
			t.Errorf("%v: at most %d octets, want %d", nfs.Proc(p), got, want)
		}
	}
	if n := nfs.Proc(1 << 31).MaxResults(); n != 0 {
		t.Errorf("a procedure that does not exist has %d octets of results", n)
	}
}

func TestMessagesBeyondALimitAreRefusedBothWays(t *testing.T) {
	long := strings.Repeat("x", nfs.MaxPath+1)
	for name, tt := range map[string]struct {
		m    golden.Codec
		kind error
	}{
		"handle":               {&nfs.GetattrArgs{make(nfs.FH, nfs.MaxFH+1)}, oncrpc.ErrLimit},
		"name":                 {&nfs.DirOpArgs{Name: long}, oncrpc.ErrLimit},
		"symbolic link":        {&nfs.SymlinkArgs{Path: long}, oncrpc.ErrLimit},
		"link read":            {&nfs.ReadlinkRes{Path: long}, oncrpc.ErrLimit},
		"data written":         {&nfs.WriteArgs{Count: nfs.MaxData + 1, Data: make([]byte, nfs.MaxData+1)}, oncrpc.ErrLimit},
		"data read":            {&nfs.ReadRes{Count: nfs.MaxData + 1, Data: make([]byte, nfs.MaxData+1)}, oncrpc.ErrLimit},
		"entry":                {&nfs.ReaddirRes{nfs.Listing{Entries: []nfs.Entry{{Name: long}}}}, oncrpc.ErrLimit},
		"path to mount":        {&nfs.MountPath{long[:nfs.MaxMountPath+1]}, oncrpc.ErrLimit},
		"flavors":              {&nfs.MountRes{Flavors: make([]oncrpc.Flavor, nfs.MaxFlavors+1)}, oncrpc.ErrLimit},
		"path of a mount":      {&nfs.MountList{{Path: long[:nfs.MaxMountPath+1]}}, oncrpc.ErrLimit},
		"host of a mount":      {&nfs.MountList{{Host: long[:nfs.MaxMountName+1]}}, oncrpc.ErrLimit},
		"group":                {&nfs.ExportList{{Groups: []string{long[:nfs.MaxMountName+1]}}}, oncrpc.ErrLimit},
		"mode of creation":     {&nfs.CreateArgs{Mode: 3}, oncrpc.ErrValue},
		"way of setting times": {&nfs.MkdirArgs{Attr: nfs.SetAttributes{Mtime: nfs.SetTime{How: 3}}}, oncrpc.ErrValue},
		"mounts":               {&many, oncrpc.ErrValue},
	} {
		if _, err := golden.Encode(tt.m); !errors.Is(err, tt.kind) {
			t.Errorf("%s: encoded with %v, want %v", name, err, tt.kind)
		}
	}
	for name, tt := range map[string]struct {
		hex  string
		m    golden.Codec
		kind error
	}{
		"handle":                   {"00000041" + strings.Repeat("00", 68), &nfs.GetattrArgs{}, oncrpc.ErrLimit},
		"name":                     {golden.None + "00001001" + strings.Repeat("00", 0x1004), &nfs.DirOpArgs{}, oncrpc.ErrLimit},
		"link read":                {golden.None + golden.None + "00001001" + strings.Repeat("00", 0x1004), &nfs.ReadlinkRes{}, oncrpc.ErrLimit},
		"data written":             {golden.None + golden.None + golden.None + "00400001 00000000 00400001", &nfs.WriteArgs{}, oncrpc.ErrLimit},
		"data read":                {golden.None + golden.None + "00400001 00000000 00400001", &nfs.ReadRes{}, oncrpc.ErrLimit},
		"count of data written":    {golden.None + golden.None + golden.None + "00000002 00000000 00000003 61626300", &nfs.WriteArgs{}, oncrpc.ErrValue},
		"count of data read":       {golden.None + golden.None + "00000002 00000000 00000003 61626300", &nfs.ReadRes{}, oncrpc.ErrValue},
		"stability asked for":      {golden.None + golden.None + golden.None + golden.None + "00000003" + golden.None, &nfs.WriteArgs{}, oncrpc.ErrValue},
		"stability of a write":     {golden.None + golden.None + golden.None + golden.None + "00000003" + golden.VerfHex, &nfs.WriteRes{}, oncrpc.ErrValue},
		"type of file":             {golden.None + "00000008" + strings.Repeat("00", 80), &nfs.GetattrRes{}, oncrpc.ErrValue},
		"type of a file to make":   {golden.WhereHex + golden.None, &nfs.MknodArgs{}, oncrpc.ErrValue},
		"mode of creation":         {golden.WhereHex + "00000003", &nfs.CreateArgs{}, oncrpc.ErrValue},
		"way of setting times":     {golden.WhereHex + golden.None + golden.None + golden.None + golden.None + "00000003" + golden.None, &nfs.MkdirArgs{}, oncrpc.ErrValue},
		"boolean":                  {"00000002" + golden.None, &PostOpAttrRes{}, oncrpc.ErrValue},
		"flavors":                  {golden.None + golden.FH5Hex + "00000041" + strings.Repeat("00000001", 65), &nfs.MountRes{}, oncrpc.ErrLimit},
		"mounts":                   {strings.Repeat(golden.Some+golden.None+golden.None, nfs.MaxMounts+1) + golden.None, &nfs.MountList{}, oncrpc.ErrValue},
		"groups of an export":      {golden.Some + golden.None + strings.Repeat(golden.Some+golden.None, nfs.MaxMounts+1) + golden.None + golden.None, &nfs.ExportList{}, oncrpc.ErrValue},
		"exports beyond the limit": {strings.Repeat(golden.Some+golden.None+golden.None, nfs.MaxMounts+1) + golden.None, &nfs.ExportList{}, oncrpc.ErrValue},
	} {
		if err := golden.Decode(golden.Unhex(t, tt.hex), tt.m); !errors.Is(err, tt.kind) {
			t.Errorf("%s: decoded with %v, want %v", name, err, tt.kind)
		}
	}
}

// PostOpAttrRes is a message for a part that others are made of.
type PostOpAttrRes struct{ nfs.PostOpAttr }

var many = nfs.MountList(make([]nfs.Mount, nfs.MaxMounts+1))

// FuzzMessage decodes octets as each kind of message. What is decoded can be
// encoded, to octets that say the same, which is no longer than what came in.
func FuzzMessage(f *testing.F) {
	for i, tt := range golden.Messages {
		f.Add(uint8(i), golden.Unhex(f, tt.Hex))
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		m := golden.Fresh(golden.Messages[int(kind)%len(golden.Messages)].M)
		if golden.Decode(b, m) != nil {
			return
		}
		once, err := golden.Encode(m)
		if err != nil {
			t.Fatalf("%+v decoded from %x does not encode: %v", m, b, err)
		}
		if len(once) != len(b) {
			t.Errorf("%d octets decode to what has %d", len(b), len(once))
		}
		again := golden.Fresh(m)
		if err := golden.Decode(once, again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("decoded again (-first +second):\n%s", diff)
		}
	})
}
