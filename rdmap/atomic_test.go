package rdmap

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
)

// Claims: X-4-2 X-5.2.1-1 X-5.2.1-3 X-5.2.1-4 X-5.2.1-7 X-5.2.1-8 X-5.2.1-10 X-5.2.1-11 X-5.2.1-12
func TestAtomicRequestHasTheOctetsOfTheFigure(t *testing.T) {
	for _, c := range []struct {
		name    string
		request AtomicRequest
		wire    string // reserved and AOpCode, identifier, STag, TO, data, mask, compare data, compare mask
	}{
		{
			"FetchAdd",
			AtomicRequest{AOpCode: AOpFetchAdd, ID: 7, STag: 0x55667788, TO: 0x40, Data: 1, CompareMask: math.MaxUint64},
			"00000000 00000007 55667788 0000000000000040 0000000000000001 0000000000000000 0000000000000000 ffffffffffffffff",
		},
		{
			"CmpSwap",
			AtomicRequest{AOpCmpSwap, 0x01020304, 0x05060708, 0x1112131415161718, 0x2122232425262728, 0x3132333435363738, 0x4142434445464748, 0x5152535455565758},
			"00000002 01020304 05060708 1112131415161718 2122232425262728 3132333435363738 4142434445464748 5152535455565758",
		},
		{
			"unassigned",
			AtomicRequest{AOpCode: 0xF},
			"0000000f 00000000 00000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := unhex(t, c.wire)
			if len(want) != AtomicRequestLen {
				t.Fatalf("golden octets: %d", len(want))
			}
			if got := c.request.Append(nil); !bytes.Equal(got, want) {
				t.Errorf("Append: % x\nwant % x", got, want)
			}
			var r AtomicRequest
			if err := r.Parse(want); err != nil || r != c.request {
				t.Errorf("Parse: %+v %v, want %+v", r, err, c.request)
			}
		})
	}
}

// Claims: X-5.2.1-2 X-5.2.1-12
func TestAtomicRequestIgnoresWhatItHasToIgnore(t *testing.T) {
	want := AtomicRequest{AOpCode: AOpFetchAdd, ID: 7, STag: 8, TO: 16, Data: 1, Mask: 2, Compare: 0x1111, CompareMask: 0x2222}
	wire := want.Append(nil)
	if !bytes.Equal(wire[36:], unhex(t, "0000000000000000 ffffffffffffffff")) {
		t.Errorf("FetchAdd sends compare fields % x", wire[36:])
	}
	copy(wire, unhex(t, "fffffff0")) // the 28 reserved bits
	for i := 36; i < AtomicRequestLen; i++ {
		wire[i] = 0x5A
	}
	want.Compare, want.CompareMask = 0, math.MaxUint64
	var r AtomicRequest
	if err := r.Parse(wire); err != nil || r != want {
		t.Errorf("got %+v %v, want %+v", r, err, want)
	}
}

// Claims: X-4-3 X-A.2-1
// Claims: X-5.2.2-1
func TestAtomicResponseHasTwelveOctets(t *testing.T) {
	response := AtomicResponse{ID: 7, Original: 0x0102030405060708}
	want := unhex(t, "00000007 0102030405060708")
	if got := response.Append(nil); !bytes.Equal(got, want) || len(want) != AtomicResponseLen {
		t.Errorf("Append: % x, want % x", got, want)
	}
	var r AtomicResponse
	if err := r.Parse(want); err != nil || r != response {
		t.Errorf("Parse: %+v %v, want %+v", r, err, response)
	}
}

// Claims: X-4-2 X-4-3 X-4.2-1
func TestAtomicHeadersOfWrongSizeAreRefused(t *testing.T) {
	for _, n := range []int{0, 28, 51, 53} {
		request := AtomicRequest{ID: 9}
		wantError(t, request.Parse(make([]byte, n)), RemoteOperation, CodeUnspecified)
		if request != (AtomicRequest{ID: 9}) {
			t.Errorf("%d octets changed the request", n)
		}
	}
	for _, n := range []int{0, 11, 13, 32} {
		response := AtomicResponse{ID: 9}
		wantError(t, response.Parse(make([]byte, n)), RemoteOperation, CodeUnspecified)
		if response != (AtomicResponse{ID: 9}) {
			t.Errorf("%d octets changed the response", n)
		}
	}
}

