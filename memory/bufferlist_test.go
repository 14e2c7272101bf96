package memory

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// blocks are n buffers of size octets with gaps between them.
func blocks(n, size int) [][]byte {
	var all [][]byte
	for range n {
		all = append(all, make([]byte, size))
	}
	return all
}

// Claims: V-4-9
// Claims: V-7.6.2.1-1 V-7.6.2.2-1 V-7.6.1.1-2 V-9.2.6.2-4 V-9.2.6.5-5
func TestListsAreCheckedBeforeAnythingChanges(t *testing.T) {
	pages := Pages(3, MinPageSize)
	shifted := make([]byte, 3*MinPageSize+1)[1:]
	uneven := slices.Clone(pages)
	uneven[2] = uneven[2][:MinPageSize-1]
	askew := slices.Clone(pages)
	askew[1] = Pages(3, MinPageSize)[0][: 2*MinPageSize : 2*MinPageSize][8:][:MinPageSize]

	const all = 3 * MinPageSize
	for _, c := range []struct {
		name  string
		block bool
		list  BufferList
		va    uint64
		zero  bool
		want  error
	}{
		{"pages", false, BufferList{pages, MinPageSize, 0, all}, 0, false, nil},
		{"pages from the last octet of the first", false, BufferList{pages, MinPageSize, MinPageSize - 1, 1}, MinPageSize - 1, false, nil},
		{"more pages than needed", false, BufferList{pages, MinPageSize, 5, 1}, 0x70005, false, nil},
		{"pages, zero based, whatever VA", false, BufferList{pages, MinPageSize, 7, all - 7}, 3, true, nil},

		{"pages of no octets", false, BufferList{pages, 0, 0, 1}, 0, false, ErrBufferSize},
		{"pages of negative size", false, BufferList{pages, -MinPageSize, 0, 1}, 0, false, ErrBufferSize},
		{"pages below the least", false, BufferList{pages, MinPageSize / 2, 0, 1}, 0, false, ErrBufferSize},
		{"pages above the largest", false, BufferList{nil, math.MaxInt32, 0, 1}, 0, false, ErrBufferSize},
		{"pages of no power of two", false, BufferList{pages, MinPageSize + 64, 0, 1}, 0, false, ErrBufferSize},
		{"page of another size", false, BufferList{uneven, MinPageSize, 0, 1}, 0, false, ErrBufferEntry},
		{"page off its boundary", false, BufferList{askew, MinPageSize, 0, 1}, 0, false, ErrBufferEntry},
		{"page off by one octet", false, BufferList{[][]byte{shifted[:MinPageSize]}, MinPageSize, 0, 1}, 1, true, ErrBufferEntry},
		{"no pages", false, BufferList{nil, MinPageSize, 0, 1}, 0, false, ErrLength},
		{"no octets", false, BufferList{pages, MinPageSize, 0, 0}, 0, false, ErrLength},
		{"one octet too many", false, BufferList{pages, MinPageSize, 0, all + 1}, 0, false, ErrLength},
		{"one octet too many behind an offset", false, BufferList{pages, MinPageSize, 9, all - 8}, 9, false, ErrLength},
		{"length that wraps", false, BufferList{pages, MinPageSize, 1, math.MaxUint64}, 1, false, ErrLength},
		{"offset behind the first page", false, BufferList{pages, MinPageSize, MinPageSize, 1}, 0, false, ErrFBO},
		{"offset below 0", false, BufferList{pages, MinPageSize, -1, 1}, MinPageSize - 1, false, ErrFBO},
		{"VA that does not match", false, BufferList{pages, MinPageSize, 4, 1}, 0x70005, false, ErrVA},
		{"VA that matches modulo a smaller size", false, BufferList{pages, MinPageSize, 4, 1}, 0x70804, false, ErrVA},
		{"more entries than the Table allows", false, BufferList{append(slices.Clone(pages), pages...), MinPageSize, 0, 1}, 0, false, ErrEntryLimit},
		{"two octets beyond the last offset", false, BufferList{pages, MinPageSize, MinPageSize - 1, 2}, math.MaxUint64, false, ErrVA},

		{"blocks of any size, anywhere", true, BufferList{[][]byte{shifted[1:78], shifted[5:82], make([]byte, 77)}, 77, 3, 200}, 77*9 + 3, false, nil},
		{"least block", true, BufferList{blocks(1, MinBlockSize), MinBlockSize, 0, MinBlockSize}, 0, false, nil},
		{"block below the least", true, BufferList{blocks(1, MinBlockSize-1), MinBlockSize - 1, 0, 1}, 0, false, ErrBufferSize},
		{"block above the largest", true, BufferList{nil, math.MaxInt32, 0, 1}, 0, false, ErrBufferSize},
		{"block of another size", true, BufferList{append(blocks(2, 100), make([]byte, 101)), 100, 0, 1}, 0, false, ErrBufferEntry},
		{"offset behind the first block", true, BufferList{blocks(2, 100), 100, 100, 1}, 0, false, ErrFBO},
		{"VA that does not match the block", true, BufferList{blocks(2, 100), 100, 28, 1}, 128 + 64, false, ErrVA},
		{"more octets than blocks", true, BufferList{blocks(2, 100), 100, 28, 173}, 128, false, ErrLength},
	} {
		table := NewTable(Config{Block: c.block, MaxEntries: 5})
		pd := table.AllocPD()
		cfg := RegionConfig{List: &c.list, Access: LocalRead | LocalWrite, VA: c.va, ZeroBased: c.zero}
		r, err := table.Register(pd, nil, cfg)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: register: %v, want %v", c.name, err, c.want)
		}
		want := Usage{}
		if err == nil {
			want = Usage{Regions: 1, Bytes: c.list.Length}
			base := c.va
			if c.zero {
				base = 0
			}
			if r.Base() != base || r.Len() != c.list.Length {
				t.Errorf("%s: base %#x and %d octets", c.name, r.Base(), r.Len())
			}
		}
		if got := table.Usage(); got != want {
			t.Errorf("%s: registered %+v, want %+v", c.name, got, want)
		}
		if c.name == "more entries than the Table allows" {
			continue // the region's own limit is what Fast-Register meets
		}
		fast, err := table.AllocRegion(pd, 3, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := table.FastRegister(pd, 1, fast.STag(), nil, cfg); !errors.Is(err, c.want) || fast.Valid() != (c.want == nil) {
			t.Errorf("%s: fast-register: %v, want %v; valid %v", c.name, err, c.want, fast.Valid())
		}
		again := register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead})
		if err := table.Reregister(again, pd, nil, cfg); !errors.Is(err, c.want) || again.Valid() != (c.want == nil) {
			t.Errorf("%s: reregister: %v, want %v; valid %v", c.name, err, c.want, again.Valid())
		}
	}
}

