package verbs_test

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// An open RNIC cannot be opened again until it is closed.
//
// Claims: V-5.1.2-1 V-5.1.2-2 V-9.2.1.1-7
// Claims: V-9.2.1.1-2
func TestAnRNICIsOpenedOnce(t *testing.T) {
	one := must(verbs.Open(verbs.Config{Name: "once"}))(t)
	other := must(verbs.Open(verbs.Config{Name: "once.other"}))(t)
	if one == other || one.Name() != "once" || other.Name() != "once.other" {
		t.Errorf("%q and %q were opened", one.Name(), other.Name())
	}
	_, err := verbs.Open(verbs.Config{Name: "once"})
	wantError(t, err, verbs.ErrRNICInUse)
	check(t, other.Close())
	_, err = verbs.Open(verbs.Config{Name: "once"})
	wantError(t, err, verbs.ErrRNICInUse)
	must(one.AllocPD())(t) // which the refusal did not disturb
	check(t, one.Close())
	again := must(verbs.Open(verbs.Config{Name: "once"}))(t)
	wantError(t, one.Close(), verbs.ErrRNIC) // and does not free the name that is in use again
	_, err = verbs.Open(verbs.Config{Name: "once"})
	wantError(t, err, verbs.ErrRNICInUse)
	check(t, again.Close())
}

// Claims: V-9.2.1.1-6
func TestNamesOfRNICsAreWellFormed(t *testing.T) {
	for _, name := range []string{" ", "a b", "a/b", "naïve", "a\x00", "\n", "eth0:1", strings.Repeat("x", 64)} {
		_, err := verbs.Open(verbs.Config{Name: name})
		wantError(t, err, verbs.ErrName)
	}
	for _, name := range []string{"x", "Weft-0_1.b", strings.Repeat("x", 63)} {
		check(t, must(verbs.Open(verbs.Config{Name: name}))(t).Close())
	}
}

func TestAnRNICWithoutANameTakesTheNextFreeOne(t *testing.T) {
	first := must(verbs.Open(verbs.Config{}))(t)
	n, err := strconv.Atoi(strings.TrimPrefix(first.Name(), "weft"))
	check(t, err)
	next := "weft" + strconv.Itoa(n+1)
	taken := must(verbs.Open(verbs.Config{Name: next}))(t)
	second := must(verbs.Open(verbs.Config{}))(t)
	if got := second.Name(); got != "weft"+strconv.Itoa(n+2) {
		t.Errorf("after %s, with %s taken, came %s", first.Name(), next, got)
	}
	check(t, first.Close())
	if reopened := must(verbs.Open(verbs.Config{}))(t); reopened.Name() != first.Name() {
		t.Errorf("%s is free, and %s was taken", first.Name(), reopened.Name())
	} else {
		check(t, reopened.Close())
	}
	check(t, taken.Close())
	check(t, second.Close())
}

func TestAProcessOpensSoManyRNICsAndNoMore(t *testing.T) {
	var open []*verbs.RNIC
	for {
		r, err := verbs.Open(verbs.Config{})
		if err != nil {
			wantLimit(t, err, verbs.ErrResources, "MaxRNICs")
			break
		}
		if open = append(open, r); len(open) > verbs.MaxRNICs {
			t.Fatalf("%d are open", len(open))
		}
	}
	check(t, open[0].Close())
	open[0] = must(verbs.Open(verbs.Config{}))(t)
	for _, r := range open {
		check(t, r.Close())
	}
}

