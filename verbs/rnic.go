// This file is the RNIC: its configuration, its objects, opening and closing it (Verbs
// §5.1, §9.2.1).

package verbs

import (
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/memory"
)

// A Config describes an RNIC to be opened. The zero value is useful.
type Config struct {
	// Name is what the RNIC is opened by: 1 to 63 letters, digits, dots, dashes
	// and underscores, which no other RNIC that is open in the process has. If
	// it is empty the RNIC is the next free of weft0, weft1 and so on.
	Name string

	Mode   Mode // how physical buffer lists describe memory
	Limits Limits

	// Logger logs events and changes of state of the RNIC's objects; nil logs nothing.
	// Its handler may be called while they are locked: it must not use them, nor poll
	// their completion queues.
	Logger *slog.Logger

	// Physical, if not empty, is the memory that the STag of zero names, in place
	// of a machine's physical memory: tagged offsets are offsets into it
	// (Verbs §7.2.1). Only local work requests of privileged queue pairs use it.
	Physical []byte

	// ProbePages has each registration of memory find out whether this program has
	// the rights to its pages that the region is to have (RFC 5040 §8.1.2 rule 4): it
	// fails with ErrAccess if not, an OpFastRegister with InvalidFRAccess. All pages
	// are touched for it, which takes time and has the system provide them; their
	// content stays as it is. Without it, and for pages that change later, the
	// stream whose message finds the right missing ends with an access violation.
	ProbePages bool

	// CloseTimeout bounds the Closing and the Terminate state of each queue
	// pair: after it the stream is reset (Verbs §6.2). 0 means 5 s.
	CloseTimeout time.Duration
}

// Usage counts what exists at the moment.
type Usage struct {
	PDs, CQs, QPs, SRQs, Regions, Windows int
	CQEntries                             int // of all CQs together
	SRQWRs                                int // of all S-RQs together, posted or not
	CompletionHandlers                    int
	IRD, ORD                              int // of all queue pairs together
	Listeners, PendingConnections         int
	RegionsOctets                         uint64 // of the regions that are Valid
}

// An RNIC is an open software RNIC: the container of protection domains, completion
// queues, queue pairs and all other objects. Objects of one RNIC are unknown to another.
// Methods may be called by any goroutine. Once it is closed every verb of every
// object of it fails with ErrRNIC.
type RNIC struct {
	cfg    Config
	limits Limits
	log    *slog.Logger
	table  *memory.Table

	life     atomic.Uint32            // one of the life constants; changes under mu
	handlers atomic.Pointer[handlers] // changes under mu
	refused  refusals

	mu          sync.Mutex
	pds         map[*PD]struct{}
	cqs         map[*CQ]struct{}
	srqs        map[*SRQ]struct{}
	qps         map[uint32]*QP // by QP ID
	pdn         uint64         // the last PD ID given out
	qpn         uint32         // the last QP ID
	lastHandler HandlerID
	cqEntries   int // of all CQs together
	srqWRs      int // of all S-RQs together
	ird, ord    int // of all queue pairs together
	handler     func(Event)
	listeners   map[io.Closer]struct{}
	pending     int     // connections that have not been accepted
	pastQPs     QPStats // of queue pairs that were destroyed
	pastCQs     CQStats
	raised      [len(eventNames)]uint64 // events, by their ID
	ends        ends

	events dispatcher[Event]
}

// The life of an RNIC. The zero RNIC is a closed one.
const (
	lifeClosed uint32 = iota
	lifeOpen
	lifeFailed // every verb but Close fails
)

// Open opens an RNIC (Verbs §9.2.1.1). The results besides success are ErrName,
// ErrRNICInUse for a name that is open already, ErrResources when MaxRNICs are
// open, and ErrBlockList for a Mode that is neither PageMode nor BlockMode; both
// of those are supported.
func Open(cfg Config) (*RNIC, error) {
	if cfg.Mode > BlockMode {
		return nil, fail("open RNIC", ErrBlockList, "Mode %d: PageMode and BlockMode are", cfg.Mode)
	}
	name, err := claimName(cfg.Name)
	if err != nil {
		return nil, err
	}
	cfg.Name = name
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.CloseTimeout <= 0 {
		cfg.CloseTimeout = 5 * time.Second
	}
	limits := cfg.Limits.withDefaults()
	r := &RNIC{
		cfg: cfg, limits: limits, log: cfg.Logger.With("rnic", cfg.Name),
		table: memory.NewTable(memory.Config{
			MaxRegions: limits.Regions, MaxWindows: limits.Windows, MaxBytes: limits.RegionsOctets, MaxEntries: limits.ListEntries,
			Block: cfg.Mode == BlockMode, Physical: cfg.Physical, ProbePages: cfg.ProbePages,
		}),
		pds: map[*PD]struct{}{}, cqs: map[*CQ]struct{}{}, srqs: map[*SRQ]struct{}{}, qps: map[uint32]*QP{},
		listeners: map[io.Closer]struct{}{},
	}
	r.handlers.Store(&handlers{})
	r.life.Store(lifeOpen)
	return r, nil
}

