package ddp

import (
	"math"
	"testing"
)

// Claims: DDP-4.3-6 DDP-4.3-7
func TestSequenceCountsEachQueueFromOne(t *testing.T) {
	var s Sequence
	for i, qn := range []uint32{0, 0, 1, 2, 0, 3, 1, 0} {
		want := []uint32{1, 2, 1, 1, 3, 1, 2, 4}[i]
		if got := s.Next(qn); got != want {
			t.Errorf("message %d: MSN %d on queue %d, want %d", i, got, qn, want)
		}
	}
}

// Claims: DDP-4.3-6 DDP-4.3-8
func TestSequenceWrapsToZero(t *testing.T) {
	s := Sequence{last: [Queues]uint32{math.MaxUint32 - 2}}
	for _, want := range []uint32{math.MaxUint32 - 1, math.MaxUint32, 0, 1} {
		if got := s.Next(0); got != want {
			t.Errorf("MSN %d, want %d", got, want)
		}
	}
}
