package binding

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/internal/golden"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
)

// Heads of RPC messages: 40 and 24 octets.
const (
	callHex  = "5a5a0002 00000000 00000002 000186a3 00000003 00000007 00000000 00000000 00000000 00000000"
	replyHex = "5a5a0003 00000001 00000000 00000000 00000000 00000000"
)

var bindings = NFS()

func bindingOf(t testing.TB, vers uint32) payload.Binding {
	t.Helper()
	b := bindings[payload.ProgramVersion{Prog: nfs.Program, Vers: vers}]
	if b == nil {
		t.Fatalf("NFS version %d has no binding", vers)
	}
	return b
}

// walk walks a message, whose items are in chunks of the given lengths, and
// returns the items that may be reduced.
func walk(b payload.Binding, call bool, proc uint32, message []byte, chunks []int) (all, eligible []payload.Item, err error) {
	var c payload.Cursor
	at := 24
	if call {
		at = 40
	}
	if chunks == nil {
		c.Whole(message, at)
	} else {
		c.Reduced(message, at, chunks)
	}
	if call {
		err = b.WalkCall(proc, &c)
	} else {
		err = b.WalkReply(proc, &c)
	}
	if err == nil {
		err = c.End()
	}
	for _, item := range c.Items() {
		if item.Eligible {
			eligible = append(eligible, item)
		}
	}
	return slices.Clone(c.Items()), eligible, err
}

const (
	v2FHHex    = "a0a1a2a3 a4a5a6a7 a8a9aaab acadaeaf b0b1b2b3 b4b5b6b7 b8b9babb bcbdbebf"
	v2SattrHex = "000001a4 ffffffff ffffffff 00000000 ffffffff ffffffff ffffffff ffffffff"
)

var v2FattrHex = strings.Repeat("00000001", v2Fattr/4)

// Where the items are that may be reduced, in octets from the XID, is what
// RFC 8267 §4 and RFC 1813 make it for AUTH_NONE and handles of 32 octets. What
// stands around an item in its union stays in line.
//
// Claims: P-3.4-1 P-3.4-3 P-3.4-19 P-3.6-6 P8166-3.4.4.3-1 P8267-4-1
func TestEligibleItemsAreWhereTheBindingHasThem(t *testing.T) {
	for _, tt := range []struct {
		name string
		vers uint32
		proc uint32
		call bool
		hex  string // arguments or results, with the item's data
		at   int    // the item's position; 0: there is none
		n    int    // its octets
	}{
		{"WRITE", nfs.V3, 7, true, golden.FH32Hex + "00000000 00000000 00000005 00000002 00000005 6162636465 000000", 40 + 24 + 32, 5},
		{"WRITE of nothing", nfs.V3, 7, true, golden.FH32Hex + "00000000 00000000 00000000 00000002 00000000", 40 + 24 + 32, 0},
		{"SYMLINK with the least attributes", nfs.V3, 10, true, golden.FH32Hex + golden.NameHex + golden.None + golden.None + golden.None + golden.None + golden.None + golden.None + "00000003 612f6200", 40 + 12 + 32 + 8 + 24, 3},
		{"SYMLINK with all attributes", nfs.V3, 10, true,
			golden.FH32Hex + golden.NameHex + golden.Some + golden.None + golden.Some + golden.None + golden.Some + golden.None + golden.Some + golden.None + golden.None + "00000002" + golden.None + golden.None + "00000002" + golden.None + golden.None + "00000003 612f6200",
			40 + 12 + 32 + 8 + 60, 3},
		{"READ", nfs.V3, 6, false, golden.None + golden.PostHex + "00000005 00000001 00000005 6162636465 000000", 24 + 16 + 88, 5},
		{"READ without attributes", nfs.V3, 6, false, golden.None + golden.None + "00000005 00000001 00000005 6162636465 000000", 24 + 16 + 4, 5},
		{"READ failed", nfs.V3, 6, false, "00000005" + golden.PostHex, 0, 0},
		{"READLINK", nfs.V3, 5, false, golden.None + golden.PostHex + "00000003 612f6200", 24 + 8 + 88, 3},
		{"READLINK without attributes", nfs.V3, 5, false, golden.None + golden.None + "00000003 612f6200", 24 + 8 + 4, 3},
		{"READLINK failed", nfs.V3, 5, false, "00000016" + golden.None, 0, 0},
		{"version 2 WRITE", nfs.V2, 8, true, v2FHHex + golden.None + golden.None + golden.None + "00000005 6162636465 000000", 40 + 48, 5},
		{"version 2 SYMLINK", nfs.V2, 13, true, v2FHHex + golden.NameHex + "00000003 612f6200" + v2SattrHex, 40 + 40 + 8, 3},
		{"version 2 READ", nfs.V2, 6, false, golden.None + v2FattrHex + "00000005 6162636465 000000", 24 + 76, 5},
		{"version 2 READ failed", nfs.V2, 6, false, "00000046", 0, 0},
		{"version 2 READLINK", nfs.V2, 5, false, golden.None + "00000003 612f6200", 24 + 8, 3},
		{"version 2 READLINK failed", nfs.V2, 5, false, "00000002", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			head := replyHex
			if tt.call {
				head = callHex
			}
			message := golden.Unhex(t, head+tt.hex)
			_, got, err := walk(bindingOf(t, tt.vers), tt.call, tt.proc, message, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tt.at == 0 {
				if len(got) != 0 {
					t.Errorf("may be reduced: %+v", got)
				}
				return
			}
			want := []payload.Item{{Run: payload.Run{Offset: tt.at, Length: tt.n}, Eligible: true, At: tt.at, Chunk: -1}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("items (-want +got):\n%s", diff)
			}

			// The same with the item in a chunk, without its roundup and with it.
			reduced := slices.Delete(slices.Clone(message), tt.at, tt.at+oncrpc.RoundUp(tt.n))
			want[0].Chunk = 0
			for _, n := range []int{tt.n, oncrpc.RoundUp(tt.n)} {
				_, got, err := walk(bindingOf(t, tt.vers), tt.call, tt.proc, reduced, []int{n})
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("reduced: %v, items (-want +got):\n%s", err, diff)
				}
			}
			if _, _, err := walk(bindingOf(t, tt.vers), tt.call, tt.proc, reduced, []int{oncrpc.RoundUp(tt.n) + 4}); err == nil && tt.n > 0 {
				t.Error("a chunk was taken that holds another length than the item's")
			}
		})
	}
}

