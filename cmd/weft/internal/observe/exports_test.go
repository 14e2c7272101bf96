package observe

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// exportOf tells exports apart by the XID.
func exportOf(r *oncrpc.Request) string { return map[uint32]string{1: "/one", 2: "/two"}[r.XID] }

func TestCallsAreCountedByExport(t *testing.T) {
	var log bytes.Buffer
	o := New(Config{Access: slog.New(slog.NewTextHandler(&log, nil))})
	o.SetExports([]string{"/one", "/two"}, exportOf)
	call := func(xid uint32, s nfs.Stat) {
		r := request(nfs.ProcGetattr)
		r.XID = xid
		if _, err := o.Handler(answering(s)).ServeRPC(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	call(1, nfs.OK)
	call(1, nfs.ErrStale)
	call(2, nfs.OK)
	call(3, nfs.OK) // none
	for name, want := range map[string]float64{"/one": 200, "/two": 100} {
		if got := testutil.ToFloat64(o.exports.in.WithLabelValues(name)); got != want {
			t.Errorf("%s received %v octets, want %v", name, got, want)
		}
	}
	if got := testutil.ToFloat64(o.exports.errors.WithLabelValues("/one")); got != 1 {
		t.Errorf("%v errors, want 1", got)
	}
	if n := testutil.CollectAndCount(o.exports.duration); n != 2 {
		t.Errorf("%d histograms, want 2", n)
	}
	if one, all := strings.Count(log.String(), "export=/one"), strings.Count(log.String(), "export="); one != 2 || all != 3 {
		t.Errorf("%d and %d lines of the access log name exports, want 2 and 3:\n%s", one, all, &log)
	}
}

func TestRemovedExportsHaveNoMetrics(t *testing.T) {
	o := New(Config{})
	o.SetExports([]string{"/one", "/two"}, exportOf)
	h := o.Handler(answering(nfs.OK))
	for range 2 {
		for xid := range uint32(3) {
			r := request(nfs.ProcGetattr)
			r.XID = xid
			if _, err := h.ServeRPC(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		o.SetExports([]string{"/two"}, exportOf) // which still names the other
	}
	if n := testutil.CollectAndCount(o.exports.duration) + testutil.CollectAndCount(o.exports.in); n != 2 {
		t.Errorf("%d series of one export, want 2", n)
	}
	if got := testutil.ToFloat64(o.exports.in.WithLabelValues("/two")); got != 200 {
		t.Errorf("the one that stays has %v octets, want 200", got)
	}
}
