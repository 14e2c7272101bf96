//go:build !race

package fpdu

import "testing"

func TestAppendingAllocatesNothingOnceWarm(t *testing.T) {
	header := pattern(18, 1)
	for _, n := range []int{64, 4096, 64000} {
		for _, b := range []Batch{{Refer: CopyLimit}, {Refer: CopyLimit, CRC: true}, {Markers: true, CRC: true}} {
			payload := [][]byte{pattern(n, 1)}
			turn := 0
			run := func() {
				for b.Room() {
					if turn++; turn%2 == 0 {
						b.appendCopy(18+n, header, payload)
					} else {
						b.append(18+n, header, payload)
					}
				}
				for !b.Empty() {
					b.Wrote(min(1000, b.octets-b.sent))
				}
			}
			for range 10 {
				run() // the arena grows
			}
			if allocs := testing.AllocsPerRun(10, run); allocs != 0 {
				t.Errorf("payload %d, %+v: %v allocations a batch, expected none", n, b.Markers, allocs)
			}
		}
	}
}
