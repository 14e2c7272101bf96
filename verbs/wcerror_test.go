package verbs_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// ended waits until the stream of the side is over, and says why.
func (s *side) ended() error {
	s.t.Helper()
	reach(s.t, s.qp, verbs.Error)
	return s.qp.Err()
}

// wantWords fails the test unless err says each of the words, and nothing twice that
// stands before a colon.
func wantWords(t testing.TB, who string, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error, expected one that says %q", who, words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: the error is\n%v, expected\n%s in it", who, err, w)
		}
	}
	seen := map[string]bool{}
	for _, part := range strings.Split(err.Error(), ": ") {
		if seen[part] {
			t.Errorf("%s: %q says %q twice", who, err, part)
		}
		seen[part] = true
	}
}

// What keeps a work request from being carried out is said where it completes, with
// the field to set, and the peer learns no more than it has to.
func TestACompletionInErrorSaysWhatToChange(t *testing.T) {
	on := func(rights memory.Access) func(a, b *side) verbs.SendWR {
		return func(a, b *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{a.region(0, 100, rights).SGE(0, 8)}, Remote: b.mr.Remote(0)}
		}
	}
	for _, tt := range []struct {
		name   string
		ca, cb verbs.QPConfig
		wr     func(a, b *side) verbs.SendWR
		status verbs.Status
		says   string
	}{
		{"no ORD", verbs.QPConfig{}, reads, on(allRights), verbs.ZeroReadResources, "ORD is 0: set QPConfig.ORD"},
		{"no IRD at the peer", reads, verbs.QPConfig{}, on(allRights), verbs.ZeroReadResources, "QPConfig.ORD is 4: the peer's IRD"},
		{"a sink without Remote Write", reads, reads, on(verbs.LocalWrite), verbs.Flushed,
			"the region has local write, it needs remote write: register it so, or set QPConfig.ReadSinkLocalWrite"},
		{"a sink for which that was set", verbs.QPConfig{ORD: 1, ReadSinkLocalWrite: true}, reads, on(verbs.LocalRead), verbs.Flushed,
			"the region has local read, it needs local write"},
		{"answers not enabled", verbs.QPConfig{ORD: 1, NoRemoteWrite: true}, reads, on(allRights), verbs.Flushed, "QPConfig.NoRemoteWrite is set"},
		{"a sink with STag zero", reads, reads, func(a, b *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{{Length: 8}}, Remote: b.mr.Remote(0)}
		}, verbs.InvalidSTag, "SGE.STag is 0"},
		{"STag zero of the peer's", reads, reads, func(a, b *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{a.mr.SGE(0, 8)}}
		}, verbs.InvalidSTag, "SendWR.Remote.STag is 0"},
		{"STag zero", reads, reads, func(a, b *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{{Length: 8}}}
		}, verbs.InvalidSTag, "QPConfig.Privileged"},
		{"a region without Local Read", reads, reads, func(a, b *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{a.region(0, 100, verbs.LocalWrite).SGE(92, 8)}}
		}, verbs.AccessViolation, "8 octets at offset 0x5c of STag"},
		{"the result of an atomic without Local Write", reads, reads, func(a, b *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpFetchAdd, SGL: []verbs.SGE{a.region(0, 100, verbs.LocalRead).SGE(0, 8)}, Remote: b.mr.Remote(0)}
		}, verbs.AccessViolation, "the region has local read, it needs local write"},
		{"no windows", reads, reads, func(a, b *side) verbs.SendWR {
			bind := must(a.pd.AllocMW())(a.t).Binding(a.mr, 0, 8, verbs.RemoteRead)
			return verbs.SendWR{Op: verbs.OpBind, Bind: &bind}
		}, verbs.AccessViolation, "set QPConfig.BindWindows"},
		{"no privileges", reads, reads, func(a, b *side) verbs.SendWR {
			fast := must(a.pd.AllocMR(1, false))(a.t).FastRegister(a.buf, verbs.LocalRead)
			return verbs.SendWR{Op: verbs.OpFastRegister, FastRegister: &fast}
		}, verbs.NotPrivileged, "set QPConfig.Privileged"},
		{"an STag that is not there", reads, reads, func(a, b *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpInvalidate, Invalidate: a.mr.STag() ^ 1}
		}, verbs.InvalidSTag, "no memory has this STag"},
		{"what the peer does not let read", reads, reads, func(a, b *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{a.mr.SGE(0, 8)}, Remote: b.region(0, 100, verbs.LocalRead).Remote(0)}
		}, verbs.RemoteTermination, "no access: the region lacks Remote Read"},
		{"an atomic that is not aligned", reads, reads, func(a, b *side) verbs.SendWR {
			return a.atomic(0, verbs.OpFetchAdd, b, 4, 0, verbs.Atomic{})
		}, verbs.RemoteTermination, "has to lie at a multiple of 8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			overWires(t, func(t *testing.T, w wire) {
				a, b := linked(t, w, tt.ca, tt.cb)
				a.receives(7, 1, 8)
				a.post(tt.wr(a, b))
				wc, behind := take(t, a.sendCQ, 1)[0], take(t, a.recvCQ, 1)[0]
				if wc.Status != tt.status || behind.Status != verbs.Flushed {
					t.Errorf("it completes with %v and %v, expected %v and %v", wc.Status, behind.Status, tt.status, verbs.Flushed)
				}
				a.ended()
				for _, wc := range []verbs.WC{wc, behind} {
					var e *rdmap.TerminateError
					if err := wc.Err(); !errors.Is(err, wc.Status) || !errors.As(err, &e) || e != a.qp.Err() {
						t.Errorf("%v is not %v, or not because of %v", err, wc.Status, a.qp.Err())
					}
				}
				wantWords(t, "the request", wc.Err(), tt.says, wc.Op.String()+": "+wc.Status.String()+": ")
				wantWords(t, "the receive", behind.Err(), tt.says, "Receive: flushed: the stream ended because ")
			})
		})
	}
}

