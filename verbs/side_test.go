package verbs_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/records"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// patience is how long tests wait for what has to come.
const patience = 15 * time.Second

// allRights are those that a region can have.
const allRights = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic

// A side is an RNIC with one queue pair, one CQ for each of its queues, one
// region with all rights, and a record of its events.
type side struct {
	t              testing.TB
	rnic           *verbs.RNIC
	pd             *verbs.PD
	sendCQ, recvCQ *verbs.CQ
	qp             *verbs.QP
	mr             *verbs.MR
	buf            []byte

	mu     sync.Mutex
	events []verbs.Event
	came   chan struct{} // capacity 1: an event was added
}

// newSide opens an RNIC with an Idle queue pair; the CQs of cfg, if nil, are the
// side's. It is closed when the test ends.
func newSide(t testing.TB, cfg verbs.QPConfig) *side {
	t.Helper()
	return newSideOf(t, verbs.Config{}, cfg)
}

func newSideOf(t testing.TB, rnic verbs.Config, cfg verbs.QPConfig) *side {
	t.Helper()
	s := &side{t: t, buf: make([]byte, 1<<20), came: make(chan struct{}, 1)}
	s.rnic = must(verbs.Open(rnic))(t)
	t.Cleanup(func() { _ = s.rnic.Close() }) // the test may have closed it
	s.listen()
	s.pd = must(s.rnic.AllocPD())(t)
	s.sendCQ = must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 4096}))(t)
	s.recvCQ = must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 4096}))(t)
	s.mr = must(s.pd.Register(s.buf, allRights))(t)
	s.qp = s.newQP(cfg)
	return s
}

// listen records the events of the side's RNIC.
func (s *side) listen() {
	s.t.Helper()
	check(s.t, s.rnic.SetAsyncHandler(func(e verbs.Event) {
		s.mu.Lock()
		s.events = append(s.events, e)
		s.mu.Unlock()
		select {
		case s.came <- struct{}{}:
		default:
		}
	}))
}

// newQP makes a queue pair, with the side's CQs unless cfg has some.
func (s *side) newQP(cfg verbs.QPConfig) *verbs.QP {
	s.t.Helper()
	if cfg.SendCQ == nil {
		cfg.SendCQ = s.sendCQ
	}
	if cfg.RecvCQ == nil {
		cfg.RecvCQ = s.recvCQ
	}
	cfg.Extensions = true
	return must(s.pd.CreateQP(cfg))(s.t)
}

// must fails the test on an error: must(f())(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError fails the test unless err is want.
func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("the error is %v, expected %v", err, want)
	}
}

// A wire makes the two ends of a connection, for MPA; without pair it is a stream of
// records, which is another LLP.
type wire struct {
	name string
	pair func(testing.TB) (a, b net.Conn)
	spin time.Duration
}

// wires are a stream on which the poster sends, one on which the writer does, one on which
// the goroutine that polls receives, and one over another LLP than MPA.
var wires = []wire{
	{"TCP", func(t testing.TB) (a, b net.Conn) { return nettest.TCPPair(t, "tcp4") }, 0},
	{"memory", func(testing.TB) (a, b net.Conn) { return iwarptest.Pipe() }, 0},
	{"TCP polled", func(t testing.TB) (a, b net.Conn) { return nettest.TCPPair(t, "tcp4") }, time.Millisecond},
	{name: "records"},
}

// overWires runs f over each of the wires, and looks for goroutines left behind.
func overWires(t *testing.T, f func(t *testing.T, w wire)) { over(t, wires, f) }

// overMPA runs f over those of MPA.
func overMPA(t *testing.T, f func(t *testing.T, w wire)) { over(t, wires[:3], f) }

func over(t *testing.T, wires []wire, f func(t *testing.T, w wire)) {
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			nettest.CheckLeaks(t)
			f(t, w)
		})
	}
}

// connect connects the two queue pairs over w; a is the initiator.
func (w wire) connect(t testing.TB, a, b *verbs.QP, p cm.Params) {
	t.Helper()
	if w.pair == nil {
		joinRecords(t, a, b)
		return
	}
	x, y := w.pair(t)
	if w.spin > 0 {
		a.SetSpin(w.spin)
		b.SetSpin(w.spin)
	}
	join(t, a, b, x, y, p)
}

// join connects queue pairs over a connection that exists.
func join(t testing.TB, a, b *verbs.QP, x, y net.Conn, p cm.Params) {
	t.Helper()
	ctx := context.Background()
	accepted := make(chan error, 1)
	go func() {
		req, err := cm.Receive(ctx, y, mpa.Config{NoCRC: p.MPA.NoCRC})
		if err == nil {
			_, err = req.Accept(ctx, b, p)
		}
		accepted <- err
	}()
	_, err := cm.Connect(ctx, a, x, p)
	check(t, errors.Join(err, nettest.Await(t, accepted)))
}

