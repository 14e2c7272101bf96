// This file is the creation and the destruction of queue pairs (Verbs §6.1.1,
// §6.1.4).

package verbs

import "github.com/weft-rdma/weft/memory"

// A QPConfig describes a queue pair to be created (Verbs §9.2.5.1).
type QPConfig struct {
	SendCQ, RecvCQ *CQ // where the work requests complete; may be the same

	SendDepth, RecvDepth int // work requests outstanding at a time; 0 means 16
	SendSGEs, RecvSGEs   int // elements of one scatter/gather list; 0 means 4
	WriteSGEs            int // of an RDMA Write's; 0 means as SendSGEs

	// SRQ, if not nil, is where the receives come from in place of a receive
	// queue of the QP's own: RecvDepth and RecvSGEs are then ignored
	// (Verbs §6.3). RQLimit, if above 0, arms the QP RQ Limit: EventRQLimit is
	// raised once when more than so many messages are in progress (Verbs §6.3.8).
	SRQ     *SRQ
	RQLimit int

	IRD int // RDMA Reads and atomics that the peer may have outstanding; the start-up agrees on it
	ORD int // those that we may have outstanding: more wait, with ORD 0 they fail

	// What is not enabled at first; QPModify.Inbound changes it. Atomics need both.
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

	// Strict refuses at posting, with ErrModifier, what would complete in error or
	// have the stream ended by its answer: an STag of zero; Reads and atomics on a
	// stream with ORD 0; the sink of a Read without RemoteWrite (or what
	// ReadSinkLocalWrite asks for); OpBind without BindWindows, OpFastRegister
	// without Privileged; memory that lacks the right or the octets. Memory is
	// judged as it is when the request is posted; an STag that is not valid then is
	// let pass, as a request in front may make it so. Receives of an S-RQ are not
	// looked at.
	Strict bool

	// PauseOnEmptyRQ stops receiving when a message finds no receive posted,
	// until one is posted, instead of ending the stream (Verbs §13.2). It
	// holds up everything else the peer sends, answers to Reads included
	// unless SetAside is set. QPModify.MaxPause limits it.
	PauseOnEmptyRQ bool

	// SetAside, with PauseOnEmptyRQ, is how many octets of messages that find no receive
	// are kept, and one segment more. While they wait, answers to this side's Reads and
	// atomics are processed, and nothing else that the peer has sent behind them. When as
	// much is kept, receiving stops. 0 keeps nothing.
	SetAside int

	// Refill, if not nil, is asked for receives when a message finds none posted. It
	// is not for queue pairs with an S-RQ.
	Refill Refill

	// Announced, if not nil, announces to the peer that this side accepts the messages of
	// RFC 7306, and is called when the peer has announced the same.
	Announced Announced
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

// CreateQP creates a queue pair in the Idle state. The results besides success
// are ErrRNIC, ErrPD, ErrCQ, ErrSRQ, ErrRQLimit, ErrORD, ErrIRD, ErrWRMax,
// ErrSGEMax, ErrModifier and ErrResources.
func (pd *PD) CreateQP(cfg QPConfig) (*QP, error) {
	const verb = "create QP"
	r := pd.rnic
	if err := pd.check(verb); err != nil {
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
	case min(cfg.SendDepth, cfg.RecvDepth, cfg.SendSGEs, cfg.WriteSGEs, cfg.RecvSGEs, cfg.IRD, cfg.ORD, cfg.SetAside) < 0:
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
	if err := r.reserveReads(verb, cfg.IRD, cfg.ORD); err != nil {
		return nil, err
	}
	q, err := pd.createQP(verb, cfg)
	if err != nil {
		_ = r.reserveReads(verb, -cfg.IRD, -cfg.ORD) // giving back never fails
		return nil, err
	}
	q.expect(1)
	return q, nil
}

// createQP is CreateQP with a configuration that was checked.
func (pd *PD) createQP(verb string, cfg QPConfig) (*QP, error) {
	q, r := pd.newQP(cfg), pd.rnic
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := pd.check(verb); err != nil {
		return nil, err
	}
	if n := r.limits.QPs; len(r.qps) >= n {
		return nil, r.limited(verb, ErrResources, "QPs", "the limit is %d queue pairs", n)
	}
	if err := q.attachQueues(verb); err != nil {
		return nil, err
	}
	r.qps[q.num] = q
	pd.qps++
	return q, nil
}

// newQP makes a queue pair that nothing else knows of yet.
func (pd *PD) newQP(cfg QPConfig) *QP {
	r := pd.rnic
	r.mu.Lock()
	num := r.newQPNum()
	r.mu.Unlock()
	q := &QP{rnic: r, pd: pd, num: num, cfg: cfg, ird: cfg.IRD, ord: cfg.ORD, changed: make(chan struct{}), gone: make(chan struct{})}
	q.inbound.init(&q.cfg)
	q.sq.init(q, cfg.SendDepth, max(cfg.SendSGEs, cfg.WriteSGEs))
	q.rq.init(q)
	q.newEnd()
	q.initHolders()
	return q
}

// initHolders makes the queue pair's ways to memory.
func (q *QP) initHolders() {
	table, stream, srq := q.rnic.table, memory.Stream(q.num), q.cfg.SRQ
	q.out.Init(table, q.pd.mem, stream)
	q.in.Init(table, q.pd.mem, stream)
	if srq != nil && srq.pd != q.pd { // Verbs §6.3.5: its PD decides
		q.shared = new(memory.Holder)
		q.shared.Init(table, srq.pd.mem, stream)
	}
	if q.cfg.Privileged { // Verbs §7.2.1, §6.3.5
		q.out.AllowZero()
		q.in.AllowZero()
		if q.shared != nil {
			q.shared.AllowZero()
		}
	}
}

// attachQueues attaches the queue pair to its CQs and its S-RQ, to all of them or none.
func (q *QP) attachQueues(verb string) error {
	cfg := &q.cfg
	if err := cfg.SendCQ.attach(q); err != nil {
		return err
	}
	if err := cfg.RecvCQ.attach(q); err != nil {
		cfg.SendCQ.detach(q)
		return err
	}
	if cfg.SRQ != nil {
		if err := cfg.SRQ.attach(verb, cfg.RQLimit); err != nil {
			cfg.SendCQ.detach(q)
			cfg.RecvCQ.detach(q)
			return err
		}
	}
	return nil
}

// detachQueues undoes attachQueues.
func (q *QP) detachQueues() {
	q.cfg.SendCQ.detach(q)
	q.cfg.RecvCQ.detach(q)
	if q.cfg.SRQ != nil {
		q.cfg.SRQ.detach()
	}
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

// destroy is Destroy, also for an RNIC that is being closed. With force it ignores windows
// that are bound.
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
	q.expect(-1)
	q.detachQueues()
	r, past := q.rnic, q.Stats()
	table.ForgetStream(stream)
	_ = r.reserveReads(verb, -q.ird, -q.ord) // giving back never fails
	r.mu.Lock()
	delete(r.qps, q.num)
	r.pastQPs.add(&past)
	q.pd.qps--
	r.mu.Unlock()
	close(q.gone)
	return nil
}
