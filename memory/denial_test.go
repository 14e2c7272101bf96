package memory

import (
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// Denied says which rights a refused access needed, and which there were.
func TestARefusalSaysWhichRightsThereAre(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	r := register(t, table, pd, make([]byte, 16), RegionConfig{Access: LocalRead | LocalWrite | RemoteRead | BindWindow})
	w := allocWindow(t, table, pd)
	bind(t, table, pd, 1, w, r, RemoteRead)
	var h Holder
	h.Init(table, pd, 1)
	for _, c := range []struct {
		name string
		ask  func() ddp.Fault
		want Denial
		text string
	}{
		{"a region", func() ddp.Fault { return h.Check(uint32(r.STag()), 0, 8, RemoteWrite) },
			Denial{Need: RemoteWrite, Have: LocalRead | LocalWrite | RemoteRead | BindWindow},
			"the region has local read+local write+remote read+bind window, it needs remote write"},
		{"a window", func() ddp.Fault { _, f := h.Resolve(nil, uint32(w.STag()), 0, 8, RemoteWrite); return f },
			Denial{Need: RemoteWrite, Have: RemoteRead, Window: true}, "the window has remote read, it needs remote write"},
		{"an atomic", func() ddp.Fault { _, f := h.CheckAtomic(uint32(w.STag()), 0); return f },
			Denial{Need: RemoteAtomic, Have: RemoteRead, Window: true}, "the window has remote read, it needs remote atomic"},
	} {
		if f := c.ask(); f != ddp.FaultAccess {
			t.Errorf("%s: %v, want %v", c.name, f, ddp.FaultAccess)
		}
		if got := h.Denied(); got != c.want || got.String() != c.text {
			t.Errorf("%s: %+v, %q, want %+v, %q", c.name, got, got, c.want, c.text)
		}
	}
}