func TestBufferAndListTogetherAreRefused(t *testing.T) {
	table := NewTable(Config{})
	pages := Pages(1, MinPageSize)
	cfg := RegionConfig{List: &BufferList{pages, MinPageSize, 0, 1}, Access: LocalRead}
	if _, err := table.Register(table.AllocPD(), pages[0], cfg); !errors.Is(err, ErrBufferEntry) {
		t.Errorf("error %v, want %v", err, ErrBufferEntry)
	}
}

func TestPagesBeginOnTheirBoundaries(t *testing.T) {
	for _, size := range []int{MinPageSize, 64 << 10} {
		pages := Pages(5, size)
		l := BufferList{pages, size, 0, uint64(5 * size)}
		if err := l.check(false); err != nil || len(pages) != 5 {
			t.Errorf("%d pages of %d octets: %v", len(pages), size, err)
		}
	}
}

// A list is written through its region, in random parts, and compared with what
// the octets one by one are.
//
// Claims: V-7.6.1.2-1 V-7.6.1.1-1 V-7.6.2.1-1 V-7.6.2.2-1 V-9.2.6.2-6
func TestOctetsOfAListAreWhereTheyBelong(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for round := range 300 {
		size, count := MinBlockSize+rng.IntN(40), 1+rng.IntN(6)
		all := make([]byte, 3*count*size)
		var list [][]byte
		for i := range count {
			at := rng.IntN(len(all) - size + 1)
			if i > 0 && rng.IntN(2) == 0 { // behind the one before, in half of the cases
				at = (cap(all) - cap(list[i-1]) + size) % (len(all) - size)
			}
			b := all[at : at+size]
			if rng.IntN(4) == 0 {
				b = b[:size:size]
			}
			list = append(list, b)
		}
		fbo := rng.IntN(size)
		length := 1 + rng.IntN(count*size-fbo)
		var octets []*byte
		for n := fbo; n < fbo+length; n++ {
			octets = append(octets, &list[n/size][n%size])
		}

		table := NewTable(Config{Block: true})
		pd := table.AllocPD()
		cfg := RegionConfig{List: &BufferList{list, size, fbo, uint64(length)}, Access: LocalWrite, ZeroBased: true}
		r, err := table.Register(pd, nil, cfg)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		clear(cfg.List.Buffers) // the list itself may be used again at once
		var h Holder
		h.Init(table, pd, 0)
		for range 30 {
			off := rng.IntN(length)
			n := 1 + rng.IntN(length-off)
			pieces, fault := h.Resolve(nil, uint32(r.STag()), uint64(off), uint64(n), LocalWrite)
			if fault != ddp.NoFault {
				t.Fatalf("round %d: %d octets from %d: %v", round, n, off, fault)
			}
			for _, p := range pieces {
				if len(p) == 0 || cap(p) != len(p) {
					t.Fatalf("round %d: a piece of %d octets that reaches over %d", round, len(p), cap(p))
				}
				for i := range p {
					if n == 0 || &p[i] != octets[off] {
						t.Fatalf("round %d: octet %d is another one", round, off)
					}
					off, n = off+1, n-1
				}
			}
			if n != 0 {
				t.Fatalf("round %d: %d octets are missing", round, n)
			}
		}
		h.Forget()
	}
}

