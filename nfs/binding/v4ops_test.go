package binding

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// xdr makes octets of a line of notes: a number is a word, 'x' an opaque item of
// the octets x, .n stands for n octets of what has a fixed length.
func xdr(notes string) (b []byte) {
	for _, note := range strings.Fields(notes) {
		switch {
		case note[0] == '.':
			n, _ := strconv.Atoi(note[1:])
			b = append(b, strings.Repeat("\xee", n)...)
		case note[0] == '\'':
			text := strings.Trim(note, "'")
			b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
			b = append(b, text...)
			b = append(b, make([]byte, wire.Pad(uint64(len(text))))...)
		default:
			n, err := strconv.ParseUint(note, 10, 32)
			if err != nil {
				panic(err)
			}
			b = binary.BigEndian.AppendUint32(b, uint32(n))
		}
	}
	return b
}

// examples4 are arguments and results of each operation, made by hand from RFC
// 7863, RFC 7530 and RFC 8276. Results are preceded by their status.
var examples4 = []struct {
	op      uint32
	args    []string
	results []string
}{
	{3, []string{"63"}, []string{"0 63 31", "13"}},
	{4, []string{"1 .16"}, []string{"0 .16", "10025"}},
	{5, []string{".8 100"}, []string{"0 .8", "5"}},
	{6, []string{
		"5 'target' 'name' 1 2 'attributes'", // NF4LNK
		"3 8 1 'name' 0 ''", "4 8 1 'name' 0 ''",
		"2 'name' 2 0 2 'abcd'", "7 'name' 0 ''", "6 'name' 0 ''", "99 'name' 0 ''",
	}, []string{"0 1 .16 0", "0 1 .16 2 7 7", "17"}},
	{7, []string{".8"}, []string{"0", "10022"}},
	{8, []string{".16"}, []string{"0", "10025"}},
	{9, []string{"0", "2 1 2"}, []string{"0 2 1 2 'values'", "0 0 ''", "70"}},
	{10, []string{""}, []string{"0 'filehandle'", "10020"}},
	{11, []string{"'name'"}, []string{"0 0 .16", "17"}},
	{12, []string{
		"1 0 .16 1 5 .16 6 .8 'owner'",
		"2 0 .16 0 .16 6",
	}, []string{"0 .16", "10010 .16 2 .8 'owner'", "10026"}},
	{13, []string{"1 .16 .8 'owner'"}, []string{"0", "10010 .16 1 .8 ''", "10013"}},
	{14, []string{"1 7 .16 .16"}, []string{"0 .16", "10026"}},
	{15, []string{"'name'"}, []string{"0", "2"}},
	{16, []string{""}, []string{"0", "2"}},
	{17, []string{"1 8 'values'"}, []string{"0", "10009"}},
	{18, []string{
		"1 1 0 .8 'owner' 0 0 'file'",                     // NOCREATE, CLAIM_NULL
		"1 1 0 .8 'owner' 1 0 1 2 'values' 0 'file'",      // UNCHECKED4
		"1 1 0 .8 'owner' 1 1 0 '' 0 'file'",              // GUARDED4
		"1 1 0 .8 'owner' 1 2 .8 0 'file'",                // EXCLUSIVE4
		"1 1 0 .8 'owner' 1 3 .8 2 1 1 'values' 0 'file'", // EXCLUSIVE4_1
		"1 1 0 .8 'owner' 0 1 2",                          // CLAIM_PREVIOUS
		"1 1 0 .8 'owner' 0 2 .16 'file'",                 // CLAIM_DELEGATE_CUR
		"1 1 0 .8 'owner' 0 3 'file'",                     // CLAIM_DELEGATE_PREV
		"1 1 0 .8 'owner' 0 4",                            // CLAIM_FH
		"1 1 0 .8 'owner' 0 5 .16",                        // CLAIM_DELEG_CUR_FH
		"1 1 0 .8 'owner' 0 6",                            // CLAIM_DELEG_PREV_FH
	}, []string{
		"0 .16 1 .16 4 0 0",                            // OPEN_DELEGATE_NONE
		"0 .16 1 .16 4 1 9 1 .16 0 0 0 7 'who'",        // OPEN_DELEGATE_READ
		"0 .16 1 .16 4 1 9 2 .16 0 1 .8 0 0 7 'who'",   // OPEN_DELEGATE_WRITE, by size
		"0 .16 1 .16 4 1 9 2 .16 0 2 8 9 0 0 7 'who'",  // by blocks
		"0 .16 1 .16 4 0 3 0", "0 .16 1 .16 4 0 3 1 1", // OPEN_DELEGATE_NONE_EXT
		"0 .16 1 .16 4 0 3 2 0", "0 .16 1 .16 4 0 3 8",
		"0 .16 1 .16 4 1 9 4 .16 0 0 0 7 'who'", // RFC 9754
		"0 .16 1 .16 4 1 9 5 .16 0 1 .8 0 0 7 'who'",
		"10008",
	}},
	{19, []string{"1"}, []string{"0", "10004"}},
	{20, []string{".16 3"}, []string{"0 .16", "10026"}},
	{21, []string{".16 3 1 0"}, []string{"0 .16", "22"}},
	{22, []string{"'filehandle'"}, []string{"0", "70"}},
	{23, []string{""}, []string{"0", "10004"}},
	{24, []string{""}, []string{"0", "10006"}},
	{25, []string{".16 .8 4096"}, []string{"0 1 'data'", "0 0 ''", "5"}},
	{26, []string{".8 .8 512 4096 2 1 1"}, []string{
		"0 .8 0 1",
		"0 .8 1 .8 'one' 1 2 'values' 1 .8 'two' 0 '' 0 0",
		"10003",
	}},
	{27, []string{""}, []string{"0 'link'", "22"}},
	{28, []string{"'name'"}, []string{"0 1 .16", "2"}},
	{29, []string{"'old' 'new'"}, []string{"0 1 .16 0 .16", "18"}},
	{30, []string{".8"}, []string{"0", "10011"}},
	{31, []string{""}, []string{"0", "10030"}},
	{32, []string{""}, []string{"0", "10020"}},
	{33, []string{"'name'"}, []string{"0 3 6 'oid' 0 1 1 0", "0 0", "2"}},
	{34, []string{".16 1 2 'values'"}, []string{"0 1 2", "0 0", "13 0", "27 2 1 1"}},
	{35, []string{".8 'client' 1073741824 'tcp' '10.0.0.1.3.117' 1"},
		[]string{"0 .8 .8", "10017 'tcp' '10.0.0.2.3.117'", "10006"}},
	{36, []string{".8 .8"}, []string{"0", "10022"}},
	{37, []string{"1 8 'values'"}, []string{"0", "10027"}},
	{38, []string{".16 .8 2 'data'"}, []string{"0 4 2 .8", "28"}},
	{39, []string{".8 'owner'"}, []string{"0", "10037"}},
	{40, []string{
		"1073741824 3 0 1 9 'machine' 0 0 2 1 2 6 1 'handle' 'other'",
		"1073741824 0",
	}, []string{"0", "10072"}},
	{41, []string{".16 3 0"}, []string{"0 .16 3 0", "10052"}},
	{42, []string{
		".8 'owner' 256 0 1 'domain' 'name' .12",
		".8 'owner' 256 1 2 1 1 1 5 0",
		".8 'owner' 256 2 1 1 0 2 'hash' 'other' 1 'cipher' 4 5 0",
	}, []string{
		"0 .8 1 256 0 .8 'major' 'scope' 1 'domain' 'name' .12",
		"0 .8 1 256 1 2 1 1 0 .8 'major' 'scope' 0",
		"0 .8 1 256 2 0 0 1 2 3 4 2 'one' 'two' .8 'major' 'scope' 0",
		"10017",
	}},
	{43, []string{
		".8 1 3 0 1049620 1049480 3428 8 30 0 0 4096 4096 0 2 1 1 16 1073741824 1 1 0 'machine' 0 0 0",
		".8 1 3 0 1049620 1049480 3428 8 30 0 0 4096 4096 0 2 1 0 1073741824 0",
	}, []string{"0 .16 1 3 0 1049620 1049480 3428 8 30 0 0 4096 4096 0 2 1 1 16", "10063"}},
	{44, []string{".16"}, []string{"0", "10052"}},
	{45, []string{".16"}, []string{"0", "10025"}},
	{46, []string{"1 1 3 .12 .12 1 5 2 1 1"}, []string{"0 0 .8 .16 1 3 0 1 4", "0 1 1", "10084"}},
	{47, []string{".16 1 4096 1 6"}, []string{"0 1 'address' 1 6", "10005 8192", "10062"}},
	{48, []string{"1 16 .8 .8"}, []string{"0 .8 .8 2 .16 .16 1", "10003"}},
	{49, []string{
		".16 0 .16 1 .8 1 .12 1 'update'", ".16 0 .16 0 0 1 ''",
	}, []string{"0 1 .8", "0 0", "10050"}},
	{50, []string{"1 1 2 .24 .16 4096"}, []string{
		"0 1 .16 2 .16 2 1 'one' .16 1 4 'two'", "10058 1", "10059",
	}},
	{51, []string{"0 1 3 1 .16 .16 'body'", "0 1 3 2", "0 1 3 3"}, []string{"0 1 .16", "0 0", "10050"}},
	{52, []string{"1"}, []string{"0 2 1 6 'oid' 0 3", "2"}},
	{53, []string{".16 1 0 63 0"}, []string{"0 .16 1 0 63 63 0", "10052"}},
	{54, []string{"'ssv' 'digest'"}, []string{"0 'digest'", "10050"}},
	{55, []string{"2 .16 .16"}, []string{"0 2 0 10025", "0 0", "10025"}},
	{56, []string{"256 1 2", "256 4", "256 6"}, []string{"0 0", "0 1 .16 0 0 0 7 'who'", "10054"}},
	{57, []string{".8"}, []string{"0", "10074"}},
	{58, []string{"0"}, []string{"0", "10054"}},
	{59, []string{".16 .16"}, []string{"0", "28"}},
	{60, []string{
		".16 .16 .24 1 1 0",
		".16 .16 .24 1 0 3 1 'name' 2 'url' 3 'tcp' '10.0.0.1.8.1'",
	}, []string{"0 1 .16 .8 2 .8 1 1", "0 0 .8 2 .8 0 0", "10094 1 0", "10091"}},
	{61, []string{".16 1 'name'", ".16 3 'tcp' '10.0.0.1.8.1'"}, []string{
		"0 .12 .16 2 2 'url' 3 'tcp' '10.0.0.1.8.1'", "10004",
	}},
	{62, []string{".16 .16"}, []string{"0", "10004"}},
	{63, []string{".16 .16 1 16"}, []string{"0 1 16", "10004"}},
	{64, []string{".16 .16 2 .16 5 25 .16 28 38"}, []string{"0", "10004"}},
	{65, []string{".16 .16 .16 .16 .16 4 'update'"}, []string{"0", "10004"}},
	{66, []string{".16"}, []string{"0", "10025"}},
	{67, []string{".16"}, []string{"0 .8 0", "0 .8 1 0", "10025"}},
	{68, []string{".16 .8 4096"}, []string{"0 1 3 0 .8 'data' 1 .16 7", "0 1 0", "10090"}},
	{69, []string{".16 .8 1"}, []string{"0 1 .8", "6"}},
	{70, []string{".16 2 .8 .8 .8 .8 1 .8 'pattern'"}, []string{"0 0 .8 2 .8", "0 1 .16 .8 2 .8", "10090"}},
	{71, []string{".16 .16 .24"}, []string{"0", "18"}},
	{72, []string{"'name'"}, []string{"0 'value'", "10095"}},
	{73, []string{"1 'name' 'value'"}, []string{"0 1 .16", "10096"}},
	{74, []string{".8 4096"}, []string{"0 .8 2 'one' 'two' 1", "10005"}},
	{75, []string{"'name'"}, []string{"0 1 .16", "10095"}},
	{10044, []string{""}, []string{"10044"}},
}

