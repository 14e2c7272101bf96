package memory

import (
	"sync/atomic"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// What changes the value between an atomic operation's look at it and its
// change, another stream or the program, is not undone: the operation starts
// again from what it finds then.
//
// Claims: X-5-2 X-5.3-1 X-5.4-3
func TestAnAtomicThatIsOvertakenStartsAgain(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	w, b := words(1)
	stag := uint32(register(t, table, pd, b, RegionConfig{Access: LocalRead | LocalWrite | RemoteAtomic}).STag())
	for name, overtake := range map[string]func(){
		"by another stream": func() {
			var other Holder
			other.Init(table, pd, 0)
			defer other.Forget()
			if _, misaligned, fault := other.Atomic(stag, 0, func(v uint64) uint64 { return v + 100 }); misaligned || fault != ddp.NoFault {
				t.Errorf("misaligned %v, %v", misaligned, fault)
			}
		},
		"by the program": func() { atomic.AddUint64(&w[0], 100) },
	} {
		w[0] = 5
		var h Holder
		h.Init(table, pd, 0)
		calls := 0
		found, misaligned, fault := h.Atomic(stag, 0, func(v uint64) uint64 {
			if calls++; calls == 1 {
				overtake()
			}
			return v + 1
		})
		h.Forget()
		if misaligned || fault != ddp.NoFault || found != 105 || w[0] != 106 {
			t.Errorf("%s: found %d and left %d (misaligned %v, %v), expected 105 and 106", name, found, w[0], misaligned, fault)
		}
	}
}
