//go:build unix

package verbs_test

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/pages/pagestest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// A badMemory is memory of n pages of which only the first, good of them, can be used.
type badMemory struct {
	name string
	made func(t testing.TB, good, n int) []byte
	read bool // it can be read
}

var badMemories = []badMemory{
	{"read only", func(t testing.TB, good, n int) []byte { return partly(t, good, n, unix.PROT_READ) }, true},
	{"no access", func(t testing.TB, good, n int) []byte { return partly(t, good, n, unix.PROT_NONE) }, false},
	{"truncated", pagestest.Truncated, false},
}

// partly is n pages of which all but the first have that right alone.
func partly(t testing.TB, good, n, right int) []byte {
	b := pagestest.Plain(t, n)
	pagestest.Protect(t, b[good*pagestest.Page:], right)
	return b
}

// A faultRole is what memory that faults is used for.
type faultRole struct {
	name   string
	op     verbs.Op
	local  bool // the memory is the poster's, or else the peer's
	writes bool // the memory is written
	small  bool // it is 8 octets
	status verbs.Status
	event  verbs.EventID // of the owner, if status is Success
	layer  uint8         // of the Terminate message, as are the next two
	etype  uint8
	code   uint8
}

var faultRoles = []faultRole{
	{name: "source of a Write", op: verbs.OpWrite, local: true, status: verbs.AccessViolation},
	{name: "source of a Send", op: verbs.OpSend, local: true, status: verbs.AccessViolation},
	{name: "source of a Read", op: verbs.OpRead, event: verbs.EventIRRQAccess, etype: 1, code: 2},
	{name: "target of a Write", op: verbs.OpWrite, writes: true, event: verbs.EventProtectionAccess, layer: 1, etype: 1, code: 2},
	{name: "sink of a Read", op: verbs.OpRead, local: true, writes: true, event: verbs.EventProtectionAccess, layer: 1, etype: 1, code: 2},
	{name: "receive", op: verbs.OpSend, writes: true, status: verbs.AccessViolation},
	{name: "target of an atomic", op: verbs.OpFetchAdd, writes: true, small: true, event: verbs.EventIRRQAccess, etype: 1, code: 2},
	{name: "result of an atomic", op: verbs.OpFetchAdd, local: true, writes: true, small: true, status: verbs.AccessViolation},
}

// An access to a page that the system does not let this program use is an access violation
// of that stream. Other streams go on.
//
// Claims: V-6.4-2 V-6.4-6 V-6.4-7 V-8.3.2-1 R-8.1.2-4 DDP-8.3.2-3 S-7.3-1
// Claims: D-10.3-12
func TestMemoryThatFaultsEndsItsStreamAlone(t *testing.T) {
	for _, r := range faultRoles {
		for _, m := range badMemories {
			if m.read && !r.writes {
				continue
			}
			// One is copied; fifteen are one segment, which is sent and received where it
			// lies; then there are many.
			for _, n := range []int{1, 15, 64} {
				if n > 1 && r.small {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d pages", r.name, m.name, n), func(t *testing.T) {
					overWires(t, func(t *testing.T, w wire) {
						for _, noCRC := range []bool{false, true} {
							r.fault(t, w, m, n, noCRC)
						}
					})
				})
			}
		}
	}
}

// Of short Writes that are posted together one has memory that cannot be read: those before it
// are in place, and that one fails.
func TestAShortWriteThatFaultsAmongOthersIsTheOneThatFails(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		for _, bad := range []int{1, 30, 99} {
			a, b := linked(t, w, verbs.QPConfig{SendDepth: 128}, verbs.QPConfig{})
			mem := partly(t, 1, 2, unix.PROT_NONE)
			mr := must(a.pd.Register(mem, verbs.LocalRead))(t)
			var wrs []verbs.SendWR
			var want []done
			for i := range 100 {
				wr := a.write(uint64(i), b, i, 1)
				wr.SGL[0] = mr.SGE(i, 1)
				status := verbs.Success
				switch {
				case i == bad:
					wr.SGL[0] = mr.SGE(pagestest.Page+5, 1)
					status = verbs.AccessViolation
				case i > bad:
					status = verbs.Flushed
				}
				wrs, want = append(wrs, wr), append(want, done{uint64(i), status})
			}
			a.post(wrs...)
			reach(t, a.qp, verbs.Error)
			reach(t, b.qp, verbs.Error)
			wantDone(t, a.sendCQ, want...)
			for i := range b.buf[:100] {
				if want := i < bad && mem[i] != 0; (b.buf[i] != 0) != want {
					t.Errorf("octet %d is in place: %v, with memory at fault from %d on", i, !want, bad)
				}
			}
		}
	})
}

