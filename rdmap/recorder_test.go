package rdmap

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/weft-rdma/weft/ddp"
)

// A recorder is a ULP that the test controls, and that records the calls of the Stream.
type recorder struct {
	stream *Stream
	hold   *hold
	quiet  bool // writes nothing down

	ops     []Operation
	runs    []int             // how many Writes each run had that was asked for
	next    func()            // called by Next when there is none
	sent    func()            // called by Sent
	took    func()            // called by Took
	payload map[uint64][]byte // by ticket
	refuses error             // what Gather returns
	second  uint64            // where the second of two elements of an operation begins; 0: there is one
	whole   uint64            // but for so many octets of each payload
	memory  map[uint32]*region

	receives [][]byte // posted; the first is the one in use
	scatters error    // what Scatter returns
	answers  error    // what Responded returns
	respond  func()   // called by Responded first, if not nil
	released func()   // called by Release, if not nil
	another  func()   // called by AnotherTarget first, if not nil
	others   int      // calls of it, and of AnotherReceive
	apart    uint64   // the Read of which AnotherSink is not for

	sources int    // calls of AnotherSource that found memory
	split   bool   // it finds none
	sourced func() // called then

	holding bool // memory for what arrives
	scratch [1][]byte

	logging sync.Locker // of log and memory, where several goroutines use them; nil: one does
	log     []string
	value   uint64 // of the last Responded
	failed  error  // of the last Failed
}

// A region is memory behind an STag.
type region struct {
	base   uint64
	data   []byte
	fault  ddp.Fault // refuses every access,
	good   int       // but to so many octets
	hollow bool      // every octet of 2^64 is there: data stands for all of them
	odd    bool      // its atomics are misaligned
}

var _ ULP = (*recorder)(nil)

func (u *recorder) note(format string, args ...any) {
	if u.quiet {
		return
	}
	if u.logging != nil {
		u.logging.Lock()
		defer u.logging.Unlock()
	}
	u.log = append(u.log, fmt.Sprintf(format, args...))
}

// told returns what was recorded since the last call.
func (u *recorder) told() []string {
	log := u.log
	u.log = nil
	return log
}

func (u *recorder) Next(op *Operation) bool {
	if len(u.ops) == 0 {
		if u.next != nil {
			u.next()
		}
		return false
	}
	*op = u.ops[0]
	u.ops = u.ops[1:]
	return true
}

// ShortRun gives the Writes or Sends at the front, as long as they have memory of their own.
func (u *recorder) ShortRun(op Opcode, r *ddp.Run, most int) (ticket uint64) {
	frame := u.hold.first
	for i := range u.ops {
		o := &u.ops[i]
		p := u.payload[o.Ticket]
		if o.Opcode != op || o.Fence || len(p) == 0 || len(p) > most || u.refuses != nil || u.second > 0 || r.N == ddp.RunLength {
			break
		}
		u.hold.SetFrames(frame+uint64(i), frame+uint64(i))
		u.hold.use(o.Ticket)
		r.Payloads[i], r.Targets[i] = p, ddp.Target{STag: o.RemoteSTag, TO: o.RemoteTO}
		r.N++
	}
	return u.ran(r.N)
}

// Reads gives the Reads at the front.
func (u *recorder) Reads(reads []ReadRequest) (ticket uint64, n int) {
	for n < min(len(reads), len(u.ops)) && u.ops[n].Opcode == OpReadRequest && !u.ops[n].Fence {
		o := &u.ops[n]
		reads[n] = ReadRequest{SinkSTag: o.SinkSTag, SinkTO: o.SinkTO, Size: o.Length, SourceSTag: o.RemoteSTag, SourceTO: o.RemoteTO}
		n++
	}
	return u.ran(n), n
}

// ran notes a run, and returns the ticket of its first operation.
func (u *recorder) ran(n int) (ticket uint64) {
	if n > 0 {
		u.runs = append(u.runs, n)
		ticket = u.ops[0].Ticket
	}
	return ticket
}

func (u *recorder) Waiting() bool { return len(u.ops) > 0 }

func (u *recorder) Took(ticket uint64) {
	if u.took != nil {
		u.took()
	}
	for len(u.ops) > 0 && u.ops[0].Ticket < ticket {
		u.ops = u.ops[1:]
	}
}

func (u *recorder) Gather(dst [][]byte, ticket uint64, off uint64, n int) ([][]byte, error) {
	if u.second > 0 {
		return u.gatherTwo(dst, off, n), nil
	}
	u.hold.use(ticket)
	if u.refuses != nil && off+uint64(n) > u.whole {
		return dst, u.refuses // as where the second of two pieces is bad
	}
	p := u.payload[ticket]
	if p == nil {
		return append(dst, u.memory[0].data[:n]), nil
	}
	return append(dst, p[off:off+uint64(n)]), nil
}