func TestAdjacentBuffersBecomeOnePiece(t *testing.T) {
	table := NewTable(Config{Block: true})
	pd := table.AllocPD()
	all := make([]byte, 1000)
	whole := [][]byte{all[100:200], all[200:300], all[300:400]}
	gap := [][]byte{all[100:200], all[200:300], all[400:500]}
	tight := [][]byte{all[100:200:200], all[200:300:300]} // nothing says that they are one
	var h Holder
	h.Init(table, pd, 0)
	defer h.Forget()
	for _, c := range []struct {
		name   string
		list   [][]byte
		pieces int
		plain  bool
	}{{"all adjacent", whole, 1, true}, {"two of three", gap, 2, false}, {"none that shows", tight, 2, false}} {
		n := uint64(len(c.list)*100 - 20)
		r, err := table.Register(pd, nil, RegionConfig{List: &BufferList{c.list, 100, 10, n}, Access: LocalRead, ZeroBased: true})
		if err != nil {
			t.Fatal(err)
		}
		pieces, fault := h.Resolve(nil, uint32(r.STag()), 0, n, LocalRead)
		if fault != ddp.NoFault || len(pieces) != c.pieces || (r.Buf() != nil) != c.plain {
			t.Errorf("%s: %v, %d pieces, want %d; in one buffer %v", c.name, fault, len(pieces), c.pieces, r.Buf() != nil)
		}
	}
}

func TestAtomicNeedsItsOctetsInOneBuffer(t *testing.T) {
	table := NewTable(Config{Block: true})
	pd := table.AllocPD()
	_, a := words(32)
	_, b := words(32)
	list := [][]byte{a[4:][:100:100], b[:100:100]} // the first ends in the middle of a word
	r, err := table.Register(pd, nil, RegionConfig{List: &BufferList{list, 100, 0, 200}, Access: anyLocal | RemoteAtomic})
	if err != nil {
		t.Fatal(err)
	}
	var h Holder
	h.Init(table, pd, 0)
	for _, c := range []struct {
		to         uint64
		misaligned bool
	}{{0, true}, {4, false}, {84, false}, {92, false}, {96, true}, {100, false}, {104, true}, {108, false}, {192, true}} {
		want := ddp.NoFault
		if _, misaligned, fault := h.Atomic(uint32(r.STag()), c.to, func(v uint64) uint64 { return v + 1 }); fault != want || misaligned != c.misaligned {
			t.Errorf("at %d: %v, misaligned %v, want %v", c.to, fault, misaligned, c.misaligned)
		}
	}
	if bytes.Equal(a, make([]byte, len(a))) {
		t.Error("nothing was done")
	}
}
