package rdmap

import (
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/weft-rdma/weft/ddp"
)

// A line is an LLP without a network. It records what a Stream flushes, as far as the test
// lets it, and the Stream receives what the test puts in. It runs in the goroutines of its
// callers and takes no lock, so that the race detector sees whether the outgoing half has
// one owner at a time.
type line struct {
	ddp.Poller // which nobody uses here

	t testing.TB

	version uint8
	digests bool
	mulpdu  int
	fenced  bool
	waits   bool // no write without waiting: CanTry says no
	room    int  // segments in a batch, at most
	single  bool // what arrives is handed up one by one

	takes  int            // segments that are taken without waiting; below 0: all
	begun  bool           // the first segment not written has left in part
	wait   func()         // the transport is full and Flush waits: has to change that
	brief  bool           // a Flush that waits returns as soon as something has left
	flush  func()         // called as Flush begins
	broken error          // what Flush returns from now on
	fault  error          // what Flush returns once, when it has written
	bad    byte           // payload that begins with it cannot be read
	faults bool           // there is such payload
	take   func(*segment) // instead of writing down

	pending []segment
	torn    bool      // the last one is there in part: Append has faulted
	written []segment // as they left
	done    uint64    // how many have left
	flushes []bool    // Flush's argument, call by call
	guard   ddp.Guard
	hold    *hold // what the guard guards, if that is known

	expected int // calls of Expect

	in  [][]byte // to be received
	end error    // then

	shut   []string // CloseWrite, Drain, Reset, Close, as they were called
	closed error    // what CloseWrite returns
}

// A segment is one on its way out.
type segment struct {
	header  []byte
	own     []byte   // the payload, if it was copied
	pieces  [][]byte // as appended
	payload []byte   // as they were when it left
}

// An unreadableError says from which segment on memory cannot be read.
type unreadableError struct {
	segment uint64
	cause   error
}

func (e *unreadableError) Error() string               { return "unreadable: " + e.cause.Error() }
func (e *unreadableError) Unreadable() (uint64, error) { return e.segment, e.cause }

// small payload, in octets, is copied as it is appended, as LLP says. The ULP's
// messages of these tests are larger where it matters.
const small = AtomicRequestLen + 1

var (
	_ ddp.LLP          = (*line)(nil)
	_ ddp.ExpectingLLP = (*line)(nil)
	_ ddp.RunLLP       = (*line)(nil)
)

func newLine(t testing.TB) *line {
	return &line{t: t, version: 1, mulpdu: 128, room: 64, takes: -1, end: errPause}
}

func (l *line) Version() uint8    { return l.version }
func (l *line) MULPDU() int       { return l.mulpdu }
func (l *line) Fenced() bool      { return l.fenced }
func (l *line) CanTry() bool      { return !l.waits }
func (l *line) Room() bool        { return len(l.pending) < l.room }
func (l *line) Appended() uint64  { return l.done + uint64(l.whole()) }
func (l *line) Written() uint64   { return l.done }
func (l *line) Guard(g ddp.Guard) { l.guard = g }
func (l *line) Expect()           { l.expected++ }

func (l *line) Append(header []byte, payload [][]byte) {
	l.append(header, payload, len(payload) == 1 && len(payload[0]) < small)
}

func (l *line) AppendRun(headers []byte, size int, payloads [][]byte) {
	for i := range payloads {
		l.append(headers[i*size:][:size], payloads[i:i+1], true)
	}
}

func (l *line) AppendVolatile(header []byte, payload [][]byte) (copied bool) {
	l.append(header, payload, l.digests)
	return l.digests
}

// A fault is what an access to memory panics with under debug.SetPanicOnFault.
type fault struct{ at *byte }

func (f fault) RuntimeError() {}
func (f fault) Error() string { return "a page is missing" }
func (f fault) Addr() uintptr { return uintptr(unsafe.Pointer(f.at)) }

