package verbs

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/memory"
)

// Limits bound what one RNIC holds at a time (Verbs §9.2.1.2). Each is a
// bound by itself; zero means the default in parentheses.
type Limits struct {
	PDs           int    // protection domains (65536)
	CQs           int    // completion queues (65536)
	CQEntries     int    // entries of one CQ (1048576)
	QPs           int    // queue pairs (65536)
	WRs           int    // work requests of one send or receive queue (65536)
	SRQs          int    // shared receive queues (65536)
	SRQWRs        int    // work requests of one shared receive queue (1048576)
	SGEs          int    // scatter/gather elements of one work request (32); at least 4
	IRD, ORD      int    // of one queue pair (256 each); 16382 is the most that can be negotiated
	Regions       int    // memory regions (1048576)
	RegionsOctets uint64 // octets of all regions together (no limit)
}

func (l Limits) withDefaults() Limits {
	for _, d := range [...]struct {
		v   *int
		def int
	}{{&l.PDs, 1 << 16}, {&l.CQs, 1 << 16}, {&l.CQEntries, 1 << 20}, {&l.QPs, 1 << 16}, {&l.WRs, 1 << 16},
		{&l.SRQs, 1 << 16}, {&l.SRQWRs, 1 << 20}, {&l.SGEs, 32}, {&l.IRD, 256}, {&l.ORD, 256}, {&l.Regions, memory.DefaultMaxRegions}} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	l.SGEs = max(l.SGEs, 4) // Verbs §8.1.3.2: no RNIC supports fewer
	l.IRD, l.ORD = min(l.IRD, 0x3FFE), min(l.ORD, 0x3FFE)
	return l
}

// A Config says how an RNIC is to be. The zero value is useful.
type Config struct {
	Name   string       // for logs and Query; "weft0" if empty
	Limits Limits       //
	Logger *slog.Logger // nil is silent

	// CloseTimeout bounds the Closing and the Terminate state of each queue
	// pair: after it the stream is reset (Verbs §6.2). 0 means 5 s.
	CloseTimeout time.Duration
}

// Attributes are what an RNIC is and can do (Verbs §9.2.1.2).
type Attributes struct {
	Name             string
	Limits           Limits
	CQOverflowDetect bool // overflow of a CQ is detected and reported
	Extensions       bool // RFC 7306: atomics and Immediate Data
}

// Usage counts what exists at the moment.
type Usage struct {
	PDs, CQs, QPs, SRQs, Regions int
	RegionsOctets                uint64
}

// An RNIC is an open software RNIC: all that protection domains, completion
// queues and queue pairs belong to. Objects of one RNIC are unknown to another.
// Methods may be called by any goroutine.
type RNIC struct {
	cfg    Config
	limits Limits
	log    *slog.Logger
	table  *memory.Table
	qpn    atomic.Uint32

	mu      sync.Mutex
	closed  bool
	pds     map[*PD]struct{}
	cqs     map[*CQ]struct{}
	qps     map[*QP]struct{}
	srqs    map[*SRQ]struct{}
	handler func(Event)

	events dispatcher[Event]
}

// Open opens an RNIC (Verbs §9.2.1.1).
func Open(cfg Config) (*RNIC, error) {
	if cfg.Name == "" {
		cfg.Name = "weft0"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.CloseTimeout <= 0 {
		cfg.CloseTimeout = 5 * time.Second
	}
	limits := cfg.Limits.withDefaults()
	return &RNIC{
		cfg: cfg, limits: limits, log: cfg.Logger.With("rnic", cfg.Name),
		table: memory.NewTable(memory.Config{MaxRegions: limits.Regions, MaxBytes: limits.RegionsOctets}),
		pds:   map[*PD]struct{}{}, cqs: map[*CQ]struct{}{}, qps: map[*QP]struct{}{}, srqs: map[*SRQ]struct{}{},
	}, nil
}

// Query returns what the RNIC is and can do.
func (r *RNIC) Query() Attributes {
	return Attributes{Name: r.cfg.Name, Limits: r.limits, CQOverflowDetect: true, Extensions: true}
}

// Usage returns how much of it is in use.
func (r *RNIC) Usage() Usage {
	r.mu.Lock()
	u := Usage{PDs: len(r.pds), CQs: len(r.cqs), QPs: len(r.qps), SRQs: len(r.srqs)}
	r.mu.Unlock()
	u.Regions, u.RegionsOctets = r.table.Usage()
	return u
}

// SetAsyncHandler sets what is called for each asynchronous event, nil for
// nothing; it replaces the handler before it (Verbs §9.4.2). Events that happen
// while there is none are lost. Calls come one at a time, from a goroutine of
// the RNIC's, and may use any verb.
func (r *RNIC) SetAsyncHandler(handler func(Event)) {
	r.mu.Lock()
	r.handler = handler
	r.mu.Unlock()
}

// raise tells of an event whose QP, CQ or SRQ says what it is about.
func (r *RNIC) raise(e Event) {
	e.RNIC, e.Resource = r, e.ID.Resource()
	r.mu.Lock()
	handler := r.handler
	r.mu.Unlock()
	if e.QP != nil {
		r.log.Info(e.ID.String(), "qp", e.QP.num, "err", e.Err)
	}
	if handler != nil {
		r.events.tell(e, handler)
	}
}

// Close closes the RNIC: its queue pairs are torn down, its memory is
// deallocated, and everything that belonged to it is invalid when Close
// returns (Verbs §9.2.1.3). A second Close fails with ErrRNIC.
func (r *RNIC) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return fail("close RNIC", ErrRNIC, "")
	}
	r.closed = true
	var qps []*QP
	for q := range r.qps {
		qps = append(qps, q)
	}
	r.mu.Unlock()
	for _, q := range qps {
		_ = q.Destroy() // fails only for one that is destroyed already
	}
	r.table.Close()
	r.mu.Lock()
	cqs, srqs := r.cqs, r.srqs
	r.pds, r.cqs, r.srqs = nil, nil, nil
	r.mu.Unlock()
	for srq := range srqs {
		srq.mu.Lock()
		srq.end(ErrRNIC)
		srq.mu.Unlock()
	}
	for cq := range cqs {
		cq.mu.Lock()
		cq.end()
		cq.mu.Unlock()
	}
	return nil
}