// Nothing else of versions 2 and 3 may be reduced: no handle, no name, no entry.
//
// RFC 8267 §4 lists the items; an item that is not in the list stays in line.
//
// Claims: P8166-3.4.2-1 P8166-6.1-1 P8267-4-1
func TestNothingElseIsEligible(t *testing.T) {
	eligible := map[string]bool{"WRITE arguments": true, "SYMLINK arguments": true, "READ results": true, "READLINK results": true}
	for _, tt := range golden.Messages {
		p, ok := golden.ProcOf(tt.Name)
		if !ok {
			continue
		}
		call := strings.Contains(tt.Name, "arguments")
		head := replyHex
		if call {
			head = callHex
		}
		_, got, err := walk(V3{}, call, uint32(p), golden.Unhex(t, head+tt.Hex), nil)
		if err != nil || (len(got) == 1) != eligible[tt.Name] {
			t.Errorf("%s: %v, items %+v", tt.Name, err, got)
		}
	}
}

// An RDMA_MSGP may pad any opaque item of a call: the walk visits each.
func TestAWalkOfACallVisitsEveryOpaqueItem(t *testing.T) {
	for _, tt := range []struct {
		name string
		vers uint32
		proc uint32
		hex  string
		want []int // lengths of the items
	}{
		{"NULL", nfs.V3, 0, "", nil},
		{"GETATTR", nfs.V3, 1, golden.FH5Hex, []int{5}},
		{"SETATTR", nfs.V3, 2, golden.FH5Hex + golden.SetHex + golden.Some + golden.None + golden.None, []int{5}},
		{"LOOKUP", nfs.V3, 3, golden.WhereHex, []int{5, 5}},
		{"ACCESS", nfs.V3, 4, golden.FH5Hex + golden.None, []int{5}},
		{"READLINK", nfs.V3, 5, golden.FH5Hex, []int{5}},
		{"READ", nfs.V3, 6, golden.FH5Hex + golden.None + golden.None + golden.None, []int{5}},
		{"WRITE", nfs.V3, 7, golden.FH5Hex + golden.None + golden.None + golden.None + golden.None + "00000002 61620000", []int{5, 2}},
		{"CREATE", nfs.V3, 8, golden.WhereHex + golden.None + golden.SetHex, []int{5, 5}},
		{"exclusive CREATE", nfs.V3, 8, golden.WhereHex + "00000002" + golden.VerfHex, []int{5, 5}},
		{"MKDIR", nfs.V3, 9, golden.WhereHex + golden.SetHex, []int{5, 5}},
		{"SYMLINK", nfs.V3, 10, golden.WhereHex + golden.SetHex + "00000002 61620000", []int{5, 5, 2}},
		{"MKNOD of a device", nfs.V3, 11, golden.WhereHex + "00000003" + golden.SetHex + golden.None + golden.None, []int{5, 5}},
		{"MKNOD of a socket", nfs.V3, 11, golden.WhereHex + "00000006" + golden.SetHex, []int{5, 5}},
		{"MKNOD of what it does not make", nfs.V3, 11, golden.WhereHex + "00000001", []int{5, 5}},
		{"REMOVE", nfs.V3, 12, golden.WhereHex, []int{5, 5}},
		{"RMDIR", nfs.V3, 13, golden.WhereHex, []int{5, 5}},
		{"RENAME", nfs.V3, 14, golden.WhereHex + golden.FH32Hex + "00000001 62000000", []int{5, 5, 32, 1}},
		{"LINK", nfs.V3, 15, golden.FH32Hex + golden.WhereHex, []int{32, 5, 5}},
		{"READDIR", nfs.V3, 16, golden.FH5Hex + golden.None + golden.None + golden.VerfHex + golden.None, []int{5}},
		{"READDIRPLUS", nfs.V3, 17, golden.FH5Hex + golden.None + golden.None + golden.VerfHex + golden.None + golden.None, []int{5}},
		{"FSSTAT", nfs.V3, 18, golden.FH5Hex, []int{5}},
		{"FSINFO", nfs.V3, 19, golden.FH5Hex, []int{5}},
		{"PATHCONF", nfs.V3, 20, golden.FH5Hex, []int{5}},
		{"COMMIT", nfs.V3, 21, golden.FH5Hex + golden.None + golden.None + golden.None, []int{5}},
		{"a procedure that there is not", nfs.V3, 22, "00000001 00000002", nil},

		{"version 2 NULL", nfs.V2, 0, "", nil},
		{"version 2 GETATTR", nfs.V2, 1, v2FHHex, nil},
		{"version 2 SETATTR", nfs.V2, 2, v2FHHex + v2SattrHex, nil},
		{"version 2 ROOT", nfs.V2, 3, "", nil},
		{"version 2 LOOKUP", nfs.V2, 4, v2FHHex + golden.NameHex, []int{5}},
		{"version 2 READLINK", nfs.V2, 5, v2FHHex, nil},
		{"version 2 READ", nfs.V2, 6, v2FHHex + golden.None + golden.None + golden.None, nil},
		{"version 2 WRITECACHE", nfs.V2, 7, "", nil},
		{"version 2 WRITE", nfs.V2, 8, v2FHHex + golden.None + golden.None + golden.None + "00000002 61620000", []int{2}},
		{"version 2 CREATE", nfs.V2, 9, v2FHHex + golden.NameHex + v2SattrHex, []int{5}},
		{"version 2 REMOVE", nfs.V2, 10, v2FHHex + golden.NameHex, []int{5}},
		{"version 2 RENAME", nfs.V2, 11, v2FHHex + golden.NameHex + v2FHHex + "00000001 62000000", []int{5, 1}},
		{"version 2 LINK", nfs.V2, 12, v2FHHex + v2FHHex + golden.NameHex, []int{5}},
		{"version 2 SYMLINK", nfs.V2, 13, v2FHHex + golden.NameHex + "00000002 61620000" + v2SattrHex, []int{5, 2}},
		{"version 2 MKDIR", nfs.V2, 14, v2FHHex + golden.NameHex + v2SattrHex, []int{5}},
		{"version 2 RMDIR", nfs.V2, 15, v2FHHex + golden.NameHex, []int{5}},
		{"version 2 READDIR", nfs.V2, 16, v2FHHex + golden.None + golden.None, nil},
		{"version 2 STATFS", nfs.V2, 17, v2FHHex, nil},
		{"version 2, a procedure that there is not", nfs.V2, 18, "00000001 00000002", nil},
	} {
		items, _, err := walk(bindingOf(t, tt.vers), true, tt.proc, golden.Unhex(t, callHex+tt.hex), nil)
		var got []int
		for _, item := range items {
			got = append(got, item.Length)
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, items of %v octets, want %v", tt.name, err, got, tt.want)
		}
	}
}