const walkedFrom = 8 // the walks of these tests begin behind some octets, as real ones do

func compoundArgs(ops ...string) []byte {
	b := xdr(fmt.Sprintf(".%d 'tag' 2 %d", walkedFrom, len(ops)))
	for _, op := range ops {
		b = append(b, xdr(op)...)
	}
	return b
}

func compoundResults(status int, ops ...string) []byte {
	b := xdr(fmt.Sprintf(".%d %d 'tag' %d", walkedFrom, status, len(ops)))
	for _, op := range ops {
		b = append(b, xdr(op)...)
	}
	return b
}

func walkArgs(b []byte) ([]payload.Item, error) {
	var c payload.Cursor
	c.Whole(b, walkedFrom)
	err := V4{}.WalkCall(procCompound4, &c)
	return c.Items(), err
}

func walkResults(b []byte) ([]payload.Item, error) {
	var c payload.Cursor
	c.Whole(b, walkedFrom)
	err := V4{}.WalkReply(procCompound4, &c)
	return c.Items(), err
}

// opaques finds the opaque items in the notes.
func opaques(notes string) (list []string) {
	for _, note := range strings.Fields(notes) {
		if note[0] == '\'' {
			list = append(list, strings.Trim(note, "'"))
		}
	}
	return list
}

func texts(b []byte, items []payload.Item) (list []string) {
	for _, it := range items {
		list = append(list, string(b[it.At:it.At+it.Length]))
	}
	return list
}

