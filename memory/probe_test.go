//go:build unix

package memory

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/internal/pages/pagestest"
)

// With ProbePages a region has no right that the program itself has not.
//
// Claims: R-8.1.2-4 DDP-8.3.2-3 S-7.3-1
func TestPagesAreProbedBeforeAnSTagNamesThem(t *testing.T) {
	page := pagestest.Page
	readOnly, none, cut := pagestest.ReadOnly(t, 2), pagestest.NoAccess(t, 2), pagestest.Truncated(t, 1, 2)
	plain := pagestest.Plain(t, 4)
	half := pagestest.Plain(t, 2)
	pagestest.Protect(t, half[page:], unix.PROT_READ)
	list := func(buffers ...[]byte) *BufferList {
		return &BufferList{Buffers: buffers, Size: page, Length: uint64(len(buffers) * page)}
	}
	table, lax := NewTable(Config{ProbePages: true}), NewTable(Config{})
	pd, laxPD := table.AllocPD(), lax.AllocPD()
	for _, test := range []struct {
		name   string
		buf    []byte
		list   *BufferList
		access Access
		says   string // of the error; empty: there is none
	}{
		{"read only, to be read", readOnly, nil, LocalRead | RemoteRead, ""},
		{"read only, to be written", readOnly, nil, LocalWrite | RemoteWrite, "octet 0 of"},
		{"no access, to be read", none, nil, LocalRead, "octet 0 of"},
		{"no access, to be written", none, nil, LocalWrite, "octet 0 of"},
		{"truncated, to be read", cut, nil, LocalRead | RemoteRead, "cannot be read"},
		{"truncated, what is left", cut[:page], nil, LocalRead | LocalWrite | RemoteAtomic, ""},
		{"plain", plain[1:], nil, LocalRead | LocalWrite | RemoteWrite, ""},
		{"an octet too many", half[3 : page+1], nil, LocalWrite, "cannot be written"},
		{"a list", nil, list(plain[page:2*page], plain[3*page:], plain[:page]), LocalWrite, ""},
		{"a list with a page that is read only", nil, list(plain[page:2*page], half[page:]), LocalWrite, "octet 4096 of 8192 cannot be written"},
	} {
		if strings.Contains(test.says, "4096") && page != 4096 {
			test.says = "cannot be written"
		}
		cfg := RegionConfig{List: test.list, Access: test.access}
		r, err := table.Register(pd, test.buf, cfg)
		switch {
		case test.says == "" && err != nil, test.says != "" && (!errors.Is(err, ErrAccess) || !strings.Contains(err.Error(), test.says)):
			t.Errorf("%s: %v, expected %q", test.name, err, test.says)
		case err == nil && table.Deallocate(r) != nil:
			t.Errorf("%s: cannot be deallocated", test.name)
		}
		if _, err := lax.Register(laxPD, test.buf, cfg); err != nil {
			t.Errorf("%s, not probed: %v", test.name, err)
		}
	}
	if u := table.Usage(); u.Regions != 0 || u.Bytes != 0 {
		t.Errorf("%+v is left", u)
	}
	for i, b := range plain {
		if b != pagestest.Octet(i) {
			t.Fatalf("octet %d has changed", i)
		}
	}
}

// So has one that is given other memory, or other rights.
func TestPagesAreProbedByAllWaysToRegister(t *testing.T) {
	table := NewTable(Config{ProbePages: true})
	pd := table.AllocPD()
	readOnly, plain := pagestest.ReadOnly(t, 1), pagestest.Plain(t, 1)

	r := register(t, table, pd, readOnly, RegionConfig{Access: LocalRead})
	if _, err := table.RegisterShared(r.STag(), pd, RegionConfig{Access: LocalRead | LocalWrite}); !errors.Is(err, ErrAccess) {
		t.Errorf("shared: %v", err)
	}
	if _, err := table.RegisterShared(r.STag(), pd, RegionConfig{Access: RemoteWrite}); !errors.Is(err, ErrAccess) {
		t.Errorf("shared, with rights that do not go together: %v", err)
	}
	if _, err := table.RegisterShared(r.STag()+1, pd, RegionConfig{Access: LocalRead | LocalWrite}); !errors.Is(err, ErrRegion) {
		t.Errorf("shared, with another key: %v", err)
	}
	if _, err := table.RegisterShared(r.STag(), pd, RegionConfig{Access: LocalRead | RemoteRead}); err != nil {
		t.Errorf("shared, with rights that there are: %v", err)
	}

	r = register(t, table, pd, plain, RegionConfig{Access: LocalRead})
	if err := table.Reregister(r, pd, readOnly, RegionConfig{Access: LocalWrite}); !errors.Is(err, ErrAccess) {
		t.Errorf("reregistered: %v", err)
	}
	if _, err := table.QueryRegion(r.Index()); !errors.Is(err, ErrRegion) {
		t.Errorf("a failed Reregister: %v, expected it to be deallocated", err)
	}

	r, err := table.AllocRegion(pd, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	stag := makeSTag(r.Index(), 5)
	if err := table.FastRegister(pd, 0, stag, readOnly, RegionConfig{Access: LocalWrite}); !errors.Is(err, ErrAccess) || r.Valid() {
		t.Errorf("fast-registered: %v", err)
	}
	if err := table.FastRegister(pd, 0, stag, plain, RegionConfig{Access: LocalWrite}); err != nil || !r.Valid() {
		t.Errorf("fast-registered, with rights that there are: %v", err)
	}
}
