package binding

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// A compound is a message of testdata/compounds.txt.
type compound struct {
	name          string
	reply         bool
	message       []byte
	at            int // where arguments or results begin
	position, len int // of the item in a chunk
	chunks        []int
}

func compounds(t testing.TB) (list []compound) {
	f, err := os.Open("testdata/compounds.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		switch {
		case line == "" || line[0] == '#':
		case strings.HasPrefix(line, "call ") || strings.HasPrefix(line, "reply "):
			m := compound{name: line, reply: line[0] == 'r'}
			if _, at, ok := strings.Cut(line, " at "); ok {
				if _, err := fmt.Sscanf(at, "%d+%d", &m.position, &m.len); err != nil {
					t.Fatal(line, err)
				}
				m.chunks = []int{m.len}
			}
			list = append(list, m)
		default:
			b, err := hex.DecodeString(strings.ReplaceAll(line, " ", ""))
			if err != nil {
				t.Fatal(line, err)
			}
			m := &list[len(list)-1]
			m.message = append(m.message, b...)
		}
	}
	for i := range list {
		m := &list[i]
		if m.reply {
			var r oncrpc.Reply
			m.at, err = r.Parse(m.message)
		} else {
			var c oncrpc.Call
			m.at, err = c.Parse(m.message)
		}
		if err != nil {
			t.Fatal(m.name, err)
		}
	}
	return list
}

func (m *compound) walk(c *payload.Cursor) error {
	if m.reply {
		return V4{}.WalkReply(procCompound4, c)
	}
	return V4{}.WalkCall(procCompound4, c)
}

// What Linux sends is walked to its last octet, and an item that it has moved to
// a chunk belongs where its Read chunk said so.
func TestCompoundsOfLinuxAreWalkedToTheirEnds(t *testing.T) {
	for _, m := range compounds(t) {
		var c payload.Cursor
		c.Reduced(m.message, m.at, m.chunks)
		if err := m.walk(&c); err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		for _, it := range c.Items() {
			if it.Chunk == 0 && (it.Offset != m.position || it.Length != m.len || !it.Eligible) {
				t.Errorf("%s: reduced item is %+v", m.name, it)
			}
		}
		if c.Chunks() != len(m.chunks) {
			t.Errorf("%s: %d chunks have met an item, want %d", m.name, c.Chunks(), len(m.chunks))
		}
		c.Reduced(append(slices.Clip(m.message), 0, 0, 0, 0), m.at, m.chunks)
		if m.walk(&c) == nil {
			t.Errorf("%s: four octets behind it are not noticed", m.name)
		}
	}
}

// The replies of Linux are no longer than was estimated from the calls.
func TestRepliesOfLinuxAreWithinTheirEstimates(t *testing.T) {
	list := compounds(t)
	for i := 0; i+1 < len(list); i += 2 {
		call, reply := list[i], list[i+1]
		var c payload.Cursor
		c.Reduced(call.message, call.at, call.chunks)
		bound := V4{}.MaxReply(procCompound4, &c)
		if len(reply.message) > bound.Fixed || len(reply.chunks) > len(bound.Items) {
			t.Errorf("%s: %d octets and %d chunks, the estimate is %+v", reply.name, len(reply.message), len(reply.chunks), bound)
		}
	}
}

// Of all operations these have an eligible item, and nothing else has: not
// READ_PLUS, not WRITE_SAME, not the values of extended attributes.
//
// Claims: P-3.4-3 P8166-3.4.2-1 P8166-3.4.4.3-1 P8166-6.1-1 P8267-6.1-1
func TestOnlyFourOperationsHaveEligibleItems(t *testing.T) {
	got := map[string]int{}
	note := func(b []byte, items []payload.Item, op uint32, what string) {
		for _, it := range items {
			if it.Eligible {
				got[fmt.Sprintf("%d %s: %s", op, what, b[it.At:it.At+it.Length])]++
			}
		}
	}
	for _, ex := range examples4 {
		for _, args := range ex.args {
			b := compoundArgs(fmt.Sprint(ex.op, " ", args))
			items, _ := walkArgs(b)
			note(b, items, ex.op, "arguments")
		}
		for _, result := range ex.results {
			b := compoundResults(0, fmt.Sprint(ex.op, " ", result))
			items, _ := walkResults(b)
			note(b, items, ex.op, "result")
		}
	}
	want := map[string]int{
		"6 arguments: target": 1, // CREATE of a symbolic link
		"25 result: data":     1, // READ
		"25 result: ":         1,
		"27 result: link":     1, // READLINK
		"38 arguments: data":  1, // WRITE
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("eligible: %v\nwant: %v", got, want)
	}
}