func TestAWalkEndsAtWhatIsNoMessage(t *testing.T) {
	for _, tt := range []struct {
		name string
		proc nfs.Proc
		call bool
		hex  string
	}{
		{"handle too long", nfs.ProcGetattr, true, "00000041" + strings.Repeat("00", 68)},
		{"mode of creation", nfs.ProcCreate, true, golden.WhereHex + "00000003" + golden.SetHex},
		{"way of setting times", nfs.ProcMkdir, true, golden.WhereHex + golden.None + golden.None + golden.None + golden.None + "00000003" + golden.None},
		{"boolean", nfs.ProcSetattr, true, golden.FH5Hex + "00000002" + golden.None + golden.None + golden.None + golden.None + golden.None + golden.None},
		{"data too long", nfs.ProcWrite, true, golden.FH5Hex + golden.None + golden.None + golden.None + golden.None + "00400001"},
		{"data cut short", nfs.ProcWrite, true, golden.FH5Hex + golden.None + golden.None + golden.None + golden.None + "00000008 61626364"},
		{"result cut short", nfs.ProcRead, false, golden.None + golden.None + "00000008 00000000 00000008 61626364"},
		{"attributes cut short", nfs.ProcReadlink, false, golden.None + golden.Some + golden.None},
	} {
		head := replyHex
		if tt.call {
			head = callHex
		}
		if _, got, err := walk(V3{}, tt.call, uint32(tt.proc), golden.Unhex(t, head+tt.hex), nil); err == nil {
			t.Errorf("%s: was walked, items %+v", tt.name, got)
		}
	}
}

