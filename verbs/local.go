// This file executes the work requests that change memory registrations and send
// nothing: Bind, Fast-Register and Invalidate Local STag (Verbs §8.1.2.3).

package verbs

import (
	"errors"
	"fmt"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/memory"
)

// A memoryWQE is what a slot of the send queue keeps of a Bind or Fast-Register.
type memoryWQE struct {
	bind Binding
	fast FastRegister
}

// with copies that from wr, into m if it exists.
func (m *memoryWQE) with(wr *SendWR) *memoryWQE {
	if wr.Op != OpBind && wr.Op != OpFastRegister {
		return m
	}
	if m == nil {
		m = new(memoryWQE)
	}
	if wr.Op == OpBind {
		m.bind = *wr.Bind
	} else {
		m.fast = *wr.FastRegister
	}
	return m
}

// localLacks is what a Bind or Fast-Register lacks, empty if nothing.
func (wr *SendWR) localLacks() string {
	switch {
	case wr.Op == OpBind && (wr.Bind == nil || wr.Bind.Window.Index() == 0 || wr.Bind.Region.Index() == 0):
		return "a Bind, of a window and a region whose STag indices are not 0"
	case wr.Op == OpFastRegister && (wr.FastRegister == nil || wr.FastRegister.STag.Index() == 0):
		return "a FastRegister, of an STag whose index is not 0"
	}
	return ""
}

// execute executes request n, unless it has to wait, or the queue pair is in Error
// and about to flush it. What it does has taken effect before the next request
// starts (Verbs §8.2.2.1).
func (u ulp) execute(n uint64, w *sendWQE) (ok bool) {
	s := &u.sq
	if s.flushes() {
		return false
	}
	if w.wr.Op == OpInvalidate && u.invalidateWaits(n, w) {
		return false
	}
	// Responses gathered for the same batch may hold that memory, here or in a
	// queue pair that waits for memory held here.
	u.out.Release()
	status, err := w.wr.Op.row().local(u, w)
	if errors.Is(err, memory.ErrRetired) {
		return false // the queue pair is being destroyed, which flushes the request
	}
	s.next.Store(n + 1)
	if status != Success {
		u.Failed(n, wqError{status, err.Error()})
		return false
	}
	s.finish(n, Success)
	return true
}

// invalidateWaits reports whether an Invalidate Local STag has to wait: for its fence,
// or until the Sends and Writes before it have been written. Verbs §8.2.2 lets an unfenced
// request overtake those. It does not wait for responses to the peer, which could keep
// requesting more.
func (u ulp) invalidateWaits(n uint64, w *sendWQE) bool {
	s := &u.sq
	s.done.Lock()
	defer s.done.Unlock()
	return w.wr.Flags&LocalFence != 0 && s.head != n || s.sent < s.gathered
}

// invalidate invalidates an STag of the queue pair's own.
func (u ulp) invalidate(w *sendWQE) (Status, error) {
	stag := w.wr.Invalidate
	f := u.rnic.table.Invalidate(uint32(stag), u.pd.mem, memory.Stream(u.num), false)
	if f != ddp.NoFault {
		return statusOf(f), errors.New(notInvalidated(stag, f))
	}
	return Success, nil
}

// bind binds a window, if the queue pair may (Verbs §7.10.6.1).
func (u ulp) bind(w *sendWQE) (Status, error) {
	err := errNoBinds
	if u.cfg.BindWindows {
		err = u.rnic.table.Bind(u.pd.mem, memory.Stream(u.num), w.memory.bind)
	}
	return statusIn(bindStatuses[:], err), err
}

var (
	errNoBinds       = fmt.Errorf("%w: the queue pair binds no windows: set QPConfig.BindWindows", memory.ErrAccess)
	errNotPrivileged = errors.New("set QPConfig.Privileged")
)

// fastRegister registers memory, if the queue pair may (Verbs §7.3.2.5).
func (u ulp) fastRegister(w *sendWQE) (Status, error) {
	f := &w.memory.fast
	defer func() { *f = FastRegister{} }() // keep no memory alive
	if !u.cfg.Privileged {
		return NotPrivileged, errNotPrivileged
	}
	cfg := memory.RegionConfig{Access: f.Access, VA: f.VA, ZeroBased: f.ZeroBased}
	if f.List.Size != 0 || f.List.Buffers != nil {
		cfg.List = &f.List
	}
	err := u.rnic.table.FastRegister(u.pd.mem, memory.Stream(u.num), f.STag, f.Buf, cfg)
	status := statusIn(fastRegisterStatuses[:], err)
	if status == InvalidPageSize && u.rnic.cfg.Mode == BlockMode {
		status = InvalidBufferSize
	}
	return status, err
}

// A cause is the completion status for an error of package memory.
type cause struct {
	err    error
	status Status
}

// bindStatuses are the statuses of Verbs figure 36 that a Bind may have.
var bindStatuses = [...]cause{
	{memory.ErrWindow, InvalidWindow},
	{memory.ErrRegion, InvalidRegion},
	{memory.ErrNotInvalid, STagNotInvalid},
	{memory.ErrPD, InvalidPD},
	{memory.ErrAccess, AccessViolation},
	{memory.ErrWrap, WrapError},
	{memory.ErrBounds, BaseBounds},
}

// fastRegisterStatuses are those of a Fast-Register. There is none for want of
// resources: octets above the limit are a length that the RNIC does not support.
var fastRegisterStatuses = [...]cause{
	{memory.ErrRegion, InvalidSTag},
	{memory.ErrNotInvalid, STagNotInvalid},
	{memory.ErrPD, InvalidPD},
	{memory.ErrListLength, BufferListTooLong},
	{memory.ErrAccess, InvalidFRAccess},
	{memory.ErrBufferSize, InvalidPageSize},
	{memory.ErrBufferEntry, InvalidBufferListEntry},
	{memory.ErrFBO, InvalidFBO},
	{memory.ErrLength, InvalidFRLength},
	{memory.ErrByteLimit, InvalidFRLength},
	{memory.ErrWrap, WrapError}, // before ErrVA, which it is too
	{memory.ErrVA, InvalidVA},
}

// statusIn is the status of a work request that ended with err.
func statusIn(causes []cause, err error) Status {
	if err == nil {
		return Success
	}
	for _, c := range causes {
		if errors.Is(err, c.err) {
			return c.status
		}
	}
	return LocalCatastrophic
}