// alive returns the failure of a verb on an RNIC that is not open, or nil.
func (r *RNIC) alive(verb string) error {
	switch r.life.Load() {
	case lifeClosed:
		return fail(verb, ErrRNIC, "it has been closed")
	case lifeFailed:
		return fail(verb, ErrRNIC, "it has failed: close it")
	}
	return nil
}

// gone returns the failure of a verb on an object that was destroyed: ErrRNIC if the RNIC
// was closed, otherwise result.
func (r *RNIC) gone(verb string, result error) error {
	if err := r.alive(verb); err != nil {
		return err
	}
	return fail(verb, result, "it has been destroyed")
}

// Name returns what the RNIC was opened by.
func (r *RNIC) Name() string { return r.cfg.Name }

// QPs returns the queue pairs of the RNIC, in no particular order.
func (r *RNIC) QPs() []*QP {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.qps))
}

// QP returns the queue pair with a QP ID, or nil. An administrator of the RNIC may end
// its stream with [QP.Abort] (Verbs §10.3).
func (r *RNIC) QP(num uint32) *QP {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.qps[num]
}

// newQPNum returns a QP ID that no queue pair has; needs mu.
func (r *RNIC) newQPNum() uint32 {
	for r.qpn++; r.qpn == 0 || r.qps[r.qpn] != nil; r.qpn++ {
	}
	return r.qpn
}

// Usage returns the number of objects that exist.
func (r *RNIC) Usage() Usage {
	r.mu.Lock()
	u := Usage{
		PDs: len(r.pds), CQs: len(r.cqs), QPs: len(r.qps), SRQs: len(r.srqs), CQEntries: r.cqEntries, SRQWRs: r.srqWRs,
		CompletionHandlers: len(*r.handlers.Load()), IRD: r.ird, ORD: r.ord,
		Listeners: len(r.listeners), PendingConnections: r.pending,
	}
	r.mu.Unlock()
	mem := r.table.Usage()
	u.Regions, u.Windows, u.RegionsOctets = mem.Regions, mem.Windows, mem.Bytes
	return u
}

// SetAsyncHandler sets what is called for each asynchronous event, nil for
// nothing; it replaces the handler before it (Verbs §9.4.2). Events that happen
// while there is none are lost. Calls come one at a time, from a goroutine of
// the RNIC's, and may use any verb. It fails with ErrRNIC.
func (r *RNIC) SetAsyncHandler(handler func(Event)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.alive("set asynchronous event handler"); err != nil {
		return err
	}
	r.handler = handler
	return nil
}

// raise counts and logs an event, and calls the handler. QP, CQ or SRQ of the event is
// set.
func (r *RNIC) raise(e Event) {
	e.RNIC, e.Resource = r, e.ID.Resource()
	r.mu.Lock()
	handler := r.handler
	r.raised[e.ID]++
	r.mu.Unlock()
	if e.QP != nil {
		about := []any{"qp", e.QP.num, "err", e.Err}
		if peer := e.QP.peer.Load(); peer != nil {
			about = append([]any{"peer", *peer}, about...)
		}
		r.log.Info(e.ID.String(), about...)
	}
	if handler != nil {
		r.events.dispatch(e, handler)
	}
}

// Close closes the RNIC: its listeners are closed, its queue pairs are torn
// down, its memory is deallocated, and everything that belonged to it is invalid when Close
// returns (Verbs §9.2.1.3). Its name is free then. A second Close fails with
// ErrRNIC.
func (r *RNIC) Close() error {
	r.mu.Lock()
	if r.life.Load() == lifeClosed {
		r.mu.Unlock()
		return r.alive("close RNIC")
	}
	r.life.Store(lifeClosed)
	listeners := slices.Collect(maps.Keys(r.listeners))
	qps := slices.Collect(maps.Values(r.qps))
	r.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close() // they may be closed already
	}
	for _, q := range qps {
		_ = q.destroy("close RNIC", true) // fails only for one that is destroyed already
	}
	r.table.Close()
	r.mu.Lock()
	cqs, srqs := r.cqs, r.srqs
	r.pds, r.cqs, r.srqs, r.cqEntries, r.srqWRs = nil, nil, nil, 0, 0
	r.handlers.Store(&handlers{})
	r.mu.Unlock()
	for srq := range srqs {
		srq.mu.Lock()
		srq.end()
		srq.mu.Unlock()
	}
	var past CQStats
	for cq := range cqs {
		cq.mu.Lock()
		past.add(&cq.counts)
		cq.end()
		cq.mu.Unlock()
	}
	r.mu.Lock()
	r.pastCQs.add(&past)
	r.mu.Unlock()
	releaseName(r.cfg.Name)
	return nil
}
