// This file is a connection that carries messages, in both directions:
//
//  1. One goroutine (run) reads messages: calls of the peer and replies to calls
//     of this side.
//  2. Each call of the peer is executed in a goroutine of its own, which writes
//     the reply. There are at most slots of them; then the link is not read.
//  3. A caller of this side writes its call and waits for the reply (calling.go).
//
// Locking: the token in line is held by the goroutine that writes. mu guards the
// fields below it, and the table of calls has a lock of its own. Fields of the
// reader belong to the goroutine of run.

package rpctcp

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

const (
	// readAhead is how much is taken off a connection at a time, in octets,
	// where messages are short. What is longer is read into its place.
	readAhead = 16 << 10
	// believed is how much of a message has to have arrived before memory for
	// all of it is taken, in octets.
	believed = 64 << 10
	// parts says which part of the memory for messages one link may take before
	// it has to wait for itself: one by this.
	parts = 4
	// headway is how much of a message has to arrive for its peer to count as
	// one that goes on, in octets.
	headway = 4 << 10
	// grace is how long a call whose context has ended waits for the network to
	// let go of the caller's memory. After it the connection is closed.
	grace = time.Second
	// lastGrace is how long the alert of the end of TLS may take when a server ends. Who
	// reads has taken the replies before it.
	lastGrace = 100 * time.Millisecond
	// prefixLen is where the direction of a message is known (XID, msg_type).
	prefixLen = 8
)

// errIdle ends a connection over which nothing goes any more.
var errIdle = errors.New("nothing was sent for a while")

// errDraining ends the taking of messages when a server is shut down.
var errDraining = errors.New("shutting down")

// A setting is what the links of one server or client have in common.
type setting struct {
	handler oncrpc.Handler // of the peer's calls
	slots   int            // calls of the peer that are executed at a time
	record  oncrpc.RecordLimits
	idle    time.Duration // without calls, before the link ends; negative: never
	stall   time.Duration // for a message to arrive once begun, and to be taken
	log     *slog.Logger

	acceptTLS   *tls.Config // what a probe of the peer's begins; nil refuses it
	mostRecords uint64      // of TLS, on a connection

	in, out *fairness.Memory // of the peer's calls, and of the replies to them
	own     *fairness.Memory // of replies to this side's calls
}

// A link is a connection that carries messages.
type link struct {
	*setting
	nc  net.Conn
	raw net.Conn // what nc is around

	began time.Time
	from  *origin.Origin
	tls   atomic.Pointer[secured] // over nc; nil in the clear

	retiring atomic.Bool // of a client: it makes no more calls here
	ahead    *bufio.Reader
	rd       *oncrpc.RecordReader // over ahead; for the goroutine of run

	calls, replies, own *fairness.Account // of the memories of the setting
	place               *fairness.Place   // in a server

	line chan struct{} // holds one token while a goroutine writes
	wr   *oncrpc.RecordWriter

	// ctx ends with the link; its cause is why. It is what handlers get.
	ctx context.Context
	end context.CancelCauseFunc

	mine   table         // calls of this side
	slots  chan struct{} // one token for each call of the peer being executed
	inside sync.WaitGroup

	lost int // calls of this side that the end cut off; once run has returned

	// Times are Unix time in nanoseconds.
	lastUsed      atomic.Int64 // when the last message began or call ended, or a long one went on
	readProgress  atomic.Int64 // when the message being read went on, 0 if none is awaited
	writeProgress atomic.Int64 // when the message being written went on, or began, 0 if none is
	passed        fairness.Passage
	starving      atomic.Bool  // the message being read waits for memory
	blocked       atomic.Int32 // calls that wait for memory, or for their reply to be taken

	mu       sync.Mutex
	draining bool // no message is taken any more
	busy     int  // calls of the peer being executed
	tally    tally
	spoken   bool     // a call of the peer was answered
	quiet    bool     // ended, and no call is in a handler any more
	onEnd    []func() // to be run then
}

