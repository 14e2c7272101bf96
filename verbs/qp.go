package verbs

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/mpa"
)

// A QPConfig describes a queue pair to be created (Verbs §9.2.5.1).
type QPConfig struct {
	SendCQ, RecvCQ *CQ // where the work requests complete; may be the same

	SendDepth, RecvDepth int // work requests outstanding at a time; 0 means 16
	SendSGEs, RecvSGEs   int // elements of one scatter/gather list; 0 means 4
	WriteSGEs            int // of an RDMA Write's; 0 means as SendSGEs

	// SRQ, if not nil, is where the receives come from in place of a receive
	// queue of the QP's own: RecvDepth and RecvSGEs are then ignored
	// (Verbs §6.3). RQLimit, if above 0, arms the QP RQ Limit: an event tells
	// once of more than so many messages in progress (Verbs §6.3.8).
	SRQ     *SRQ
	RQLimit int

	IRD int // RDMA Reads and atomics that the peer may have outstanding; the start-up agrees on it
	ORD int // those that we may have outstanding: more wait, with ORD 0 they fail

	NoRemoteRead  bool // the peer may not read: Inbound RDMA Read is not enabled
	NoRemoteWrite bool // the peer may not write and not answer Reads: Inbound RDMA Write and Read Response are not enabled

	// BindWindows lets memory windows be bound by the send queue (Verbs §7.10).
	BindWindows bool

	// Privileged lets the QP use the STag of zero and Fast-Register (Verbs
	// §9.2.5.1). It is for consumers that are trusted with all memory.
	Privileged bool

	// Extensions lets RFC 7306's operations be posted. A peer that does not
	// know them ends the stream: agree on them first. The RDMA Consortium's
	// version does not have them: over such a stream they fail (InvalidWQE).
	Extensions bool

	// ReadSinkLocalWrite accepts LocalWrite in place of RemoteWrite on the
	// memory that an RDMA Read delivers into. That is safe: a response must
	// match the oldest Read in STag, offset and length.
	ReadSinkLocalWrite bool

	// PauseOnEmptyRQ stops receiving when a message finds no receive posted,
	// until one is posted, instead of ending the stream (Verbs §13.2). It
	// holds up everything else the peer sends, answers to Reads included.
	PauseOnEmptyRQ bool
}