// fault has the memory used.
func (r *faultRole) fault(t *testing.T, w wire, m badMemory, n int, noCRC bool) {
	a, b := newSide(t, reads), newSide(t, reads)
	p := cm.Params{MPA: mpa.Config{NoCRC: noCRC, MaxULPDU: mpa.MaxMULPDU}} // long enough to be placed by the system
	nextA, nextB := a.newQP(reads), b.newQP(reads)
	w.connect(t, a.qp, b.qp, p)
	w.connect(t, nextA, nextB, p)

	mem := m.made(t, min(n-1, 8), n)
	owner, peer := b, a
	if r.local {
		owner, peer = a, b
	}
	size := len(mem)
	if r.small {
		size = 8
	}
	mr := must(owner.pd.Register(mem, allRights))(t)
	wr := verbs.SendWR{ID: 1, Op: r.op, Flags: verbs.Signaled, SGL: []verbs.SGE{a.mr.SGE(0, size)}, Remote: b.mr.Remote(0)}
	receive := b.mr.SGE(0, size)
	switch {
	case r.local:
		wr.SGL[0] = mr.SGE(0, size)
	case r.op == verbs.OpSend:
		receive = mr.SGE(0, size)
	default:
		wr.Remote = mr.Remote(0)
	}
	if r.op == verbs.OpSend {
		check(t, b.qp.PostRecv(verbs.RecvWR{ID: 2, SGL: []verbs.SGE{receive}}))
	}
	// A responder takes the first segment whole.
	a.post(a.write(0, b, 0, 1))
	wantDone(t, a.sendCQ, done{0, verbs.Success})
	a.post(wr)

	reach(t, a.qp, verbs.Error)
	reach(t, b.qp, verbs.Error)
	r.toldOwner(t, owner)
	var said *rdmap.TerminateError
	if errors.As(peer.qp.Err(), &said) {
		if said.Layer != r.layer || said.EType != r.etype || said.Code != r.code {
			t.Errorf("the peer got %v, expected %s", said, rdmap.Describe(r.layer, r.etype, r.code))
		}
	} else if r.writes || !noCRC || n == 1 || w.name == "memory" { // else a segment may have left in part
		t.Errorf("the peer got no Terminate message: %v", peer.qp.Err())
	}

	// Nobody else is disturbed, and nothing is held any more.
	check(t, mr.Deallocate())
	check(t, nextA.PostSend(a.write(7, b, 0, 4096)))
	for {
		if wc := take(t, a.sendCQ, 1)[0]; wc.QP == nextA {
			wantStatus(t, wc, verbs.Success)
			break
		}
	}
	check(t, a.rnic.Close())
	check(t, b.rnic.Close())
}

// toldOwner checks what the memory's owner learns.
func (r *faultRole) toldOwner(t *testing.T, owner *side) {
	t.Helper()
	if err := owner.qp.Err(); err == nil || !strings.Contains(err.Error(), "cannot be accessed") {
		t.Errorf("the stream ended with %v, expected that memory cannot be accessed", err)
	}
	if r.status == verbs.Success {
		if !r.writes && owner.firstEvent() == verbs.EventLLPLost {
			return // a segment had left in part
		}
		owner.wantEvents(r.event)
		return
	}
	cq := owner.sendCQ
	if !r.local {
		cq = owner.recvCQ
	}
	wantStatus(t, take(t, cq, 1)[0], r.status)
}

// firstEvent waits for the first event.
func (s *side) firstEvent() verbs.EventID {
	limit := time.After(patience)
	for {
		s.mu.Lock()
		if len(s.events) > 0 {
			defer s.mu.Unlock()
			return s.events[0].ID
		}
		s.mu.Unlock()
		select {
		case <-s.came:
		case <-limit:
			s.t.Fatal("no event has come")
		}
	}
}

func wantStatus(t testing.TB, wc verbs.WC, want verbs.Status) {
	t.Helper()
	if wc.Status != want {
		t.Errorf("%v %d completed with %v, expected %v", wc.Op, wc.ID, wc.Status, want)
	}
}

// The setting of the consumer's goroutine, in which Weft sends and receives, is as it
// was.
func TestFaultsOfTheConsumerStayTheConsumers(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, reads)
		for _, was := range []bool{true, false} {
			before := debug.SetPanicOnFault(was)
			a.post(a.write(1, b, 0, 64), a.read(2, b, 0, 64))
			wantDone(t, a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success})
			if is := debug.SetPanicOnFault(before); is != was {
				t.Errorf("faults panic: %v, expected %v", is, was)
			}
		}
	})
}

// An RNIC that probes refuses memory when it is registered.
//
// Claims: R-8.1.2-4 DDP-8.3.2-3 S-7.3-1
// Claims: D-10.3-12
func TestAnRNICThatProbesRefusesMemoryThatItsConsumerMayNotUse(t *testing.T) {
	s := newSideOf(t, verbs.Config{ProbePages: true}, able)
	other := newSide(t, reads)
	wires[0].connect(t, s.qp, other.qp, cm.Params{})
	readOnly := pagestest.ReadOnly(t, 1)
	_, err := s.pd.Register(readOnly, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite)
	wantError(t, err, verbs.ErrAccess)
	if err == nil || !strings.Contains(err.Error(), "octet 0 of") || !strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("%v, expected it to name the octet", err)
	}
	must(s.pd.Register(readOnly, verbs.LocalRead|verbs.RemoteRead))(t)

	f := must(s.pd.AllocMR(1, true))(t).FastRegister(readOnly, verbs.LocalWrite|verbs.RemoteWrite)
	s.post(verbs.SendWR{ID: 1, Op: verbs.OpFastRegister, FastRegister: &f})
	wantDone(t, s.sendCQ, done{1, verbs.InvalidFRAccess})
}