// joinRecords connects queue pairs over a stream of records.
func joinRecords(t testing.TB, a, b *verbs.QP) {
	t.Helper()
	x, y := records.Pipe()
	ca, cb := must(a.Query())(t), must(b.Query())(t)
	check(t, b.Establish(y, verbs.Terms{IRD: cb.IRD, ORD: min(cb.ORD, ca.IRD)}))
	check(t, a.Establish(x, verbs.Terms{IRD: ca.IRD, ORD: min(ca.ORD, cb.IRD), Initiator: true}))
}

// linked makes two sides and connects them.
func linked(t testing.TB, w wire, ca, cb verbs.QPConfig) (a, b *side) {
	t.Helper()
	a, b = newSide(t, ca), newSide(t, cb)
	w.connect(t, a.qp, b.qp, cm.Params{})
	return a, b
}

// reads are 4 in each direction.
var reads = verbs.QPConfig{IRD: 4, ORD: 4}

// write, read and send are signaled work requests on the regions of two sides.
func (s *side) write(id uint64, to *side, off, n int) verbs.SendWR {
	return verbs.SendWR{ID: id, Op: verbs.OpWrite, Flags: verbs.Signaled, SGL: []verbs.SGE{s.mr.SGE(off, n)}, Remote: to.mr.Remote(off)}
}

func (s *side) read(id uint64, from *side, off, n int) verbs.SendWR {
	return verbs.SendWR{ID: id, Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{s.mr.SGE(off, n)}, Remote: from.mr.Remote(off)}
}

func (s *side) send(id uint64, off, n int) verbs.SendWR {
	return verbs.SendWR{ID: id, Op: verbs.OpSend, Flags: verbs.Signaled, SGL: []verbs.SGE{s.mr.SGE(off, n)}}
}

// post posts to the side's queue pair, all of it.
func (s *side) post(wrs ...verbs.SendWR) {
	s.t.Helper()
	_, err := s.qp.PostSends(wrs)
	check(s.t, err)
}

// receives posts n receives of length octets each, with IDs from first on.
func (s *side) receives(first uint64, n, length int) {
	s.t.Helper()
	for i := range n {
		check(s.t, s.qp.PostRecv(verbs.RecvWR{ID: first + uint64(i), SGL: []verbs.SGE{s.mr.SGE(i*length, length)}}))
	}
}

// take waits for n completions.
func take(t testing.TB, cq *verbs.CQ, n int) []verbs.WC {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	wcs := make([]verbs.WC, n)
	for got := 0; got < n; got += cq.Poll(wcs[got:]) {
		if err := cq.Wait(ctx); err != nil {
			t.Fatalf("%d of %d completions came: %v", got, n, err)
		}
	}
	return wcs
}

// A done is what matters of a completion.
type done struct {
	id     uint64
	status verbs.Status
}

// wantDone takes as many completions as are expected and compares them.
func wantDone(t testing.TB, cq *verbs.CQ, want ...done) []verbs.WC {
	t.Helper()
	wcs := take(t, cq, len(want))
	for i, wc := range wcs {
		if got := (done{wc.ID, wc.Status}); got != want[i] {
			t.Errorf("completion %d is of %v %d: %v, expected %d: %v", i, wc.Op, wc.ID, wc.Status, want[i].id, want[i].status)
		}
	}
	return wcs
}

// wantNone fails the test if there is a completion.
func wantNone(t testing.TB, cq *verbs.CQ) {
	t.Helper()
	var wc [1]verbs.WC
	if cq.Poll(wc[:]) > 0 {
		t.Errorf("a completion of %v %d: %v, expected none", wc[0].Op, wc[0].ID, wc[0].Status)
	}
}

// reach waits for a state.
func reach(t testing.TB, qp *verbs.QP, state verbs.State) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if at, err := qp.WaitState(ctx, state); err != nil {
		t.Fatalf("the queue pair is %v, expected %v: %v", at, state, qp.Err())
	}
}

// wantEvents waits for as many events as are expected, and compares them.
func (s *side) wantEvents(want ...verbs.EventID) []verbs.Event {
	s.t.Helper()
	limit := time.After(patience)
	for {
		s.mu.Lock()
		got := append([]verbs.Event(nil), s.events...)
		s.mu.Unlock()
		if len(got) >= len(want) {
			for i, e := range got {
				if i >= len(want) || e.ID != want[i] {
					s.t.Errorf("events %v, expected %v", eventIDs(got), want)
					break
				}
			}
			return got
		}
		select {
		case <-s.came:
		case <-limit:
			s.t.Fatalf("events %v, expected %v", eventIDs(got), want)
		}
	}
}

func eventIDs(events []verbs.Event) (ids []verbs.EventID) {
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

// region registers octets [off, off+n) of the side's memory with other rights.
func (s *side) region(off, n int, access memory.Access) *verbs.MR {
	s.t.Helper()
	return must(s.pd.Register(s.buf[off:off+n], access))(s.t)
}

// quiesce waits, in a bubble, until every goroutine is blocked.
func quiesce() { synctest.Wait() }

// newMPA is a stream in Full Operation over nc.
func newMPA(nc net.Conn) *mpa.Conn {
	return mpa.NewConn(nc, mpa.Params{Revision: mpa.Revision2, CRC: true})
}