// The k-th operation of a COMPOUND that has an eligible result takes the k-th
// Write chunk, and those for which none is left return inline.
//
// Claims: P8267-6.4.1-1 P8267-6.4.1-5 P5667-5-1 P-3.6-6
func TestReadsTakeWriteChunksInTheirOrder(t *testing.T) {
	results := func(data1, link, data2 string) []byte {
		return compoundResults(0,
			"22 0", "15 0", "25 0 1 "+data1,
			"22 0", "15 0", "27 0 "+link,
			"22 0", "15 0", "25 0 0 "+data2)
	}
	whole := results("'first'", "'second'", "'third'")
	var c payload.Cursor
	c.Whole(whole, walkedFrom)
	if err := (V4{}).WalkReply(procCompound4, &c); err != nil {
		t.Fatal(err)
	}
	want := eligibleRuns(&c)
	if len(want) != 3 {
		t.Fatalf("%d eligible items, want 3", len(want))
	}
	// Without the data: the count words alone.
	for name, tt := range map[string]struct {
		message []byte
		chunks  []int
		used    []int // by item
	}{
		"all reduced":        {results("5", "6", "5"), []int{5, 6, 5}, []int{0, 1, 2}},
		"one chunk of three": {results("5", "'second'", "'third'"), []int{5}, []int{0, -1, -1}},
		"the second inline":  {results("5", "'second'", "5"), []int{5, payload.Inline, 5}, []int{0, -1, 2}},
	} {
		c.Reduced(tt.message, walkedFrom, tt.chunks)
		if err := (V4{}).WalkReply(procCompound4, &c); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var used []int
		for _, it := range c.Items() {
			if it.Eligible {
				used = append(used, it.Chunk)
			}
		}
		if got := eligibleRuns(&c); !slices.Equal(got, want) || !slices.Equal(used, tt.used) {
			t.Errorf("%s: items at %v in chunks %v, want %v in %v", name, got, used, want, tt.used)
		}
	}
	// What is of one size cannot be taken for what is of another.
	c.Reduced(results("5", "6", "5"), walkedFrom, []int{6, 5, 5})
	if (V4{}).WalkReply(procCompound4, &c) == nil {
		t.Error("chunks in another order are accepted")
	}
}

func eligibleRuns(c *payload.Cursor) (list []payload.Run) {
	for _, it := range c.Items() {
		if it.Eligible {
			list = append(list, it.Run)
		}
	}
	return list
}

// A Write chunk without segments, or with none that holds anything, has its
// operation return inline, and one whose operation fails comes back with nothing
// in it.
//
// Claims: P8267-6.4.1-3 P8267-6.4.1-4 P5667-5-2
func TestEmptyWriteChunksHaveReadsReturnInline(t *testing.T) {
	data := strings.Repeat("x", 40)
	reads := func(last string) []byte {
		b := compoundResults(0, "22 0", "25 0 1 '"+data+"'", "25 0 1 '"+data+"'", "27 "+last)
		return append(make([]byte, 24-walkedFrom), b...) // behind the header of a reply
	}
	full := wire.WriteChunk{{Handle: 1, Length: 64}}
	for name, tt := range map[string]struct {
		results []byte
		writes  []wire.WriteChunk
		want    []uint64 // octets in each chunk
	}{
		"no segments":      {reads("0 'link'"), []wire.WriteChunk{{}, full, full}, []uint64{0, 40, 4}},
		"no octets":        {reads("0 'link'"), []wire.WriteChunk{{{Handle: 9}, {Handle: 9}}, full, full}, []uint64{0, 40, 4}},
		"a failure":        {reads("22"), []wire.WriteChunk{full, full, full}, []uint64{40, 40, 0}},
		"nothing is empty": {reads("0 'link'"), []wire.WriteChunk{full, full, full}, []uint64{40, 40, 4}},
	} {
		var c payload.Cursor
		c.Whole(tt.results, 24)
		if err := (V4{}).WalkReply(procCompound4, &c); err != nil {
			t.Fatal(name, err)
		}
		call := wire.Header{XID: 1, Version: wire.Version, Writes: tt.writes}
		var plan payload.ReplyPlan
		if err := plan.Plan(&call, len(tt.results), eligibleRuns(&c), 4096); err != nil {
			t.Fatal(name, err)
		}
		left := len(tt.results)
		for i, chunk := range plan.Header.Writes {
			if chunk.Length() != tt.want[i] || len(chunk) != len(tt.writes[i]) {
				t.Errorf("%s: chunk %d comes back as %+v, want %d octets in as many segments as there were", name, i, chunk, tt.want[i])
			}
			left -= int(tt.want[i])
		}
		for _, run := range plan.Inline {
			left -= run.Length
		}
		if left != 0 {
			t.Errorf("%s: %d octets are neither in chunks nor inline", name, left)
		}
	}
}