// newLink makes a link over nc, which is around raw. It lives until run returns.
func newLink(ctx context.Context, nc, raw net.Conn, from *origin.Origin, s *setting) *link {
	l := &link{setting: s, nc: nc, raw: raw, began: time.Now(), from: from, ahead: bufio.NewReaderSize(nc, readAhead), line: make(chan struct{}, 1), slots: make(chan struct{}, s.slots)}
	share := from.Share()
	l.calls = s.in.Open(share, s.in.Limit()/parts, l)
	l.replies = s.out.Open(share, s.out.Limit()/parts, l)
	l.own = s.own.Open(share, s.own.Limit(), l)
	l.rd = oncrpc.NewRecordReader(l.ahead, s.record)
	l.wr = l.writer(nc)
	l.lastUsed.Store(time.Now().UnixNano())
	l.ctx, l.end = context.WithCancelCause(ctx)
	return l
}

// writer returns a writer of records to the stream that the link goes over.
func (l *link) writer(w io.Writer) *oncrpc.RecordWriter {
	wr := oncrpc.NewRecordWriter(w, 0)
	if _, ok := acked(l.raw); !ok {
		wr.OnStep(l.wrote)
	}
	return wr
}

// run takes messages until the link ends, by the peer, close or drain, and
// returns when nothing of it is left: every call has its answer or error, every
// handler has returned. The error says why it ended; nil is by the peer, between
// two messages.
func (l *link) run() error {
	closed := make(chan struct{})
	context.AfterFunc(l.ctx, func() {
		defer close(closed)
		if errors.Is(context.Cause(l.ctx), os.ErrDeadlineExceeded) {
			abandon(l.raw)
		}
		l.hangUp()
	})
	err := l.readMessages()
	if errors.Is(err, errDraining) {
		l.inside.Wait() // replies go out, unless close comes first
	}
	l.close(err)
	<-closed // its port is free, if the calls are made again from there
	if l.place != nil {
		l.place.Free()
	}
	l.lost += l.mine.fail(err)
	l.inside.Wait()

	l.mu.Lock()
	ends := l.onEnd
	l.quiet, l.onEnd = true, nil
	l.mu.Unlock()
	for _, f := range ends {
		f()
	}
	l.closeAccounts()
	if err == io.EOF {
		return nil
	}
	return err
}

// closeAccounts closes the link's accounts.
func (l *link) closeAccounts() {
	for _, a := range [...]*fairness.Account{l.calls, l.replies, l.own} {
		a.Close()
	}
}

// close ends the link at once. What has been cut off is not answered.
func (l *link) close(err error) {
	if err == nil {
		err = net.ErrClosed
	}
	l.end(err)
}

// drain lets the link end when the calls that are being executed are answered.
func (l *link) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	l.nc.SetReadDeadline(time.Unix(1, 0))
}

// await waits for the first octet of the next message and says how long all of
// it may take.
func (l *link) await() error {
	for {
		limit := time.Time{}
		if l.idle > 0 {
			limit = time.Unix(0, l.lastUsed.Load()).Add(l.idle)
		}
		if err := l.setReadDeadline(limit); err != nil {
			return err
		}
		_, err := l.ahead.Peek(1)
		now := time.Now()
		if err == nil {
			l.lastUsed.Store(now.UnixNano())
			return l.setReadDeadline(now.Add(l.stall))
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return l.readFailed(err)
		}
		if l.occupied() {
			l.lastUsed.Store(now.UnixNano())
		} else if l.idle > 0 && now.UnixNano()-l.lastUsed.Load() >= int64(l.idle) {
			return errIdle
		}
	}
}

// setReadDeadline does so unless the link is draining.
func (l *link) setReadDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		return errDraining
	}
	return l.nc.SetReadDeadline(t)
}

// readFailed returns why reading has failed: this side's reason, if it has one.
func (l *link) readFailed(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	if l.draining {
		return errDraining
	}
	return err
}

// occupied reports whether a call is under way, either way.
func (l *link) occupied() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy > 0 || l.mine.len() > 0
}

// readMessages reads messages until it cannot. An error is final: there is
// no way to find the next message behind a malformed one that could be trusted.
func (l *link) readMessages() error {
	for {
		if err := l.await(); err != nil {
			return err
		}
		if err := l.rd.Next(); err != nil {
			return l.readFailed(err)
		}
		var prefix [prefixLen]byte
		if n, err := io.ReadFull(l.rd, prefix[:]); err != nil {
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				return fmt.Errorf("%w: %d octets, a message has %d at least", oncrpc.ErrRecord, n, prefixLen)
			}
			return l.readFailed(err)
		}
		xid, t, err := oncrpc.ParsePrefix(prefix[:])
		if err != nil {
			return err
		}
		if t == oncrpc.MsgCall {
			err = l.readCall(&prefix)
		} else {
			err = l.readReply(xid, &prefix)
		}
		if err != nil {
			return l.readFailed(err)
		}
		if l.retiring.Load() && !l.occupied() {
			return errDraining
		}
	}
}