// Each operation of NFS 4.0, 4.1 and 4.2 has an example, and each example's items
// are found, to the last octet: what stands behind the operation is found too.
func TestEachOperationEndsWhereItsXDREnds(t *testing.T) {
	seen := map[uint32]bool{}
	for _, ex := range examples4 {
		seen[ex.op] = true
		for _, args := range ex.args {
			op := fmt.Sprint(ex.op, " ", args)
			b := compoundArgs(op, "15 'behind'")
			items, err := walkArgs(b)
			if want := append(append([]string{"tag"}, opaques(args)...), "behind"); err != nil || !slices.Equal(texts(b, items), want) {
				t.Errorf("arguments %q: items %q and %v, want %q", op, texts(b, items), err, want)
			}
		}
		for _, result := range ex.results {
			op := fmt.Sprint(ex.op, " ", result)
			want := append([]string{"tag"}, opaques(result)...)
			var b []byte
			if strings.HasPrefix(result, "0") {
				b = compoundResults(0, op, "10 0 'behind'")
				want = append(want, "behind")
			} else {
				b = compoundResults(1, op)
			}
			items, err := walkResults(b)
			if err != nil || !slices.Equal(texts(b, items), want) {
				t.Errorf("result %q: items %q and %v, want %q", op, texts(b, items), err, want)
			}
			if _, err := walkResults(append(b, 0, 0, 0, 0)); err == nil {
				t.Errorf("result %q: four octets behind it are not noticed", op)
			}
		}
	}
	for op := range ops4 {
		if !seen[op] {
			t.Errorf("operation %d has no example", op)
		}
	}
}