// The side that finds an error of the peer's reports it in full; the peer learns what the
// Terminate message says.
func TestBothEndsAreToldWhatWasWrong(t *testing.T) {
	write := func(rights memory.Access) func(a, b *side) verbs.SendWR {
		return func(a, b *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{a.mr.SGE(0, 8)}, Remote: b.region(0, 100, rights).Remote(0)}
		}
	}
	const noAccess = "the peer terminated the stream: DDP tagged buffer error: no access: the region lacks Remote Write, " +
		"its queue pair does not enable writes, or it is of another domain or stream (1/1/02), about RDMA Write at offset 0x0 of STag 0x"
	for _, tt := range []struct {
		name        string
		cb          verbs.QPConfig
		wr          func(a, b *side) verbs.SendWR
		here, there string // what both say
	}{
		{"a Write without the right", reads, write(verbs.LocalWrite | verbs.LocalRead), noAccess, "the memory lacks the right: the region has local read+local write, it needs remote write (1/1/02)"},
		{"a Write that is not enabled", verbs.QPConfig{NoRemoteWrite: true}, write(allRights), noAccess, "QPConfig.NoRemoteWrite is set"},
		{"a Write to another domain", reads, func(a, b *side) verbs.SendWR {
			mr := must(must(b.rnic.AllocPD())(b.t).Register(b.buf[:100], allRights))(b.t)
			return verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{a.mr.SGE(0, 8)}, Remote: mr.Remote(0)}
		}, noAccess, "the memory is of another protection domain or stream (1/1/02)"},
		{"a Read without the right", reads, func(a, b *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{a.mr.SGE(0, 8)}, Remote: b.region(0, 100, verbs.LocalRead).Remote(0)}
		}, "no access: the region lacks Remote Read", "the region has local read, it needs remote read"},
		{"a Read that is not enabled", verbs.QPConfig{IRD: 4, NoRemoteRead: true}, func(a, b *side) verbs.SendWR { return a.read(0, b, 0, 8) },
			"its queue pair does not enable RDMA Reads", "QPConfig.NoRemoteRead is set"},
		{"an atomic without the right", reads, func(a, b *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpFetchAdd, SGL: []verbs.SGE{a.mr.SGE(0, 8)}, Remote: b.region(0, 100, verbs.LocalRead).Remote(0)}
		}, "or Remote Atomic of an atomic", "the region has local read, it needs remote atomic"},
		{"an atomic that is not enabled", verbs.QPConfig{IRD: 4, NoRemoteWrite: true}, func(a, b *side) verbs.SendWR {
			return a.atomic(0, verbs.OpCmpSwap, b, 0, 0, verbs.Atomic{})
		}, "or its queue pair does not enable them", "QPConfig.NoRemoteRead or NoRemoteWrite is set"},
		{"an atomic that is not aligned", reads, func(a, b *side) verbs.SendWR {
			return a.atomic(0, verbs.OpFetchAdd, b, 4, 0, verbs.Atomic{})
		}, "has to lie at a multiple of 8", "FetchAdd at offset 0x4"},
		{"a message without a receive", reads, func(a, b *side) verbs.SendWR { return a.send(0, 0, 8) }, "no receive was posted", "QPConfig.PauseOnEmptyRQ"},
		{"an invalidation without a right", reads, func(a, b *side) verbs.SendWR {
			b.receives(1, 1, 8)
			return verbs.SendWR{Op: verbs.OpSendInvalidate, Invalidate: b.region(0, 100, verbs.LocalRead).STag()}
		}, "no access", "it needs a remote right"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			overWires(t, func(t *testing.T, w wire) {
				a, b := linked(t, w, reads, tt.cb)
				a.post(tt.wr(a, b))
				wantWords(t, "here", a.ended(), tt.here, "the peer terminated the stream: ")
				wantWords(t, "there", b.ended(), tt.there, "this side terminated the stream: ")
			})
		})
	}
}