func (c QPConfig) withDefaults() QPConfig {
	for _, d := range [...]struct {
		v   *int
		def int
	}{{&c.SendDepth, 16}, {&c.RecvDepth, 16}, {&c.SendSGEs, 4}, {&c.RecvSGEs, 4}} {
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	if c.WriteSGEs == 0 {
		c.WriteSGEs = c.SendSGEs
	}
	if c.SRQ != nil {
		c.RecvDepth, c.RecvSGEs = 0, 0 // Verbs §6.3.4: whatever was asked for
	}
	return c
}

// A QP is a queue pair: the consumer's end of an RDMA stream (Verbs §6).
// Methods may be called by any goroutine.
type QP struct {
	rnic *RNIC
	pd   *PD
	cfg  QPConfig
	num  uint32

	sq sendQueue
	rq recvQueue

	// Ways to memory: out belongs to the owner of RDMAP's outgoing half, in to
	// the receiving goroutine, like shared: the way to the memory of receives of
	// an S-RQ in another protection domain, otherwise nil.
	out    hold
	in     memory.Holder
	shared *memory.Holder

	mu      sync.Mutex
	state   State
	changed chan struct{} // closed and replaced when state changes
	err     error         // why it left RTS
	terms   Terms
	// IRD and ORD as they were asked for, taken from the RNIC's pools.
	ird, ord int
	speaking bool          // a StreamMessage is being sent
	past     QPStats       // what Stats finds nowhere else, of streams that have ended, too
	dead     bool          // destroyed
	gone     chan struct{} // closed when nothing of it is left

	conn atomic.Pointer[connection] // of RTS, Closing and Terminate; set under mu
}

// Terms are what the start-up of a stream has agreed on.
type Terms struct {
	IRD, ORD  int     // in place of those of the QPConfig
	Initiator bool    // this side sends first
	RTR       mpa.RTR // the ready-to-receive message, see rdmap.Config
}

// CreateQP creates a queue pair in the Idle state. The results besides success
// are ErrRNIC, ErrPD, ErrCQ, ErrSRQ, ErrRQLimit, ErrORD, ErrIRD, ErrWRMax,
// ErrSGEMax, ErrModifier and ErrResources.
func (pd *PD) CreateQP(cfg QPConfig) (*QP, error) {
	const verb = "create QP"
	r := pd.rnic
	if err := pd.usable(verb); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	l := &r.limits
	switch {
	case cfg.SendCQ == nil || cfg.RecvCQ == nil || cfg.SendCQ.rnic != r || cfg.RecvCQ.rnic != r:
		return nil, fail(verb, ErrCQ, "SendCQ and RecvCQ have to be of this RNIC")
	case cfg.SRQ != nil && cfg.SRQ.pd.rnic != r:
		return nil, fail(verb, ErrSRQ, "SRQ has to be of this RNIC")
	case cfg.SRQ == nil && cfg.RQLimit != 0:
		return nil, fail(verb, ErrRQLimit, "%d, expected 0 without an S-RQ", cfg.RQLimit)
	case min(cfg.SendDepth, cfg.RecvDepth, cfg.SendSGEs, cfg.WriteSGEs, cfg.RecvSGEs, cfg.IRD, cfg.ORD) < 0:
		return nil, fail(verb, ErrModifier, "a number is negative")
	case cfg.SendDepth > l.WRs || cfg.RecvDepth > l.WRs:
		return nil, r.limited(verb, ErrWRMax, "WRs", "%d and %d were asked for, the limit is %d", cfg.SendDepth, cfg.RecvDepth, l.WRs)
	case max(cfg.SendSGEs, cfg.WriteSGEs, cfg.RecvSGEs) > l.SGEs:
		return nil, r.limited(verb, ErrSGEMax, "SGEs", "%d, %d and %d were asked for, the limit is %d", cfg.SendSGEs, cfg.WriteSGEs, cfg.RecvSGEs, l.SGEs)
	case cfg.ORD > l.ORD:
		return nil, r.limited(verb, ErrORD, "ORD", "%d was asked for, the limit is %d", cfg.ORD, l.ORD)
	case cfg.IRD > l.IRD:
		return nil, r.limited(verb, ErrIRD, "IRD", "%d was asked for, the limit is %d", cfg.IRD, l.IRD)
	}
	if err := r.takeReads(verb, cfg.IRD, cfg.ORD); err != nil {
		return nil, err
	}
	q, err := pd.createQP(verb, cfg)
	if err != nil {
		_ = r.takeReads(verb, -cfg.IRD, -cfg.ORD) // giving back never fails
	}
	return q, err
}

// createQP is CreateQP with a configuration that was checked.
func (pd *PD) createQP(verb string, cfg QPConfig) (*QP, error) {
	r := pd.rnic
	r.mu.Lock()
	num := r.newQPNum()
	r.mu.Unlock()
	q := &QP{rnic: r, pd: pd, num: num, cfg: cfg, ird: cfg.IRD, ord: cfg.ORD, changed: make(chan struct{}), gone: make(chan struct{})}
	q.sq.init(q, cfg.SendDepth, max(cfg.SendSGEs, cfg.WriteSGEs))
	q.rq.init(q)
	q.out.Init(r.table, pd.mem, memory.Stream(q.num))
	q.in.Init(r.table, pd.mem, memory.Stream(q.num))
	if cfg.SRQ != nil && cfg.SRQ.pd != pd { // Verbs §6.3.5: its PD decides
		q.shared = new(memory.Holder)
		q.shared.Init(r.table, cfg.SRQ.pd.mem, memory.Stream(q.num))
	}
	if cfg.Privileged { // Verbs §7.2.1, §6.3.5
		q.out.AllowZero()
		q.in.AllowZero()
		if q.shared != nil {
			q.shared.AllowZero()
		}
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if err := pd.check(verb); err != nil {
		return nil, err
	}
	if n := r.limits.QPs; len(r.qps) >= n {
		return nil, r.limited(verb, ErrResources, "QPs", "the limit is %d queue pairs", n)
	}
	if err := cfg.SendCQ.attach(q); err != nil {
		return nil, err
	}
	if err := cfg.RecvCQ.attach(q); err != nil {
		cfg.SendCQ.detach(q)
		return nil, err
	}
	if cfg.SRQ != nil {
		if err := cfg.SRQ.attach(verb, cfg.RQLimit); err != nil {
			cfg.SendCQ.detach(q)
			cfg.RecvCQ.detach(q)
			return nil, err
		}
	}
	r.qps[q.num] = q
	pd.qps++
	return q, nil
}

// Num is the QP ID: a number that no other queue pair of the RNIC has.
func (q *QP) Num() uint32 { return q.num }

// RNIC and PD are what the queue pair belongs to.
func (q *QP) RNIC() *RNIC { return q.rnic }

// PD returns the queue pair's protection domain.
func (q *QP) PD() *PD { return q.pd }

// Config returns what the queue pair was created with, defaults filled in.
func (q *QP) Config() QPConfig { return q.cfg }

// State returns the state that the queue pair is in.
func (q *QP) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state
}

// Err says why the queue pair left RTS: a *rdmap.TerminateError when either
// side sent a Terminate message, an error of the transport, or nil while it is
// in RTS and after a graceful close.
func (q *QP) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// Terms returns what the last stream was agreed on.
func (q *QP) Terms() Terms {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.terms
}

// WaitState returns when the queue pair is in one of the states, or with the
// context's error, and says in which state it is.
func (q *QP) WaitState(ctx context.Context, states ...State) (State, error) {
	for {
		q.mu.Lock()
		state, changed := q.state, q.changed
		q.mu.Unlock()
		for _, s := range states {
			if s == state {
				return state, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return state, ctx.Err()
		}
	}
}

// enter moves the queue pair by a trigger, if its state knows it; needs mu. The
// queues learn of it before anyone else does.
func (q *QP) enter(t trigger) bool {
	to, ok := q.state.next(t)
	if !ok {
		return false
	}
	q.setIntake(intakeOf(to))
	if to != q.state {
		q.rnic.log.Debug("state", "qp", q.num, "from", q.state, "to", to)
		q.state = to
		close(q.changed)
		q.changed = make(chan struct{})
	}
	return true
}

// intakeOf is what a state does with work requests (Verbs §6.2).
func intakeOf(s State) intake {
	switch s {
	case Closing:
		return refuse
	case Error:
		return flush
	}
	return accept
}

// setIntake makes the queues treat what is posted so, unless the RNIC is no more.
func (q *QP) setIntake(in intake) {
	if q.rnic.life.Load() != lifeOpen {
		in = gone
	}
	q.sq.post.Lock()
	q.sq.in = in
	q.sq.post.Unlock()
	q.rq.post.Lock()
	q.rq.in = in
	q.rq.post.Unlock()
}

// PostSend posts one work request to the send queue; see PostSends.
func (q *QP) PostSend(wr SendWR) error {
	q.sq.post.Lock()
	err := q.sq.push(&wr)
	q.posted(err == nil)
	return err
}

// PostSends posts work requests, in order, as one batch that rings the bell
// once. It stops at the first that cannot be posted and returns how many were,
// and why (Verbs §8.2.1). It never waits for the network. Of the requests
// nothing is retained but the memory that they name.
//
// The results besides success are ErrFull, ErrState, ErrOp, ErrSGLFormat,
// ErrSGLLength, ErrModifier and ErrQP. In the Idle state requests are held
// until the queue pair enters RTS; in Terminate and Error they complete as
// Flushed.
func (q *QP) PostSends(wrs []SendWR) (n int, err error) {
	q.sq.post.Lock()
	for n = range wrs {
		if err = q.sq.push(&wrs[n]); err != nil {
			q.posted(n > 0)
			return n, err
		}
	}
	q.posted(len(wrs) > 0)
	return len(wrs), nil
}

// posted rings the bell, if anything was posted, and ends the posting.
func (q *QP) posted(any bool) {
	c := q.conn.Load()
	if any && c == nil && q.sq.in == flush {
		q.sq.flushAll()
	}
	q.sq.post.Unlock()
	if any && c != nil {
		c.stream.Kick()
	}
}

// PostRecv posts one receive; see PostRecvs.
func (q *QP) PostRecv(wr RecvWR) error {
	q.rq.post.Lock()
	err := q.rq.push(&wr)
	q.postedRecv(err == nil)
	return err
}

// PostRecvs posts receives, in order. It stops at the first that cannot be
// posted and returns how many were, and why. The results besides success are
// ErrFull, ErrState, ErrSGLLength, ErrQP and, if the queue pair uses an S-RQ,
// ErrRQOfSRQ.
func (q *QP) PostRecvs(wrs []RecvWR) (n int, err error) {
	q.rq.post.Lock()
	for n = range wrs {
		if err = q.rq.push(&wrs[n]); err != nil {
			q.postedRecv(n > 0)
			return n, err
		}
	}
	q.postedRecv(len(wrs) > 0)
	return len(wrs), nil
}

func (q *QP) postedRecv(any bool) {
	if any && q.rq.in == flush && q.conn.Load() == nil {
		q.rq.flushAll()
	}
	q.rq.post.Unlock()
	if any && q.cfg.PauseOnEmptyRQ {
		q.rq.wake()
	}
}

// checkSend makes the checks of a send work request that have an immediate
// result. Memory is not among them: it is checked when it is used (Verbs §8.3).
// What an operation does not use is ignored (Verbs §9.3.1.1).
func (q *QP) checkSend(wr *SendWR) error {
	const verb = "post to SQ"
	n := 0
	if wr.Op.lists() {
		n = len(wr.SGL)
	}
	switch {
	case int(wr.Op) >= len(opNames) || opNames[wr.Op] == "" || wr.Op >= OpRecv:
		return fail(verb, ErrOp, "%d", wr.Op)
	case wr.Op.extension() && !q.cfg.Extensions:
		return fail(verb, ErrOp, "%v is of RFC 7306: create the QP with Extensions, if the peer knows them", wr.Op)
	case wr.Op == OpWrite && n > q.cfg.WriteSGEs:
		return fail(verb, ErrSGLLength, "%d elements, the queue was created for %d (QPConfig.WriteSGEs)", n, q.cfg.WriteSGEs)
	case wr.Op != OpWrite && n > q.cfg.SendSGEs:
		return fail(verb, ErrSGLLength, "%d elements, the queue was created for %d (QPConfig.SendSGEs)", n, q.cfg.SendSGEs)
	case wr.Op.asks() && n != 1:
		return fail(verb, ErrSGLFormat, "%v takes one element, not %d", wr.Op, n)
	case (wr.Op == OpFetchAdd || wr.Op == OpCmpSwap) && wr.SGL[0].Length != 8:
		return fail(verb, ErrSGLFormat, "%v returns 8 octets, its element has %d", wr.Op, wr.SGL[0].Length)
	case wr.Op == OpBind && (wr.Bind == nil || wr.Bind.Window.Index() == 0 || wr.Bind.Region.Index() == 0):
		return fail(verb, ErrModifier, "%v takes a Bind, of a window and a region whose STag indices are not 0", wr.Op)
	case wr.Op == OpFastRegister && (wr.FastRegister == nil || wr.FastRegister.STag.Index() == 0):
		return fail(verb, ErrModifier, "%v takes a FastRegister, of an STag whose index is not 0", wr.Op)
	case (wr.Op == OpInvalidate || wr.Op == OpSendInvalidate || wr.Op == OpSendSEInvalidate) && wr.Invalidate.Index() == 0:
		return fail(verb, ErrModifier, "%v of STag %v, whose index is 0", wr.Op, wr.Invalidate)
	}
	return nil
}

// Destroy destroys the queue pair, whatever its state. A stream that it has is
// reset, and what is outstanding on it is flushed; what was posted in Idle is
// dropped. Completions already in a CQ stay there. When Destroy returns nothing
// of the queue pair is left. The results besides success are ErrRNIC, ErrQPWindows
// while memory windows are bound to the queue pair, which nothing happens to then,
// and ErrQP for a second Destroy, which fails when the first has done its work.
func (q *QP) Destroy() error {
	const verb = "destroy QP"
	if err := q.rnic.alive(verb); err != nil {
		return err
	}
	return q.destroy(verb, false)
}

// destroy does so whatever becomes of the RNIC, and by force whatever windows are
// bound.
func (q *QP) destroy(verb string, force bool) error {
	table, stream := q.rnic.table, memory.Stream(q.num)
	q.mu.Lock()
	if q.dead {
		q.mu.Unlock()
		<-q.gone
		return q.rnic.gone(verb, ErrQP)
	}
	// From here on no window can be bound to it (Verbs §6.1.4).
	if err := table.RetireStream(stream); err != nil && !force {
		q.mu.Unlock()
		return fail(verb, ErrQPWindows, "%v", err)
	}
	q.dead = true
	c := q.conn.Load()
	q.mu.Unlock()
	if c != nil {
		q.Abort()
		<-c.over
	}
	q.mu.Lock()
	q.setIntake(gone)
	q.mu.Unlock()
	q.cfg.SendCQ.detach(q)
	q.cfg.RecvCQ.detach(q)
	if q.cfg.SRQ != nil {
		q.cfg.SRQ.detach()
	}
	r, past := q.rnic, q.Stats()
	table.ForgetStream(stream)
	_ = r.takeReads(verb, -q.ird, -q.ord) // giving back never fails
	r.mu.Lock()
	delete(r.qps, q.num)
	r.pastQPs.add(&past)
	q.pd.qps--
	r.mu.Unlock()
	close(q.gone)
	return nil
}

// maxMessage is the longest message, in octets (RFC 5041 §5.2).
const maxMessage = math.MaxUint32