// Claims: X-5.2.1-3 X-5.2.1-4 X-5.2.1-5
// Claims: X-10.1-1
func TestOnlyTheAssignedAtomicOperationsAreDefined(t *testing.T) {
	for a := range AOpCode(16) {
		if want := a == 0 || a == 2; a.Defined() != want {
			t.Errorf("%v: defined %v, want %v", a, a.Defined(), want)
		}
	}
	for a, want := range map[AOpCode]string{AOpFetchAdd: "FetchAdd", AOpCmpSwap: "CmpSwap", 1: "unassigned atomic operation 0x1"} {
		if got := a.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// fetchAddSerial is RFC 7306 §5.1.1's pseudocode, bit by bit.
func fetchAddSerial(original, add, mask uint64) (sum uint64) {
	carry := uint64(0)
	for bit := range 64 {
		s := carry + original>>bit&1 + add>>bit&1
		sum |= s & 1 << bit
		carry = s >> 1
		if mask>>bit&1 == 1 {
			carry = 0
		}
	}
	return sum
}

// Claims: X-5.1.1-1 X-5.1.1-2 X-5.1.1-3 X-5.1.1-4 X-5.2.1-6
func TestFetchAddKeepsCarriesInTheirFields(t *testing.T) {
	for _, c := range []struct{ original, add, mask, want uint64 }{
		{0xffffffffffffffff, 0x0000000000000001, 0x0000000000000000, 0x0000000000000000},
		{0xffffffffffffffff, 0x0000000000000001, 0x8000000000000000, 0x0000000000000000}, // marking bit 63 changes nothing
		{0x00000000ffffffff, 0x0000000000000001, 0x0000000000000000, 0x0000000100000000},
		{0x00000000ffffffff, 0x0000000000000001, 0x0000000080000000, 0x0000000000000000}, // carry out of bit 31 dropped
		{0x00000001ffffffff, 0x0000000100000001, 0x8000000080000000, 0x0000000200000000}, // two fields of 32 bits
		{0x01ff02fe03fd04fc, 0x0102030405060708, 0x8080808080808080, 0x0201050208030b04}, // eight of 8
		{0x000000000000001f, 0x0000000000000011, 0x0000000000000008, 0x0000000000000020}, // one of 4, one of 60
		{0x7fffffffffffffff, 0x0000000000000001, 0x4000000000000000, 0x0000000000000000}, // one of 63, one of 1
		{0xff00ff00ff00ff00, 0x0f0f0f0f0f0f0f0f, 0xffffffffffffffff, 0xf00ff00ff00ff00f}, // fields of one bit: exclusive or
		{0x0123456789abcdef, 0xfedcba9876543211, 0x8000800080008000, 0xffffffffffff0000}, // four of 16
		{0x0000000000000005, 0xfffffffffffffffd, 0x0000000000000000, 0x0000000000000002}, // adding -3
		{0xdeadbeefcafef00d, 0x0000000000000000, 0x8080808080808080, 0xdeadbeefcafef00d}, // a probe
	} {
		request := AtomicRequest{AOpCode: AOpFetchAdd, Data: c.add, Mask: c.mask}
		if got := request.Apply(c.original); got != c.want {
			t.Errorf("%016x + %016x mask %016x: %016x, want %016x", c.original, c.add, c.mask, got, c.want)
		}
		if got := fetchAddSerial(c.original, c.add, c.mask); got != c.want {
			t.Errorf("bit by bit, %016x + %016x mask %016x: %016x, want %016x", c.original, c.add, c.mask, got, c.want)
		}
	}
	rng := rand.New(rand.NewPCG(8, 9))
	for range 100_000 {
		original, add, mask := rng.Uint64(), rng.Uint64(), rng.Uint64()&rng.Uint64()
		if got, want := FetchAdd(original, add, mask), fetchAddSerial(original, add, mask); got != want {
			t.Fatalf("%016x + %016x mask %016x: %016x, want %016x", original, add, mask, got, want)
		}
	}
}

// cmpSwapSerial does bit by bit what RFC 7306 §5.1.2 says in words.
func cmpSwapSerial(original, swap, swapMask, compare, compareMask uint64) uint64 {
	result := original
	for bit := range 64 {
		if compareMask>>bit&1 == 1 && original>>bit&1 != compare>>bit&1 {
			return original
		}
		if swapMask>>bit&1 == 1 {
			result = result&^(1<<bit) | swap&(1<<bit)
		}
	}
	return result
}

// Claims: X-5.1.2-1 X-5.1.2-2 X-5.1.2-3 X-5.2.1-6
func TestCmpSwapSwapsTheMaskedBitsOfAMatch(t *testing.T) {
	for _, c := range []struct{ original, swap, swapMask, compare, compareMask, want uint64 }{
		{0x1111111111111111, 0x2222222222222222, 0xffffffffffffffff, 0x1111111111111111, 0xffffffffffffffff, 0x2222222222222222},
		{0x1111111111111111, 0x2222222222222222, 0xffffffffffffffff, 0x1111111111111110, 0xffffffffffffffff, 0x1111111111111111},
		{0x1111111111111111, 0x2222222222222222, 0xffffffffffffffff, 0x00000000000000ff, 0x0000000000000000, 0x2222222222222222}, // nothing to compare
		{0xaaaaaaaabbbbbbbb, 0xccccccccdddddddd, 0x00000000ffffffff, 0xaaaaaaaa00000000, 0xffffffff00000000, 0xaaaaaaaadddddddd},
		{0xaaaaaaaabbbbbbbb, 0xccccccccdddddddd, 0x00000000ffffffff, 0xaaaaaaab00000000, 0xffffffff00000000, 0xaaaaaaaabbbbbbbb},
		{0x0123456789abcdef, 0xffffffffffffffff, 0x0f0f0f0f0f0f0f0f, 0x0000000000000001, 0x0000000000000001, 0x0f2f4f6f8fafcfef},
		{0x8123456789abcdef, 0x0000000000000000, 0x8000000000000000, 0x8000000000000000, 0x8000000000000000, 0x0123456789abcdef}, // test and clear
	} {
		request := AtomicRequest{AOpCode: AOpCmpSwap, Data: c.swap, Mask: c.swapMask, Compare: c.compare, CompareMask: c.compareMask}
		if got := request.Apply(c.original); got != c.want {
			t.Errorf("%016x, swap %016x mask %016x, compare %016x mask %016x: %016x, want %016x",
				c.original, c.swap, c.swapMask, c.compare, c.compareMask, got, c.want)
		}
	}
	rng := rand.New(rand.NewPCG(10, 11))
	for range 100_000 {
		original, swap, swapMask, compareMask := rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64()
		compare := original ^ rng.Uint64()&rng.Uint64()&^(compareMask*uint64(rng.IntN(2))) // half of them match
		got, want := CmpSwap(original, swap, swapMask, compare, compareMask), cmpSwapSerial(original, swap, swapMask, compare, compareMask)
		if got != want {
			t.Fatalf("%016x, swap %016x mask %016x, compare %016x mask %016x: %016x, want %016x",
				original, swap, swapMask, compare, compareMask, got, want)
		}
	}
}

func TestRequestCodecsAllocateNothing(t *testing.T) {
	buf := make([]byte, 0, AtomicRequestLen)
	var read ReadRequest
	var request AtomicRequest
	var response AtomicResponse
	if n := testing.AllocsPerRun(100, func() {
		if read.Parse(read.Append(buf)) != nil || request.Parse(request.Append(buf)) != nil || response.Parse(response.Append(buf)) != nil {
			t.Fatal("a header does not parse")
		}
		if _, err := ParseImmediate(OpImmediate, AppendImmediate(buf, [ImmediateLen]byte{})); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzAtomic(f *testing.F) {
	f.Add(make([]byte, AtomicRequestLen))
	f.Add(bytes.Repeat([]byte{2}, AtomicRequestLen))
	f.Add(make([]byte, AtomicResponseLen))
	f.Fuzz(func(t *testing.T, b []byte) {
		var response AtomicResponse
		err := response.Parse(b)
		if (err == nil) != (len(b) == AtomicResponseLen) {
			t.Fatalf("response of %d octets: %v", len(b), err)
		}
		if err == nil && !bytes.Equal(response.Append(nil), b) {
			t.Fatalf("% x came back as % x", b, response.Append(nil))
		}
		var request, again AtomicRequest
		err = request.Parse(b)
		if (err == nil) != (len(b) == AtomicRequestLen) {
			t.Fatalf("request of %d octets: %v", len(b), err)
		}
		if err != nil {
			return
		}
		wire := request.Append(nil)
		if err := again.Parse(wire); err != nil || again != request {
			t.Fatalf("%+v came back as %+v, %v", request, again, err)
		}
		if request.AOpCode != AOpFetchAdd && !bytes.Equal(wire[4:], b[4:]) {
			t.Fatalf("% x came back as % x", b, wire)
		}
	})
}

func BenchmarkFetchAdd(b *testing.B) {
	b.ReportAllocs()
	v := uint64(1)
	for b.Loop() {
		v = FetchAdd(v, 0x0102030405060708, 0x8080808080808080)
	}
}