// The reason belongs to the stream, whatever becomes of the queue pair.
func TestACompletionKeepsItsReason(t *testing.T) {
	a, b := linked(t, wires[1], reads, reads)
	flushed := func() verbs.WC {
		t.Helper()
		a.receives(1, 1, 8)
		check(t, a.qp.Close(t.Context()))
		return take(t, a.recvCQ, 1)[0]
	}
	wantGraceful := func(wc verbs.WC) {
		t.Helper()
		wantError(t, wc.Err(), verbs.Flushed)
		wantError(t, wc.Err(), io.EOF)
		wantWords(t, "the receive", wc.Err(), "Receive: flushed: the stream ended because it was closed gracefully")
	}
	first := flushed()
	wantGraceful(first)

	reach(t, b.qp, verbs.Idle)
	wires[1].connect(t, a.qp, b.qp, cm.Params{})
	a.receives(1, 1, 8)
	a.qp.Abort()
	second := take(t, a.recvCQ, 1)[0]
	wantWords(t, "the receive", second.Err(), "because this side aborted the stream")
	wantGraceful(first)

	b.ended()
	check(t, errors.Join(a.qp.Reset(), b.qp.Reset()))
	wires[1].connect(t, a.qp, b.qp, cm.Params{})
	wantGraceful(flushed())
	wantWords(t, "the receive", second.Err(), "because this side aborted the stream")

	a.receives(2, 1, 8) // no stream at all
	a.qp.Abort()
	wantWords(t, "the receive", take(t, a.recvCQ, 1)[0].Err(), "because this side aborted the stream")
	wantGraceful(first)
}

// A view reports the same errors of its completions.
func TestAUsersCompletionSaysWhy(t *testing.T) {
	a, _ := linked(t, wires[1], verbs.QPConfig{}, reads)
	user := must(a.sendCQ.User())(t)
	a.post(verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{a.mr.SGE(0, 8)}, Remote: verbs.Remote{STag: 1}})
	check(t, user.Wait(t.Context()))
	wc := must(user.PollOne())(t)
	wantError(t, wc.Err(), verbs.ZeroReadResources)
	wantWords(t, "the view", wc.Err(), "QPConfig.ORD")
}

func TestASuccessIsNoErrorAndCostsNothing(t *testing.T) {
	wc := verbs.WC{Op: verbs.OpSend}
	if n := testing.AllocsPerRun(100, func() {
		if wc.Err() != nil {
			t.Error(wc.Err())
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	wc.Status = verbs.Flushed // without a queue pair
	if err := wc.Err(); !errors.Is(err, verbs.Flushed) || err.Error() != "Send: flushed" {
		t.Error(err)
	}
}
