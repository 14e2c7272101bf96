//go:build unix

package pages

import (
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/internal/pages/pagestest"
)

// put copies under Trap and Catch, with memory as what may fault.
func put(dst, src []byte, memory ...[]byte) (err error) {
	defer Catch(&err, memory, Trap())
	copy(dst, src)
	return nil
}

func TestAFaultInTheMemoryNamedBecomesAnError(t *testing.T) {
	plain := make([]byte, 3*pagestest.Page)
	readOnly, none, cut := pagestest.ReadOnly(t, 3), pagestest.NoAccess(t, 3), pagestest.Truncated(t, 1, 3)
	for name, test := range map[string]struct{ dst, src, at []byte }{
		"written, read only":   {readOnly, plain, readOnly},
		"written, no access":   {none, plain, none},
		"written, truncated":   {cut, plain, cut},
		"read, no access":      {plain, none, none},
		"read, truncated":      {plain, cut, cut},
		"written from within":  {readOnly[5:900], plain, readOnly[5:900]},
		"read from the middle": {plain[3:], cut[pagestest.Page+77:], cut[pagestest.Page+77:]},
	} {
		err := put(test.dst, test.src, plain[:1], test.at)
		f := new(Fault)
		if !errors.As(err, &f) {
			t.Errorf("%s: %v, expected a Fault", name, err)
			continue
		}
		if !within(f.Addr, test.at) || !strings.Contains(err.Error(), "cannot be accessed") {
			t.Errorf("%s: %v, expected an address in the memory at %p", name, err, test.at)
		}
	}
	if err := put(plain, readOnly, readOnly, plain); err != nil || plain[500] != pagestest.Octet(500) {
		t.Errorf("a copy without a fault: %v", err)
	}
}

// A fault elsewhere, and every other panic, is somebody's defect and not the
// memory's.
func TestAnyOtherPanicGoesOn(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // else the first would end the test
	none, memory := pagestest.NoAccess(t, 1), make([]byte, 64)
	for name, do := range map[string]func() error{
		"a fault elsewhere": func() error { return put(memory, none, memory) },
		"a bug":             func() (err error) { defer Catch(&err, [][]byte{memory}, Trap()); return use(memory, len(memory)) },
		"a nil pointer":     func() (err error) { defer Catch(&err, [][]byte{memory}, Trap()); return *(*error)(nil) },
		"no memory":         func() error { return put(memory, none) },
	} {
		func() {
			defer func() {
				if _, ok := recover().(runtime.Error); !ok {
					t.Errorf("%s did not panic as it should", name)
				}
			}()
			t.Errorf("%s came back with %v", name, do())
		}()
	}
}

func use(b []byte, i int) error { b[i]++; return nil }

func TestCatchRestoresWhatWasSet(t *testing.T) {
	none := pagestest.NoAccess(t, 1)
	for _, was := range []bool{false, true} {
		before := debug.SetPanicOnFault(was)
		ok, fault := put(make([]byte, 4), make([]byte, 4)), put(none, make([]byte, 4), none)
		if got := debug.SetPanicOnFault(before); got != was || ok != nil || fault == nil {
			t.Errorf("%v afterwards, expected %v; errors %v and %v", got, was, ok, fault)
		}
	}
}

func TestProbesTellHowFarMemoryCanBeUsed(t *testing.T) {
	page := pagestest.Page
	mixed := pagestest.Plain(t, 4)
	pagestest.Protect(t, mixed[page:2*page], unix.PROT_READ)
	pagestest.Protect(t, mixed[3*page:], unix.PROT_NONE)
	cut := pagestest.Truncated(t, 1, 2)
	for _, test := range []struct {
		name                string
		b                   []byte
		readable, writeable int
	}{
		{"nothing", nil, 0, 0},
		{"an octet", mixed[17:18], 1, 1},
		{"a page", mixed[:page], page, page},
		{"up to an octet that is read only", mixed[page-1 : page+1], 2, 1},
		{"all", mixed, 3 * page, page},
		{"all but the beginning", mixed[page-3:], 2*page + 3, 3},
		{"read only", mixed[page : 2*page], page, 0},
		{"the last of what can be written", mixed[3*page-1 : 3*page], 1, 1},
		{"beyond the end of a file", cut, page, page},
	} {
		r, rerr := Readable(test.b)
		w, werr := Writable(test.b)
		if r != test.readable || (rerr == nil) != (r == len(test.b)) {
			t.Errorf("%s: %d octets are readable, error %v, expected %d of %d", test.name, r, rerr, test.readable, len(test.b))
		}
		if w != test.writeable || (werr == nil) != (w == len(test.b)) {
			t.Errorf("%s: %d octets are writable, error %v, expected %d of %d", test.name, w, werr, test.writeable, len(test.b))
		}
	}
	for i, b := range mixed[:3*page] {
		if b != pagestest.Octet(i) {
			t.Fatalf("octet %d has changed", i)
		}
	}
}

// Probing loses no concurrent write.
func TestWritableLosesNoWriteOfOthers(t *testing.T) {
	b := pagestest.Plain(t, 1)
	clear(b)
	word := (*atomic.Uint32)(unsafe.Pointer(&b[0]))
	const times = 20000
	var others sync.WaitGroup
	others.Go(func() {
		for range times {
			word.Add(1)
		}
	})
	for word.Load() < times/2 {
		if _, err := Writable(b[:4]); err != nil {
			t.Fatal(err)
		}
	}
	others.Wait()
	if got := word.Load(); got != times {
		t.Errorf("%d, expected %d", got, times)
	}
}