// Several WRITEs of one COMPOUND each have their data at a position of their
// own, with other operations behind each.
//
// Claims: P8166-3.5.2-1
func TestEachWriteOfACompoundMayBeReduced(t *testing.T) {
	call := func(one, two string) []byte {
		return compoundArgs("22 'handle'", "38 .16 .8 0 "+one, "38 .16 .8 0 "+two, "9 1 2")
	}
	var c payload.Cursor
	c.Whole(call("'12345'", "'123456789'"), walkedFrom)
	if err := (V4{}).WalkCall(procCompound4, &c); err != nil {
		t.Fatal(err)
	}
	want := eligibleRuns(&c)
	c.Reduced(call("5", "9"), walkedFrom, []int{5, 12}) // the second with its roundup
	if err := (V4{}).WalkCall(procCompound4, &c); err != nil {
		t.Fatal(err)
	}
	if got := eligibleRuns(&c); !slices.Equal(got, want) || len(got) != 2 {
		t.Errorf("items at %v, want %v", got, want)
	}
}

// Behind an operation that is not known, or a union in one, nothing is eligible
// and nothing is wrong: it is for those to judge who execute the call.
func TestWhatIsNotKnownHidesWhatIsBehindIt(t *testing.T) {
	for name, ops := range map[string][2][]string{
		"an operation":      {{"22 'fh'", "38 .16 .8 0 'seen'", "999 7", "38 .16 .8 0 'hidden'"}, {"22 0", "25 0 1 'seen'", "999 0 7", "25 0 1 'hidden'"}},
		"how a file opens":  {{"38 .16 .8 0 'seen'", "18 1 1 0 .8 'owner' 1 9 .8", "38 .16 .8 0 'hidden'"}, {"25 0 1 'seen'", "18 0 .16 1 .16 0 0 99 .8", "25 0 1 'hidden'"}},
		"how state is kept": {{"38 .16 .8 0 'seen'", "42 .8 'owner' 0 3 .4", "38 .16 .8 0 'hidden'"}, {"25 0 1 'seen'", "42 0 .8 1 0 3 .4", "25 0 1 'hidden'"}},
		"a length odd":      {{"38 .16 .8 0 'seen'", "999 .3"}, {"25 0 1 'seen'", "999 .3"}},
	} {
		for i, walk := range []func([]byte) ([]payload.Item, error){walkArgs, walkResults} {
			b := compoundArgs(ops[0]...)
			if i == 1 {
				b = compoundResults(0, ops[1]...)
			}
			items, err := walk(b)
			got := texts(b, slices.DeleteFunc(slices.Clone(items), func(it payload.Item) bool { return !it.Eligible }))
			if err != nil || !slices.Equal(got, []string{"seen"}) {
				t.Errorf("%s: eligible %q and %v, want what is before it alone", name, got, err)
			}
		}
	}
	// So are operations beyond those that any server takes.
	many := slices.Repeat([]string{"38 .16 .8 0 ''"}, maxOps4+1)
	if items, err := walkArgs(compoundArgs(many...)); err != nil || len(items) != 1+maxOps4 {
		t.Errorf("%d operations: %d items and %v, want those of %d", len(many), len(items)-1, err, maxOps4)
	}
	many = slices.Repeat([]string{"25 0 0 ''"}, maxOps4+1)
	if items, err := walkResults(compoundResults(0, many...)); err != nil || len(items) != 1+maxOps4 {
		t.Errorf("%d results: %d items and %v, want those of %d", len(many), len(items)-1, err, maxOps4)
	}
	// Nor can it have been reduced.
	var c payload.Cursor
	c.Reduced(compoundArgs("999", "38 .16 .8 0 4"), walkedFrom, []int{4})
	if err := (V4{}).WalkCall(procCompound4, &c); err != nil || c.Chunks() != 0 {
		t.Errorf("%d chunks have met an item behind what is not known, and %v", c.Chunks(), err)
	}
}