// An operation that ends too early is an error wherever it is cut.
func TestEachOperationNeedsAllOfItsOctets(t *testing.T) {
	for _, ex := range examples4 {
		for _, args := range ex.args {
			b := compoundArgs(fmt.Sprint(ex.op, " ", args))
			for n := walkedFrom; n < len(b); n += 4 {
				if _, err := walkArgs(b[:n]); err == nil {
					t.Errorf("arguments of operation %d, %q: nothing is wrong with %d of %d octets", ex.op, args, n, len(b))
				}
			}
		}
		for _, result := range ex.results {
			b := compoundResults(0, fmt.Sprint(ex.op, " ", result))
			for n := walkedFrom; n < len(b); n += 4 {
				if _, err := walkResults(b[:n]); err == nil {
					t.Errorf("result of operation %d, %q: nothing is wrong with %d of %d octets", ex.op, result, n, len(b))
				}
			}
		}
	}
}

// No result of the examples is longer than was estimated from the arguments.
func TestNoResultIsLongerThanItsEstimate(t *testing.T) {
	for _, ex := range examples4 {
		for _, args := range ex.args {
			b := compoundArgs(fmt.Sprint(ex.op, " ", args))
			var c payload.Cursor
			c.Whole(b, walkedFrom)
			bound := V4{}.MaxReply(procCompound4, &c)
			for _, result := range ex.results {
				results := compoundResults(0, fmt.Sprint(ex.op, " ", result))
				items, err := walkResults(results)
				if err != nil {
					t.Fatal(err)
				}
				n, eligible := 24+len(results)-walkedFrom, 0
				for _, it := range items {
					if it.Eligible {
						n -= it.Length + wire.Pad(uint64(it.Length))
						eligible++
					}
				}
				if n > bound.Fixed || eligible > len(bound.Items) {
					t.Errorf("operation %d, %q: result %q makes %d octets and %d items, the estimate is %+v", ex.op, args, result, n, eligible, bound)
				}
			}
		}
	}
}