// gatherTwo is Gather of two elements, which are held by the keys 1 and 2.
func (u *recorder) gatherTwo(dst [][]byte, off uint64, n int) [][]byte {
	end := off + uint64(n)
	if off < u.second {
		u.hold.use(1)
		dst = append(dst, make([]byte, min(end, u.second)-off))
	}
	if end > u.second {
		u.hold.use(2)
		dst = append(dst, make([]byte, end-max(off, u.second)))
	}
	return dst
}

func (u *recorder) Sent(ticket uint64) (more bool) {
	u.note("sent %d", ticket)
	if u.sent != nil {
		u.sent()
	}
	return len(u.ops) > 0
}

func (u *recorder) Responded(ticket uint64, value uint64) error {
	if u.respond != nil {
		u.respond()
	}
	u.note("responded %d %#x", ticket, value)
	u.value = value
	return u.answers
}

func (u *recorder) Failed(ticket uint64, err error) {
	u.note("failed %d", ticket)
	u.failed = err
	u.stream.Terminate(err)
}

func (u *recorder) Damaged(ticket uint64, err error) {
	u.note("damaged %d", ticket)
	u.failed = err
}

func (u *recorder) Receive() (size uint64, ok bool) {
	if len(u.receives) == 0 {
		return 0, false
	}
	return uint64(len(u.receives[0])), true
}

func (u *recorder) Scatter(dst [][]byte, off uint64, n int) ([][]byte, error) {
	if u.scatters != nil {
		return dst, u.scatters
	}
	u.holding = true
	return append(dst, u.receives[0][off:off+uint64(n)]), nil
}

func (u *recorder) Unwritable(cause error) error {
	u.note("unwritable")
	u.receives = u.receives[1:]
	return cause
}

func (u *recorder) Delivered(d *Delivery) {
	if u.quiet {
		return // the same receive again
	}
	line := fmt.Sprintf("delivered %s %d", d.Opcode, d.Length)
	if d.HasSTag {
		line += fmt.Sprintf(" without %#x", d.Invalidated)
	}
	if d.Opcode == OpImmediate || d.Opcode == OpImmediateSE {
		line += fmt.Sprintf(" % x", d.Immediate)
	}
	u.note("%s", line)
	u.receives = u.receives[1:]
}

func (u *recorder) Refused(err error) error {
	u.note("refused")
	u.receives = u.receives[1:]
	return err
}

// at is the region of an STag, or nil.
func (u *recorder) at(stag uint32) *region {
	if u.logging != nil {
		u.logging.Lock()
		defer u.logging.Unlock()
	}
	return u.memory[stag]
}

// forget makes an STag invalid.
func (u *recorder) forget(stag uint32) {
	if u.logging != nil {
		u.logging.Lock()
		defer u.logging.Unlock()
	}
	delete(u.memory, stag)
}

// find is the memory at an STag.
func (u *recorder) find(dst [][]byte, stag uint32, to uint64, n int) ([][]byte, ddp.Fault) {
	r := u.at(stag)
	switch {
	case r == nil:
		return dst, ddp.FaultSTag
	case r.fault != ddp.NoFault && r.good < n:
		return dst, r.fault
	case r.hollow:
		return append(dst, r.data[:n]), ddp.NoFault
	case to+uint64(n-1) < to:
		return dst, ddp.FaultWrap
	case to < r.base || to-r.base > uint64(len(r.data)) || uint64(n) > uint64(len(r.data))-(to-r.base):
		return dst, ddp.FaultBounds
	}
	r.good -= n
	return append(dst, r.data[to-r.base:][:n]), ddp.NoFault
}

func (u *recorder) WriteTarget(dst [][]byte, stag uint32, to uint64, n int) ([][]byte, ddp.Fault) {
	u.holding = true
	return u.find(dst, stag, to, n)
}

func (u *recorder) AnotherTarget(stag uint32, to uint64, n int) []byte {
	u.others++
	if u.another != nil {
		u.another()
	}
	dst, f := u.find(nil, stag, to, n)
	if f != ddp.NoFault {
		return nil
	}
	return dst[0]
}

func (u *recorder) AnotherSink(ticket uint64, stag uint32, to uint64, n int) []byte {
	if ticket == u.apart {
		return nil
	}
	return u.AnotherTarget(stag, to, n)
}

func (u *recorder) Answered(ticket uint64) { u.note("answered %d", ticket) }

func (u *recorder) AnotherReceive(i, n int) []byte {
	if n == 0 {
		panic("memory for nothing")
	}
	if i >= len(u.receives) || len(u.receives[i]) < n || u.scatters != nil {
		return nil
	}
	u.holding = true
	u.others++
	if u.another != nil {
		u.another()
	}
	return u.receives[i][:n]
}

func (u *recorder) DeliveredRun(op Opcode, lengths []uint32) {
	u.note("delivered %s %d", op, lengths)
	u.receives = u.receives[len(lengths):]
}