// The server stops at the first operation that fails, so that a result behind
// one is no reply.
func TestNothingFollowsAFailure(t *testing.T) {
	for _, last := range []string{"22 70", "34 13 0", "12 10010 .16 1 .8 'owner'", "25 5"} {
		if _, err := walkResults(compoundResults(70, "24 0", last)); err != nil {
			t.Errorf("%q: %v", last, err)
		}
		if _, err := walkResults(compoundResults(70, "24 0", last, "25 0 1 'data'")); err == nil {
			t.Errorf("%q: a result behind it is accepted", last)
		}
	}
}

// Procedures other than COMPOUND have nothing to reduce.
func TestOtherProceduresHaveNoItems(t *testing.T) {
	for proc, n := range map[uint32]int{procNull4: 0, 2: 12, math.MaxUint32: 5} {
		b := make([]byte, walkedFrom+n)
		for _, walk := range []func(uint32, *payload.Cursor) error{V4{}.WalkCall, V4{}.WalkReply} {
			var c payload.Cursor
			c.Whole(b, walkedFrom)
			if err := walk(proc, &c); err != nil || len(c.Items()) != 0 {
				t.Errorf("procedure %d: %d items and %v", proc, len(c.Items()), err)
			}
		}
	}
	var c payload.Cursor
	c.Whole(make([]byte, walkedFrom+4), walkedFrom)
	if (V4{}).WalkCall(procNull4, &c) == nil {
		t.Error("arguments of NULL are accepted")
	}
}

func TestTheReplyToACompoundIsEstimatedByItsOperations(t *testing.T) {
	const empty = 24 + 4 + 4 + 4 + 4 // header, status, the tag of three octets, count
	for _, tt := range []struct {
		ops   []string
		fixed int
		items []int
	}{
		{nil, empty, nil},
		{[]string{"53 .16 1 0 63 0", "22 'handle'", "25 .16 .8 4096"}, empty + 44 + 8 + 16, []int{4096}},
		{[]string{"22 'handle'", "25 .16 .8 10", "25 .16 .8 20", "27"}, empty + 8 + 16 + 16 + 12, []int{10, 20, 4096}},
		{[]string{"26 .8 .8 512 8192 1 0"}, empty + 8 + 8192, nil},
		{[]string{"9 1 26"}, empty + 8 + maxBitmap4 + 4 + 3*24, nil},                                       // type, change, size
		{[]string{"9 2 0 48"}, empty + 8 + maxBitmap4 + 4 + 2*(4+maxName4), nil},                           // owner, owner_group
		{[]string{"9 1 4096"}, empty + 8 + maxBitmap4 + 4 + maxACL4, nil},                                  // acl
		{[]string{"34 .16 0 ''"}, empty + 8 + maxBitmap4, nil},                                             // SETATTR
		{[]string{"25 .16 .8 16", "999", "25 .16 .8 16"}, -1, []int{16}},                                   // not known
		{[]string{"25 .16 .8 16", "42 .8 '' 0 7", "25 .16 .8 16"}, -1, []int{16}},                          // not known
		{[]string{"25 .16 .8 16", "25 .16"}, -1, []int{16}},                                                // too short
		{[]string{"25 .16 .8 4294967295"}, empty + 16, []int{nfs.MaxData}},                                 // more than any reply
		{[]string{"26 .8 .8 512 4294967295 0", "26 .8 .8 0 4294967295 0"}, empty + 2*(8+nfs.MaxData), nil}, // the same
	} {
		b := compoundArgs(tt.ops...)
		var c payload.Cursor
		c.Whole(b, walkedFrom)
		got := V4{}.MaxReply(procCompound4, &c)
		if got.Fixed != tt.fixed || !slices.Equal(got.Items, tt.items) {
			t.Errorf("%q: %+v, want %d and %v", tt.ops, got, tt.fixed, tt.items)
		}
	}
	var c payload.Cursor
	c.Whole(nil, 0)
	if got := (V4{}).MaxReply(procNull4, &c); got.Fixed != 24 {
		t.Errorf("NULL: %+v, want the header", got)
	}
}