func (l *line) append(header []byte, payload [][]byte, copied bool) {
	n := len(l.pending)
	if n < cap(l.pending) {
		l.pending = l.pending[:n+1] // keeps the slices of the segment that was there
	} else {
		l.pending = append(l.pending, segment{})
	}
	if l.faults && len(payload) > 0 && payload[0][0] == l.bad {
		l.torn = true
		panic(fault{&payload[0][0]})
	}
	s := &l.pending[n]
	s.header = append(s.header[:0], header...)
	s.pieces = append(s.pieces[:0], payload...)
	if copied {
		s.own = s.own[:0]
		for _, p := range payload {
			s.own = append(s.own, p...)
		}
		s.pieces = append(s.pieces[:0], s.own)
	}
	size := len(header)
	for _, p := range payload {
		size += len(p)
	}
	if size > l.mulpdu {
		l.t.Errorf("a segment of %d octets was appended, MULPDU is %d", size, l.mulpdu)
	}
}

func (l *line) Flush(wait bool) (drained bool, err error) {
	if l.take == nil {
		l.flushes = append(l.flushes, wait)
	}
	if l.hold != nil && l.hold.held {
		l.t.Error("memory is held as Flush begins, which may wait")
	}
	if l.torn {
		l.t.Error("a segment is to leave that has faulted")
	}
	if l.flush != nil {
		l.flush()
	}
	for l.broken == nil {
		if len(l.pending) > 0 && !l.guard.Acquire() {
			return false, errors.New("the guard refused")
		}
		before := l.done
		l.write()
		l.guard.Release()
		switch {
		case l.fault != nil:
			fault := l.fault
			l.fault = nil
			return false, fault
		case len(l.pending) == 0:
			return true, nil
		case !wait, l.brief && l.done > before:
			return false, nil
		case l.wait == nil:
			l.t.Fatal("Flush would wait for ever")
		}
		l.wait()
	}
	return false, l.broken
}

func (l *line) write() {
	n := len(l.pending)
	if l.takes >= 0 {
		n = min(n, l.takes)
		l.takes -= n
	}
	for i := range n {
		s := &l.pending[i]
		if l.take != nil {
			l.take(s)
			continue
		}
		l.written = append(l.written, segment{
			header: slices.Clone(s.header), pieces: slices.Clone(s.pieces), payload: slices.Concat(s.pieces...),
		})
	}
	if n > 0 {
		l.begun = false
		l.done += uint64(n)
		slots := l.pending
		for i := n; i < len(slots); i++ {
			slots[i-n], slots[i] = slots[i], slots[i-n]
		}
		l.pending = slots[:len(slots)-n]
	}
}

// whole is how many of the pending segments are there whole.
func (l *line) whole() int {
	if l.torn {
		return len(l.pending) - 1
	}
	return len(l.pending)
}

func (l *line) Truncate(n uint64) uint64 {
	l.pending, l.torn = l.pending[:l.whole()], false
	keep := 0
	if l.begun {
		keep = 1
	}
	if n > l.done {
		keep = max(keep, int(n-l.done))
	}
	if keep < len(l.pending) {
		l.pending = l.pending[:keep]
	}
	return l.Appended()
}

func (l *line) Receive(s ddp.Sink) error {
	in := l.in
	l.in = nil
	for len(in) > 0 {
		n := len(in)
		if l.single {
			n = 1
		}
		if err := s.(ddp.RunSink).ULPDUs(in[:n]); err != nil {
			return err
		}
		in = in[n:]
	}
	s.Idle()
	return l.end
}

func (l *line) CloseWrite() error { l.shut = append(l.shut, "CloseWrite"); return l.closed }
func (l *line) Drain() error      { l.shut = append(l.shut, "Drain"); return nil }
func (l *line) Reset() error      { l.shut = append(l.shut, "Reset"); return nil }
func (l *line) Close() error      { l.shut = append(l.shut, "Close"); return nil }