func (u *recorder) ReadSink(dst [][]byte, stag uint32, to uint64, n int) ([][]byte, ddp.Fault) {
	u.holding = true
	return u.find(dst, stag, to, n)
}

func (u *recorder) CheckSource(stag uint32, to uint64, n uint32) ddp.Fault {
	if r := u.at(stag); r != nil && r.hollow {
		return r.fault
	}
	_, f := u.find(u.scratch[:0], stag, to, int(n))
	return f
}

func (u *recorder) Source(dst [][]byte, stag uint32, to uint64, n int) ([][]byte, ddp.Fault) {
	u.hold.use(uint64(stag)) // whatever comes of it
	return u.find(dst, stag, to, n)
}

func (u *recorder) AnotherSource(stag uint32, to uint64, n int) []byte {
	u.hold.SetFrames(u.hold.last+1, u.hold.last+1)
	u.hold.use(uint64(stag))
	dst, f := u.find(nil, stag, to, n)
	if f != ddp.NoFault || u.split {
		return nil
	}
	u.sources++
	if u.sourced != nil {
		u.sourced()
	}
	return dst[0]
}

func (u *recorder) Atomic(a *AtomicRequest) (found uint64, aligned bool, f ddp.Fault) {
	r := u.at(a.STag)
	if r == nil {
		return 0, true, ddp.FaultSTag
	}
	if r.fault != ddp.NoFault || r.odd {
		return 0, !r.odd, r.fault
	}
	found = uint64(r.data[0])
	r.data[0] = byte(a.Apply(found))
	u.note("%s", a.AOpCode)
	return found, true, ddp.NoFault
}

func (u *recorder) CheckAtomic(a *AtomicRequest) (aligned bool, f ddp.Fault) {
	r := u.at(a.STag)
	if r == nil {
		return true, ddp.FaultSTag
	}
	return !r.odd, r.fault
}

func (u *recorder) Unanswered(err error) {
	u.note("unanswered")
	u.stream.Terminate(err)
}

func (u *recorder) Invalidate(stag uint32) ddp.Fault {
	u.rested()
	r := u.at(stag)
	if r == nil {
		return ddp.FaultSTag
	}
	if r.fault == ddp.NoFault {
		u.note("invalidated %#x", stag)
		u.forget(stag)
	}
	return r.fault
}

func (u *recorder) Release() {
	u.holding = false
	if u.released != nil {
		u.released()
	}
}

func (u *recorder) Idle() { u.holding = false }

// rested records that the receiving goroutine holds memory where it must not, because the
// ULP may have to wait for all holders.
func (u *recorder) rested() {
	if u.holding {
		u.note("memory is held")
	}
}

// A hold remembers which memory the segments not yet written refer to, by
// ticket or STag.
type hold struct {
	first   uint64
	last    uint64
	uses    []use
	limit   int // of uses, until it is Full
	revoked map[uint64]bool
	held    bool
}

type use struct{ key, first, last uint64 }

var _ Hold = (*hold)(nil)

func (h *hold) use(key uint64) {
	h.held = true
	for i := range h.uses {
		if h.uses[i].key == key {
			h.uses[i].last = h.last
			return
		}
	}
	h.uses = append(h.uses, use{key, h.first, h.last})
}

func (h *hold) revoke(key uint64) {
	if h.held {
		panic("memory is revoked while it is held")
	}
	h.revoked = map[uint64]bool{key: true}
}

func (h *hold) Acquire() bool {
	if slices.ContainsFunc(h.uses, func(u use) bool { return h.revoked[u.key] }) {
		return false
	}
	h.held = true
	return true
}

func (h *hold) Release() { h.held = false }

func (h *hold) SetFrames(first, last uint64) {
	if first < h.last {
		panic("memory is held for frames that were not appended")
	}
	h.first, h.last = first, last
}

func (h *hold) Full() bool { return h.limit > 0 && len(h.uses) >= h.limit }

func (h *hold) Revoked() uint64 {
	frame, any := uint64(0), false
	for _, u := range h.uses {
		if h.revoked[u.key] && (!any || u.first < frame) {
			frame, any = u.first, true
		}
	}
	return frame
}

func (h *hold) Done(n uint64) {
	h.uses = slices.DeleteFunc(h.uses, func(u use) bool { return u.last < n })
	for i := range h.uses {
		h.uses[i].first = max(h.uses[i].first, n)
	}
}

func (h *hold) Truncate(n uint64) {
	h.last = min(h.last, n)
	h.uses = slices.DeleteFunc(h.uses, func(u use) bool { return u.first >= n })
	for i := range h.uses {
		h.uses[i].last = min(h.uses[i].last, n-1)
	}
}

// errLocal is a local error without a code.
var errLocal = errors.New("the consumer's memory is gone")