// Claims: V-5.1.2-3 V-5.1.2-4 V-9.2.1.1-1 V-9.2.1.1-5 V-9.2.1.2-23
// Claims: V-9-6 V-7.6.2-1
// Claims: V-9.2.1.1-2 V-9.2.1.2-24 V-9.2.1.2-25
func TestTheModeSaysWhichBuffersAListHas(t *testing.T) {
	list := func(page []byte, size, off int) *verbs.BufferList {
		return &verbs.BufferList{Buffers: [][]byte{page[off : off+size]}, Size: size, Length: uint64(size)}
	}
	page := memory.Pages(1, 1<<14)[0]
	for _, tt := range []struct {
		name        string
		list        *verbs.BufferList
		page, block error // the result in each mode
	}{
		{"pages", list(page, 4096, 0), nil, nil},
		{"pages that are none", list(page, 4096, 64), verbs.ErrBufferEntry, nil},
		{"blocks", list(page, 192, 7), verbs.ErrBufferSize, nil},
		{"the smallest blocks", list(page, 64, 1), verbs.ErrBufferSize, nil},
		{"too small", list(page, 63, 0), verbs.ErrBufferSize, verbs.ErrBufferSize},
	} {
		for _, m := range []struct {
			mode verbs.Mode
			want error
		}{{verbs.PageMode, tt.page}, {verbs.BlockMode, tt.block}} {
			r := must(verbs.Open(verbs.Config{Mode: m.mode}))(t)
			if a := must(r.Query())(t); a.Mode != m.mode {
				t.Errorf("opened in %v, it is in %v", m.mode, a.Mode)
			}
			pd := must(r.AllocPD())(t)
			_, err := pd.RegisterMR(verbs.MRConfig{List: tt.list, Access: verbs.LocalRead, ZeroBased: true})
			if !errors.Is(err, m.want) {
				t.Errorf("%s, %v: %v, expected %v", tt.name, m.mode, err, m.want)
			}
			check(t, r.Close())
		}
	}
	_, err := verbs.Open(verbs.Config{Name: "mode", Mode: 2})
	wantError(t, err, verbs.ErrBlockList)
	check(t, must(verbs.Open(verbs.Config{Name: "mode"}))(t).Close()) // the name was not kept
}

// Every attribute of Verbs §9.2.1.2, for an RNIC as it is by default and for one
// that was opened otherwise. That limits are met is
// TestLimitsAreEnforcedAndNamed's to show.
//
// Claims: V-5.1.3-1 V-9.2.1.2-1
// Claims: V-9-5 V-6.3-3
// Claims: V-9.2.1.2-2 V-9.2.1.2-3 V-9.2.1.2-7 V-9.2.1.2-24 V-9.2.1.2-25 V-9.2.1.2-26 V-9.2.1.2-27 V-9.2.1.2-29 V-6.5-2
func TestQueryTellsEveryAttribute(t *testing.T) {
	r := must(verbs.Open(verbs.Config{Name: "plain"}))(t)
	a := must(r.Query())(t)
	var pages []int
	for size := 4096; len(pages) < 19; size += size {
		pages = append(pages, size)
	}
	want := verbs.Attributes{
		Name: "plain", Vendor: a.Vendor, Mode: verbs.PageMode, PageSizes: pages, CloseTimeout: 5 * time.Second,
		Limits: verbs.Limits{
			PDs: 65536, CQs: 65536, CQEntries: 1048576, CompletionHandlers: 1024, QPs: 65536, WRs: 65536, SGEs: 32,
			IRD: 256, ORD: 256, SRQs: 65536, SRQWRs: 1048576, Regions: 1048576, Windows: 1048576, ListEntries: 65536,
			Listeners: 1024, PendingConnections: 4096,
		},
		ModifyIRD: true, IncreaseORD: true, ModifyWRs: true, SRQ: true, DequeueModel: verbs.ArrivalOrder,
		CQOverflowDetect: true, Extensions: true,
	}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("an RNIC by default is\n%+v, expected\n%+v", a, want)
	}
	if a.Vendor == "" {
		t.Error("nothing is said about the vendor")
	}
	check(t, r.Close())

	r = must(verbs.Open(verbs.Config{Name: "other", Mode: verbs.BlockMode, Limits: verbs.Limits{
		QPs: 3, SGEs: 1, IRD: 1 << 20, ORD: 7, TotalIRD: 8, TotalORD: 9, TotalCQEntries: -1,
		Regions: 1 << 24, Windows: 1 << 24,
	}}))(t)
	b := must(r.Query())(t)
	a.Name, a.Mode, a.PageSizes, a.MinBlock, a.MaxBlock = "other", verbs.BlockMode, nil, 64, 1<<30
	a.Limits.QPs, a.Limits.SGEs, a.Limits.IRD, a.Limits.ORD = 3, 4, 0x3FFE, 7
	a.Limits.TotalIRD, a.Limits.TotalORD = 8, 9
	a.Limits.Regions, a.Limits.Windows = memory.LimitRegions, memory.LimitWindows
	if !reflect.DeepEqual(a, b) {
		t.Errorf("the other RNIC is\n%+v, expected\n%+v", b, a)
	}
	check(t, r.Close())
	_, err := r.Query()
	wantError(t, err, verbs.ErrRNIC)
	_, err = new(verbs.RNIC).Query()
	wantError(t, err, verbs.ErrRNIC)
}
