package wire_test

import (
	"testing"

	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// Claims: P-3.4-14 P-3.7-5 P8166-3.4.5.2-2 P8166-3.4.5.2-3
func TestAChunkHoldsItsItemWithOrWithoutRoundup(t *testing.T) {
	for _, c := range []struct {
		length uint64
		count  uint32
		want   bool
	}{
		{0, 0, true}, {4, 0, false},
		{5, 5, true}, {8, 5, true}, {6, 5, false}, {7, 5, false}, {4, 5, false}, {9, 5, false},
		{8, 8, true}, {12, 8, false},
		{96, 100, false},
		{1<<32 - 1, 1<<32 - 1, true}, {1 << 32, 1<<32 - 1, true}, {0, 1<<32 - 1, false},
	} {
		if got := wire.Holds(c.length, c.count); got != c.want {
			t.Errorf("%d octets hold an item of %d: %v, want %v", c.length, c.count, got, c.want)
		}
	}
}

// Claims: P-3.7-4 P-3.7-6 P8166-3.4.5.2-1
func TestRoundupIsElidedFromTheOnlyReadChunk(t *testing.T) {
	for _, c := range []struct {
		count        uint32
		alone, among uint64
	}{{0, 0, 0}, {1, 1, 4}, {4099, 4099, 4100}, {8, 8, 8}, {1<<32 - 1, 1<<32 - 1, 1 << 32}} {
		if alone, among := wire.ReadChunkLength(c.count, true), wire.ReadChunkLength(c.count, false); alone != c.alone || among != c.among {
			t.Errorf("%d: %d alone and %d among others, want %d and %d", c.count, alone, among, c.alone, c.among)
		}
	}
}

func TestPadLeadsToTheNextMultipleOf4(t *testing.T) {
	for n, want := range []int{0, 3, 2, 1, 0, 3} {
		if got := wire.Pad(uint64(n)); got != want {
			t.Errorf("Pad(%d) is %d, want %d", n, got, want)
		}
	}
}