// read reads the present message, whose beginning is prefix, into memory of a. How
// long it is to become is believed when some of it has arrived. What a peer has
// begun and does not go on with may be taken from it, by the link's end.
func (l *link) read(prefix *[prefixLen]byte, a *fairness.Account) (*buffer, error) {
	left, _ := l.rd.Left()
	class, size := classOf(min(prefixLen+left, believed))
	if err := l.room(a, size, false); err != nil {
		return nil, err
	}
	b := newBuffer(a, min(prefixLen+left, believed), class, size)
	l.readProgress.Store(l.lastUsed.Load())
	defer l.readProgress.Store(0)
	n, mark := copy(b.b, prefix[:]), prefixLen
	for {
		left, last := l.rd.Left()
		if left == 0 && last {
			b.b = b.b[:n]
			return b, nil
		}
		if n == len(b.b) {
			size := n + left
			if n < believed {
				size = min(size, believed)
			}
			larger, err := l.grow(b, max(2*n, size))
			if err != nil {
				b.release()
				return nil, err
			}
			b = larger
		}
		k, err := l.rd.Read(b.b[n:])
		n += k
		if err != nil && err != io.EOF {
			b.release()
			return nil, err
		}
		if n-mark >= headway {
			mark = n
			l.noteProgress(&l.readProgress)
		}
	}
}

// grow returns memory of n octets with what b has, in place of it.
func (l *link) grow(b *buffer, n int) (*buffer, error) {
	a := b.owner
	class, size := classOf(n)
	if err := l.room(a, size-b.size, true); err != nil {
		return nil, err
	}
	larger := newBuffer(a, n, class, size)
	copy(larger.b, b.b)
	b.recycle()
	return larger, nil
}

// room takes n octets of a for the message being read. The time that takes is not
// the peer's.
func (l *link) room(a *fairness.Account, n int, grows bool) error {
	if a.TryAcquire(n, grows) {
		return nil
	}
	l.readProgress.Store(0)
	l.starving.Store(true)
	err := a.Acquire(l.ctx, n, grows)
	l.starving.Store(false)
	if err != nil {
		return err
	}
	l.noteProgress(&l.readProgress)
	return l.setReadDeadline(time.Now().Add(l.stall))
}

// noteProgress notes that a message goes on.
func (l *link) noteProgress(when *atomic.Int64) {
	now := time.Now().UnixNano()
	when.Store(now)
	l.lastUsed.Store(now)
}

// wrote notes that a long message is being taken.
func (l *link) wrote() { l.noteProgress(&l.writeProgress) }

// write writes one message. The context's end ends the wait for the line, and
// where the message has been begun the link, after a grace. The pieces are not
// looked at any more when write has returned.
func (l *link) write(ctx context.Context, pieces ...[]byte) error {
	select {
	case l.line <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
	defer func() { <-l.line }()
	now := time.Now()
	l.writeProgress.Store(now.UnixNano())
	defer l.writeProgress.Store(0)
	if err := l.nc.SetWriteDeadline(now.Add(l.stall)); err != nil {
		return l.writeFailed(err)
	}
	hurried := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(hurried)
		if l.ctx.Err() == nil { // otherwise hangUp says how long it may take
			l.nc.SetWriteDeadline(time.Now().Add(grace))
		}
	})
	err := l.wr.WriteRecord(pieces...)
	if err == nil {
		err = l.flush()
	}
	if !stop() {
		<-hurried // so that it does not set the deadline of the next write
	}
	if err != nil {
		return l.writeFailed(err)
	}
	return nil
}

// writeFailed ends the link because a write has failed, and returns why the link
// has ended, which may be another reason.
func (l *link) writeFailed(err error) error {
	l.close(err)
	return context.Cause(l.ctx)
}
