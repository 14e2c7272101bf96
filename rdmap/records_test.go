package rdmap

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/records"
)

// An end is a Stream over an LLP that is not MPA, with a recorder above it. It runs the
// goroutines that the ULP has to provide.
type end struct {
	*rig
	llp  *records.LLP
	over chan error // what Reader returned
}

// overRecords runs f in a bubble with the two ends of a stream, of which a is the
// initiator.
func overRecords(t *testing.T, f func(t *testing.T, a, b *end)) {
	synctest.Test(t, func(t *testing.T) {
		x, y := records.Pipe()
		a, b := newEnd(t, x, true), newEnd(t, y, false)
		f(t, a, b)
		for _, e := range []*end{a, b} {
			_ = e.llp.Reset()
			e.Stop()
		}
	})
}

func newEnd(t *testing.T, llp *records.LLP, initiator bool) *end {
	h := &hold{}
	e := &end{llp: llp, over: make(chan error, 1), rig: &rig{t: t, hold: h, ulp: &recorder{
		hold: h, payload: make(map[uint64][]byte), memory: make(map[uint32]*region), logging: new(sync.Mutex),
	}}}
	e.Stream = NewStream(llp, e.ulp, Config{
		IRD: 4, ORD: 4, Initiator: initiator, Hold: h, PeerClosed: func() {},
		Ended: func(err error) {
			if e.ended = append(e.ended, err); err != nil {
				_ = llp.Reset()
			}
		},
	})
	e.ulp.stream = e.Stream
	go e.Writer()
	return e
}

// read has what the peer sends received.
func (e *end) read() {
	go func() { e.over <- e.Reader() }()
}

// wants compares what the recorder of each end has, when all goroutines are blocked. The
// order between the two halves of an end is not defined.
func wants(t *testing.T, a *end, toldA []string, b *end, toldB []string) {
	t.Helper()
	synctest.Wait()
	want(t, "the initiator was told", slices.Sorted(slices.Values(a.ulp.told())), toldA...)
	want(t, "the responder was told", slices.Sorted(slices.Values(b.ulp.told())), toldB...)
}

func TestEveryOperationRunsOverAnotherLLP(t *testing.T) {
	overRecords(t, func(t *testing.T, a, b *end) {
		const long = 200_000 // more segments than the pipe holds
		a.read()
		b.read()
		b.receive(10, long, 8, 5)
		into := b.ulp.receives[1]
		target, source, sink := b.region(0x33, 0x3000, long, '.'), b.region(0x44, 0x4000, long, 'r'), a.region(0x55, 0x5000, long, '.')
		counter := b.region(0x66, 0x6000, 8, 40)
		b.region(0x77, 0, 8, 0)

		a.send(
			Operation{Opcode: OpSend, Length: 10},
			Operation{Opcode: OpSendSE, Length: long},
			Operation{Opcode: OpWrite, Length: long, RemoteSTag: 0x33, RemoteTO: 0x3000},
			Operation{Opcode: OpReadRequest, Length: long, RemoteSTag: 0x44, RemoteTO: 0x4000, SinkSTag: 0x55, SinkTO: 0x5000},
			Operation{Opcode: OpAtomicRequest, RemoteSTag: 0x66, RemoteTO: 0x6000, Atomic: AtomicRequest{Data: 2}},
			Operation{Opcode: OpImmediate, Immediate: [8]byte{1, 2, 3}},
			Operation{Opcode: OpSendInvalidate, Length: 5, InvalidateSTag: 0x77},
		)
		synctest.Wait()
		toldA, toldB := a.ulp.told(), b.ulp.told()
		if n := len(toldA); n < 3 || toldA[n-1] != "responded 5 0x28" || toldA[n-2] != "responded 4 0x0" || toldA[n-3] != "sent 7" {
			t.Errorf("the initiator was told %q", toldA)
		}
		answers := slices.DeleteFunc(slices.Clone(toldB), func(line string) bool { return line != "FetchAdd" })
		want(t, "the responder did", answers, "FetchAdd")
		toldB = slices.DeleteFunc(toldB, func(line string) bool { return line == "FetchAdd" })
		want(t, "the responder was told", toldB, "delivered Send 10", "delivered Send with SE 200000",
			"delivered Immediate Data 8 01 02 03 00 00 00 00 00", "invalidated 0x77", "delivered Send with Invalidate 5 without 0x77")
		for name, c := range map[string]struct {
			got  []byte
			want byte
		}{"Send": {into, '2'}, "Write": {target.data, '3'}, "Read": {sink.data, 'r'}} {
			if !bytes.Equal(c.got, bytes.Repeat([]byte{c.want}, long)) {
				t.Errorf("%s: other octets arrived", name)
			}
		}
		if source.data[0] != 'r' || counter.data[0] != 42 {
			t.Errorf("the source has %q, the counter %d", source.data[0], counter.data[0])
		}

		// Both directions at once, and answers among them.
		b.ulp.payload = map[uint64][]byte{}
		a.receive(long)
		b.receive(long)
		a.post(Operation{Opcode: OpSend, Length: long})
		b.send(Operation{Opcode: OpSend, Length: long})
		a.Kick()
		wants(t, a, []string{"delivered Send 200000", "sent 8"}, b, []string{"delivered Send 200000", "sent 1"})
	})
}

