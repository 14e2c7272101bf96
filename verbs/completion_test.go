package verbs_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// Completions are had by polling a completion queue, and in no other way but that of a
// consumer who brings a queue of its own, CQConfig.Sink
// (Verbs §5.3, §8.2.4).
//
// Claims: V-5.3-1 V-8.2.4-1
func TestOnlyPollingGivesOutCompletions(t *testing.T) {
	wc := reflect.TypeFor[verbs.WC]()
	var mentions func(t reflect.Type, depth int) bool
	mentions = func(t reflect.Type, depth int) bool {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
			return mentions(t.Elem(), depth)
		case reflect.Func:
			for i := range t.NumIn() {
				if mentions(t.In(i), depth) {
					return true
				}
			}
			for i := range t.NumOut() {
				if mentions(t.Out(i), depth) {
					return true
				}
			}
		case reflect.Struct:
			if t == wc {
				return true
			}
			for i := range t.NumField() {
				if f := t.Field(i); depth > 0 && f.IsExported() && mentions(f.Type, depth-1) {
					return true
				}
			}
		}
		return false
	}
	ways := 0
	for _, handle := range []reflect.Type{
		reflect.TypeFor[*verbs.RNIC](), reflect.TypeFor[*verbs.PD](), reflect.TypeFor[*verbs.CQ](), reflect.TypeFor[*verbs.QP](),
		reflect.TypeFor[*verbs.SRQ](), reflect.TypeFor[*verbs.MR](), reflect.TypeFor[*verbs.MW](),
		reflect.TypeFor[*verbs.UserQP](), reflect.TypeFor[*verbs.UserCQ](), reflect.TypeFor[*verbs.UserSRQ](),
	} {
		for i := range handle.NumMethod() {
			m := handle.Method(i)
			if !mentions(m.Type, 3) {
				continue
			}
			ways++
			if m.Name == "CreateCQ" && handle == reflect.TypeFor[*verbs.RNIC]() {
				continue // CQConfig.Sink, which takes them in place of Poll
			}
			if m.Name != "Poll" && m.Name != "PollOne" && m.Name != "Completions" || handle != reflect.TypeFor[*verbs.CQ]() && handle != reflect.TypeFor[*verbs.UserCQ]() {
				t.Errorf("%v.%s deals in completions", handle, m.Name)
			}
		}
	}
	if ways != 7 {
		t.Errorf("%d ways to a completion, expected Poll, PollOne and Completions, which polls, of CQ and UserCQ, and CQConfig.Sink", ways)
	}
}

// A handler is called for what completes in the send queue, too: signaled
// requests, and none that is unsignaled (Verbs §8.2.5).
//
// Claims: V-8.2.5-7
func TestASignaledRequestIsNotifiedOf(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		a, b := newSide(t, reads), newSide(t, reads)
		rung := newBell()
		cq := must(a.rnic.CreateCQ(verbs.CQConfig{Entries: 10, Handler: a.handler(rung.ring)}))(t)
		qp := a.newQP(verbs.QPConfig{SendCQ: cq, ORD: 4})
		x, y := iwarptest.Pipe()
		join(t, qp, b.qp, x, y, cm.Params{})
		for i, op := range []verbs.Op{verbs.OpWrite, verbs.OpRead, verbs.OpFetchAdd} {
			wr := verbs.SendWR{Op: op, SGL: []verbs.SGE{a.mr.SGE(0, 8)}, Remote: b.mr.Remote(0)}
			check(t, cq.RequestNotify(verbs.NotifyNext))
			check(t, qp.PostSend(wr))
			if got := rung.count(); got != i {
				t.Errorf("%d calls after an unsignaled %v, expected %d", got, op, i)
			}
			wr.Flags = verbs.Signaled
			check(t, qp.PostSend(wr))
			if got := rung.count(); got != i+1 {
				t.Errorf("%d calls after a signaled %v, expected %d", got, op, i+1)
			}
		}
	})
}

// From its completion on the memory that a request names is the consumer's: what
// he writes there is not sent, and what he finds there stays (Verbs §8.2.4).
//
// Claims: V-8.2.4-3
// Claims: V-8.2.2-5
func TestMemoryIsTheConsumersFromTheCompletionOn(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, reads)
		const size = 1 << 19 // more than leaves at a time
		want := bytes.Repeat([]byte{0x11}, size)
		spoilt := bytes.Repeat([]byte{0xEE}, size)
		for i := range uint64(10) {
			copy(a.buf, want)
			b.receives(i, 1, size)
			a.post(a.send(i, 0, size))
			wantDone(t, a.sendCQ, done{i, verbs.Success})
			copy(a.buf, spoilt)
			wantDone(t, b.recvCQ, done{i, verbs.Success})
			if !bytes.Equal(b.buf[:size], want) {
				t.Fatalf("message %d brought what was written after its completion", i)
			}
			copy(b.buf, spoilt)

			// And so with what a Read delivers.
			copy(b.buf[size:], want)
			a.post(a.read(i, b, size, size))
			wantDone(t, a.sendCQ, done{i, verbs.Success})
			copy(a.buf[size:], spoilt)
			a.post(verbs.SendWR{ID: i, Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{a.mr.SGE(0, size)}, Remote: b.mr.Remote(size)})
			wantDone(t, a.sendCQ, done{i, verbs.Success}) // more of the same kind, elsewhere
			if !bytes.Equal(a.buf[size:2*size], spoilt) || !bytes.Equal(b.buf[:size], spoilt) {
				t.Fatalf("round %d: memory was written after its request had completed", i)
			}
		}
	})
}
