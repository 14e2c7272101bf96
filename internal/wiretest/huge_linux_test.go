//go:build linux && !386 && !arm && !mips && !mipsle

package wiretest

import (
	"bytes"
	"math"
	"net"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// window is how much memory there is behind a sparse mapping, in octets.
const window = 4 << 20

// sparse maps the same window again and again until there are n octets of
// addresses. The window itself is returned, too.
func sparse(t *testing.T, n int) (all, once []byte) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("mapping memory: %v", err)
		}
	}
	fd, err := unix.MemfdCreate("window", unix.MFD_CLOEXEC)
	must(err)
	f := os.NewFile(uintptr(fd), "window")
	defer f.Close()
	must(f.Truncate(window))
	size := (n + window - 1) / window * window
	base, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	must(err)
	t.Cleanup(func() {
		if err := unix.MunmapPtr(base, uintptr(size)); err != nil {
			t.Error(err)
		}
	})
	for off := 0; off < size; off += window {
		_, err := unix.MmapPtr(fd, 0, unsafe.Add(base, off), window, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
		must(err)
	}
	return unsafe.Slice((*byte)(base), n), unsafe.Slice((*byte)(base), window)
}

// Messages are as long as 2^32-1 octets, and the arithmetic holds to the last:
// that of message offsets in a Send, that of tagged offsets in a Write that ends
// at 2^64. The race detector is too slow for it, and gets the same tagged
// offsets with fewer octets.
//
// Claims: DDP-5.2-3 DDP-5.2-6 DDP-5.2-8
// Claims: V-8.1.2.1-4
// Claims: R-1.1-3
func TestAMessageOfTheGreatestLengthArrives(t *testing.T) {
	n, m := math.MaxUint32, 64<<20
	if raceDetector {
		n, m = 32<<20, 32<<20
	}
	// Mapped first, so that whatever happens it is unmapped when the Sides are gone.
	source, from := sparse(t, n)
	sink, to := sparse(t, math.MaxUint32)
	a, b := NewSide(t, verbs.QPConfig{}, 0), NewSide(t, verbs.QPConfig{}, 0)
	for i := range from {
		from[i] = byte(i) ^ byte(i>>8) ^ byte(i>>16)
	}
	region := func(s *Side, buf []byte, base uint64) *verbs.MR {
		mr, err := s.PD.RegisterMR(verbs.MRConfig{Buf: buf, Access: AllRights, VA: base})
		if err != nil {
			t.Fatal(err)
		}
		return mr
	}
	out, in := region(a, source, 0), region(b, sink, 1<<64-math.MaxUint32)
	b.Receives(in, 0, n, 1)

	cfg := mpa.Config{NoCRC: true}
	ln := b.Listen(Wire{}, cfg)
	accepted := make(chan error, 1)
	go func() {
		req, err := ln.Accept(t.Context())
		if err == nil {
			_, err = req.Accept(t.Context(), b.QP, cm.Params{MPA: cfg})
		}
		accepted <- err
	}()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := cm.Connect(t.Context(), a.QP, nc, cm.Params{MPA: cfg})
	if err != nil {
		t.Fatal(err)
	}
	if err := nettest.Await(t, accepted); err != nil {
		t.Fatal(err)
	}

	a.Post(verbs.SendWR{ID: 0, Op: verbs.OpSend, SGL: []verbs.SGE{out.SGE(0, n)}})
	if err := a.SendCQ.Wait(t.Context()); err != nil { // however long it takes
		t.Fatal(err)
	}
	a.Statuses(a.SendCQ, 0, verbs.Success)
	if wc := b.Statuses(b.RecvCQ, 100, verbs.Success)[0]; wc.Bytes != uint32(n) {
		t.Errorf("%d octets arrived, expected %d", wc.Bytes, n)
	}
	if !bytes.Equal(from, to) {
		t.Error("other octets arrived")
	}

	// The last m octets of all tagged offsets, and one Read of the very last.
	off := math.MaxUint32 - m
	clear(to)
	a.Post(verbs.SendWR{ID: 1, Op: verbs.OpWrite, SGL: []verbs.SGE{out.SGE(0, m)}, Remote: in.Remote(off)})
	a.Post(verbs.SendWR{ID: 2, Op: verbs.OpRead, SGL: []verbs.SGE{out.SGE(0, 1)}, Remote: in.Remote(math.MaxUint32 - 1)})
	last := from[window-1]
	a.Statuses(a.SendCQ, 1, verbs.Success, verbs.Success)
	if from[0] != last {
		t.Errorf("the last octet is %#x, expected %#x", from[0], last)
	}
	from[0] = 0 // as it was
	if at := off % window; !bytes.Equal(to[at:], from[:window-at]) || !bytes.Equal(to[:at], from[window-at:]) {
		t.Error("other octets were written")
	}

	a.ExpectEvent(verbs.EventLLPCloseComplete)
	b.ExpectEvent(verbs.EventLLPCloseComplete)
	if err := conn.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	b.Reach(verbs.Idle)
}