func TestAStreamOverAnotherLLPClosesGracefully(t *testing.T) {
	overRecords(t, func(t *testing.T, a, b *end) {
		a.read()
		b.read()
		b.receive(100)
		a.send(Operation{Opcode: OpSend, Length: 100})
		a.Close()
		a.Kick()
		if err := nettest.Await(t, b.over); err != io.EOF {
			t.Errorf("the responder's reception ended with %v", err)
		}
		wants(t, a, []string{"sent 1"}, b, []string{"delivered Send 100"})
		b.Close()
		b.Kick()
		if err := nettest.Await(t, a.over); err != io.EOF {
			t.Errorf("the initiator's reception ended with %v", err)
		}
		if len(a.ended) != 1 || a.ended[0] != nil || len(b.ended) != 1 || b.ended[0] != nil {
			t.Errorf("the outgoing halves ended with %v and %v", a.ended, b.ended)
		}
	})
}

// A peer's error is reported by a Terminate message, over any LLP.
func TestATerminateIsToldOverAnotherLLP(t *testing.T) {
	for _, tt := range []struct {
		name string
		op   Operation
		code string
	}{
		{"no receive is posted", Operation{Opcode: OpSend, Length: 8}, "1/2/02"},
		{"an unknown STag", Operation{Opcode: OpWrite, Length: 8, RemoteSTag: 9}, "1/1/00"},
		{"an unknown source", Operation{Opcode: OpReadRequest, Length: 8, RemoteSTag: 9}, "0/1/00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			overRecords(t, func(t *testing.T, a, b *end) {
				a.read()
				b.read()
				a.send(tt.op)
				err := nettest.Await(t, b.over)
				if got := codeOf(t, err); got != tt.code {
					t.Errorf("code %s, want %s", got, tt.code)
				}
				b.Terminate(err)
				b.Kick()
				var told *TerminateError
				if err := nettest.Await(t, a.over); !errors.As(err, &told) || !told.Remote || codeOf(t, told) != tt.code {
					t.Errorf("the initiator's reception ended with %v, want %s", err, tt.code)
				}
			})
		})
	}
}

// Memory revoked before it was written ends the stream: by a Terminate behind the
// last whole segment, or by a reset in the middle of one.
func TestRevokedMemoryEndsAStreamOverAnotherLLP(t *testing.T) {
	overRecords(t, func(t *testing.T, a, b *end) {
		b.receive(10, 1_000_000)
		a.send(Operation{Opcode: OpSend, Length: 10}, Operation{Opcode: OpSend, Length: 1_000_000})
		synctest.Wait() // until the pipe is full
		a.hold.revoke(2)
		a.read()
		b.read()
		<-b.over
		synctest.Wait()
		if len(a.ended) != 1 {
			t.Fatalf("the outgoing half ended with %v, want once", a.ended)
		}
		log := a.ulp.told()
		terminated := len(log) == 2 && log[1] == "failed 2" && a.ended[0] == nil
		var torn *tornError
		if reset := len(log) == 1 && errors.As(a.ended[0], &torn); log[0] != "sent 1" || !terminated && !reset {
			t.Errorf("the initiator was told %q, and its outgoing half ended with %v", log, a.ended)
		}
	})
}
