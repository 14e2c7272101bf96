package memory

import (
	"math"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// Claims: V-7.2.1-4 V-7.2.1-5 V-7.2.1-6
// Claims: V-7.2.1-1
func TestZeroNamesPhysicalMemoryForWhoMayUseIt(t *testing.T) {
	buf := make([]byte, 64)
	table := NewTable(Config{Physical: buf})
	without := NewTable(Config{})
	pd := table.AllocPD()
	for _, c := range []struct {
		name  string
		table *Table
		allow bool
		stag  uint32
		to, n uint64
		need  Access
		want  ddp.Fault
	}{
		{"read", table, true, 0, 0, 64, LocalRead, ddp.NoFault},
		{"write the last octet", table, true, 0, 63, 1, LocalWrite, ddp.NoFault},
		{"one too many", table, true, 0, 0, 65, LocalRead, ddp.FaultBounds},
		{"behind", table, true, 0, 64, 1, LocalRead, ddp.FaultBounds},
		{"wrap", table, true, 0, math.MaxUint64, 2, LocalRead, ddp.FaultWrap},
		{"remote read", table, true, 0, 0, 1, RemoteRead, ddp.FaultSTag},
		{"remote write", table, true, 0, 0, 1, RemoteWrite, ddp.FaultSTag},
		{"remote atomic", table, true, 0, 0, 8, RemoteAtomic, ddp.FaultSTag},
		{"a key", table, true, 1, 0, 1, LocalRead, ddp.FaultSTag},
		{"not allowed", table, false, 0, 0, 1, LocalRead, ddp.FaultSTag},
		{"no memory", without, true, 0, 0, 1, LocalRead, ddp.FaultSTag},
	} {
		for _, warm := range []bool{false, true} {
			var h Holder
			h.Init(c.table, pd, 1) // of a domain that has nothing to do with it
			if c.allow {
				h.AllowZero()
			}
			if warm {
				_, _ = h.Resolve(nil, 0, 0, 1, LocalRead)
			}
			pieces, fault := h.Resolve(nil, c.stag, c.to, c.n, c.need)
			if fault != c.want || fault == ddp.NoFault && &pieces[0][0] != &buf[c.to] {
				t.Errorf("%s, warm %v: %v, want %v", c.name, warm, fault, c.want)
			}
			h.Forget()
			h.Init(c.table, pd, 1)
			if fault := h.Check(0, 0, 1, LocalRead); fault != ddp.FaultSTag {
				t.Errorf("%s: allowed to the next user: %v", c.name, fault)
			}
		}
	}
	for _, remote := range []bool{false, true} {
		if fault := table.Invalidate(0, pd, 1, remote); fault != ddp.FaultSTag {
			t.Errorf("invalidate, remote %v: %v", remote, fault)
		}
	}
	var h Holder
	h.Init(table, pd, 1)
	h.AllowZero()
	table.Close()
	if fault := h.Check(0, 0, 1, LocalRead); fault != ddp.FaultSTag {
		t.Errorf("closed: %v", fault)
	}
}
