package memory

import (
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/ddp"
)

// Octets that move through a window are octets of its region: nobody who ends the
// region gets the memory back before the last user of a window that was bound to it is
// gone, even if somebody else is waiting for that, too.
//
// Claims: V-7.9-2 V-7.3.2.3-6
func TestWhoEndsARegionWaitsForTheUsersOfItsWindows(t *testing.T) {
	for _, unbind := range []struct {
		name string
		do   func(table *Table, pd *PD, w *Window) error
	}{
		{"invalidate", func(table *Table, pd *PD, w *Window) error {
			return faultErr(table.Invalidate(uint32(w.STag()), pd, 1, false))
		}},
		{"deallocate", func(table *Table, pd *PD, w *Window) error { return table.DeallocateWindow(w) }},
	} {
		for _, c := range revokers {
			t.Run(unbind.name+" the window, "+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					table := NewTable(Config{})
					pd := table.AllocPD()
					r := register(t, table, pd, make([]byte, 8), RegionConfig{Access: anyLocal | RemoteRead | BindWindow})
					w := allocWindow(t, table, pd)
					bind(t, table, pd, 1, w, r, RemoteRead)
					var h Holder
					h.Init(table, pd, 1)
					if _, fault := h.Resolve(nil, uint32(w.STag()), 0, 8, RemoteRead); fault != ddp.NoFault {
						t.Fatal(fault)
					}
					done := make(chan error, 2)
					go func() { done <- unbind.do(table, pd, w) }()
					synctest.Wait() // the window is Invalid, and held
					go func() { done <- c.revoke(table, r) }()
					synctest.Wait()
					if n := len(done); n != 0 {
						t.Errorf("%d of 2 returned while octets may move", n)
					}
					h.Forget()
					synctest.Wait()
					if n := len(done); n != 2 {
						t.Fatalf("%d of 2 returned when nobody used the memory any more", n)
					}
					for range 2 {
						if err := <-done; err != nil {
							t.Error(err)
						}
					}
				})
			})
		}
	}
}