// The bounds of replies are what RFC 1813 makes them with a verifier of no octets
// and all attributes, and with handles as long as they can be.
//
// Claims: P8166-6.2-1
func TestRepliesAreBounded(t *testing.T) {
	readdir := func(count string) string { return golden.FH32Hex + golden.None + golden.None + golden.VerfHex + count }
	for _, tt := range []struct {
		name  string
		vers  uint32
		proc  uint32
		args  string
		fixed int
		items []int
	}{
		{"NULL", nfs.V3, 0, "", 24, nil},
		{"GETATTR", nfs.V3, 1, golden.FH5Hex, 112, nil},
		{"SETATTR", nfs.V3, 2, "", 144, nil},
		{"LOOKUP", nfs.V3, 3, "", 272, nil},
		{"ACCESS", nfs.V3, 4, "", 120, nil},
		{"READLINK", nfs.V3, 5, golden.FH5Hex, 120, []int{4096}},
		{"READ", nfs.V3, 6, golden.FH32Hex + golden.None + golden.None + "00001770", 128, []int{6000}},
		{"READ of all there is", nfs.V3, 6, golden.FH32Hex + golden.None + golden.None + "ffffffff", 128, []int{nfs.MaxData}},
		{"WRITE", nfs.V3, 7, "", 160, nil},
		{"CREATE", nfs.V3, 8, "", 304, nil},
		{"MKDIR", nfs.V3, 9, "", 304, nil},
		{"SYMLINK", nfs.V3, 10, "", 304, nil},
		{"MKNOD", nfs.V3, 11, "", 304, nil},
		{"REMOVE", nfs.V3, 12, "", 144, nil},
		{"RMDIR", nfs.V3, 13, "", 144, nil},
		{"RENAME", nfs.V3, 14, "", 260, nil},
		{"LINK", nfs.V3, 15, "", 232, nil},
		{"READDIR", nfs.V3, 16, readdir("00002000"), 24 + 4 + 88 + 16 + 8192, nil},
		{"READDIR of nothing, which can fail", nfs.V3, 16, readdir(golden.None), 24 + 4 + 88 + 16, nil},
		{"READDIR of all there is", nfs.V3, 16, readdir("ffffffff"), 24 + 4 + 88 + 16 + nfs.MaxData, nil},
		{"READDIRPLUS", nfs.V3, 17, readdir("00000200 00002000"), 24 + 4 + 88 + 16 + 8192, nil},
		{"FSSTAT", nfs.V3, 18, "", 168, nil},
		{"FSINFO", nfs.V3, 19, "", 164, nil},
		{"PATHCONF", nfs.V3, 20, "", 140, nil},
		{"COMMIT", nfs.V3, 21, "", 152, nil},
		{"a procedure that there is not", nfs.V3, 22, "", -1, nil},

		{"version 2 GETATTR", nfs.V2, 1, "", 24 + 72, nil},
		{"version 2 LOOKUP", nfs.V2, 4, "", 24 + 104, nil},
		{"version 2 READLINK", nfs.V2, 5, "", 24 + 8, []int{1024}},
		{"version 2 READ", nfs.V2, 6, v2FHHex + golden.None + "00001000" + golden.None, 24 + 76, []int{4096}},
		{"version 2 READ of all there is", nfs.V2, 6, v2FHHex + golden.None + "ffffffff" + golden.None, 24 + 76, []int{8192}},
		{"version 2 READDIR", nfs.V2, 16, v2FHHex + golden.None + "00001000", 24 + 12 + 4096, nil},
		{"version 2 STATFS", nfs.V2, 17, "", 24 + 24, nil},
		{"version 2, a procedure that there is not", nfs.V2, 18, "", -1, nil},
	} {
		var c payload.Cursor
		c.Whole(golden.Unhex(t, tt.args), 0)
		got := bindingOf(t, tt.vers).MaxReply(tt.proc, &c)
		want := payload.ReplyBound{Fixed: tt.fixed, Items: tt.items}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestEveryVersionPermitsRepliesByReadChunks(t *testing.T) {
	for _, vers := range []uint32{nfs.V2, nfs.V3} {
		if !bindingOf(t, vers).ReadRead(uint32(nfs.ProcRead)) {
			t.Errorf("version %d does not", vers)
		}
	}
}

// FuzzBinding walks octets as messages of versions 2 and 3. Items are in
// order and within the message; one that may be reduced can be taken out and
// the rest be walked with the same result; what the codec takes, the walk takes.
func FuzzBinding(f *testing.F) {
	for i, tt := range golden.Messages {
		if p, ok := golden.ProcOf(tt.Name); ok {
			f.Add(true, strings.Contains(tt.Name, "arguments"), uint32(p), uint8(i), golden.Unhex(f, tt.Hex))
		}
	}
	f.Add(false, true, uint32(13), uint8(0), golden.Unhex(f, v2FHHex+golden.NameHex+"00000003 612f6200"+v2SattrHex))
	f.Add(false, false, uint32(6), uint8(0), golden.Unhex(f, golden.None+v2FattrHex+"00000005 6162636465 000000"))
	f.Fuzz(func(t *testing.T, v3, call bool, proc uint32, kind uint8, body []byte) {
		vers, head := uint32(nfs.V2), replyHex
		if v3 {
			vers = nfs.V3
		}
		if call {
			head = callHex
		}
		b := bindingOf(t, vers)
		message := append(golden.Unhex(t, head), body...)
		items, eligible, err := walk(b, call, proc, message, nil)

		example := golden.Messages[int(kind)%len(golden.Messages)]
		if p, ok := golden.ProcOf(example.Name); ok && v3 && uint32(p) == proc && call == strings.Contains(example.Name, "arguments") &&
			golden.Decode(body, golden.Fresh(example.M)) == nil && err != nil {
			t.Fatalf("%v %x is decoded but not walked: %v", p, body, err)
		}
		if call {
			var c payload.Cursor
			c.Whole(message, 40)
			if bound := b.MaxReply(proc, &c); bound.Fixed < -1 || bound.Fixed > 24+4+88+16+nfs.MaxData {
				t.Fatalf("a reply to procedure %d can have %d octets", proc, bound.Fixed)
			}
		}
		if err != nil {
			return
		}
		end := 0
		for _, item := range items {
			if item.Offset < end || item.Offset%4 != 0 || item.Offset+item.Length > len(message) {
				t.Fatalf("item %+v in %d octets, behind %d", item, len(message), end)
			}
			end = item.Offset + oncrpc.RoundUp(item.Length)
		}
		if len(eligible) > 1 {
			t.Fatalf("%d items may be reduced", len(eligible))
		}
		for _, item := range eligible {
			reduced := slices.Delete(slices.Clone(message), item.Offset, item.Offset+oncrpc.RoundUp(item.Length))
			_, again, err := walk(b, call, proc, reduced, []int{item.Length})
			item.Chunk = 0
			if err != nil || !slices.Equal(again, []payload.Item{item}) {
				t.Fatalf("reduced: %v, got %+v, want %+v", err, again, item)
			}
		}
	})
}
