// The calls of this side on a link: how they are sent, and how their replies are received.

package rpctcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/oncrpc"
)

// readReply reads the present message, a reply. A reply that no call waits for is
// skipped.
func (l *link) readReply(xid uint32, prefix *[prefixLen]byte) error {
	w := l.mine.claim(xid)
	if w == nil {
		return nil
	}
	a := l.readAnswer(prefix, w.alloc)
	if a.err != nil {
		if f := (*pages.Fault)(nil); !errors.As(a.err, &f) { // else it is the caller's alone
			a.err = &lostError{l.readFailed(a.err)}
		}
		l.lost++
	}
	l.mine.answer(w, a)
	return a.err
}

// readAnswer reads a reply, into the caller's memory if there is any.
func (l *link) readAnswer(prefix *[prefixLen]byte, alloc func(int) []byte) answer {
	if left, last := l.rd.Left(); alloc != nil && last {
		message := alloc(prefixLen + left)[:prefixLen+left]
		return answer{message: message, err: l.readTo(message, prefix)}
	}
	buf, err := l.read(prefix, l.own)
	if err != nil {
		return answer{err: err}
	}
	if alloc == nil {
		return answer{message: buf.b, buf: buf}
	}
	defer buf.release()
	message := alloc(len(buf.b))[:len(buf.b)]
	_, err = pages.Scatter([][]byte{message}, buf.b)
	return answer{message: message, err: err}
}

// readTo reads a reply into memory of the caller's.
func (l *link) readTo(message []byte, prefix *[prefixLen]byte) (err error) {
	defer pages.Catch(&err, [][]byte{message}, pages.Trap())
	copy(message, prefix[:])
	if _, err = io.ReadFull(l.rd, message[prefixLen:]); err == nil {
		return nil
	}
	if _, bad := pages.Writable(message); bad != nil { // the system could not put it there
		return bad
	}
	return err
}

// exchange sends a call and waits for its answer. If there is none within again
// it sends the call once more, and so on; zero is never. An error is the
// context's, a *lostError, or that the caller's memory cannot take the reply.
func (l *link) exchange(ctx context.Context, xid uint32, w *waiting, again time.Duration, pieces [][]byte) (answer, error) {
	if err := l.mine.add(xid, w); err != nil {
		return answer{}, err
	}
	var timeout <-chan time.Time
	if again > 0 {
		ticker := time.NewTicker(again)
		defer ticker.Stop()
		timeout = ticker.C
	}
	for {
		if err := l.write(ctx, pieces...); err != nil && ctx.Err() == nil {
			// The link has ended: the answer is on its way, or that there is none.
			a := <-w.done
			return a, a.err
		}
		select {
		case a := <-w.done:
			return a, a.err
		case <-timeout:
		case <-ctx.Done():
			return l.abandon(ctx, xid, w)
		}
	}
}

// abandon is the end of a call whose context has ended. Memory of the caller's
// into which the reply is being read is waited for.
func (l *link) abandon(ctx context.Context, xid uint32, w *waiting) (answer, error) {
	if !l.mine.abandon(xid, w) && w.alloc != nil {
		limit := time.AfterFunc(grace, func() { l.close(ctx.Err()) })
		defer limit.Stop()
		a := <-w.done
		return a, a.err
	}
	select {
	case a := <-w.done:
		return a, a.err // just in time
	default:
		return answer{}, ctx.Err()
	}
}

// reply makes of an answer what [oncrpc.Caller] promises.
func (a answer) reply(forward bool) (*oncrpc.ClientReply, error) {
	r := &oncrpc.ClientReply{Message: a.message}
	if a.buf != nil {
		r.Free = a.buf.release
	}
	results, err := r.Parse(a.message)
	if err != nil {
		err = fmt.Errorf("rpctcp: the reply cannot be read: %w", err)
	} else if !forward {
		err = r.Err()
	}
	if err != nil {
		r.Release()
		return nil, err
	}
	r.Results = a.message[results:]
	return r, nil
}

// message returns the call with its XID as a list of pieces.
func message(c *oncrpc.ClientCall, xid uint32) ([][]byte, error) {
	header := c.Call
	header.XID = xid
	b, err := header.Append(make([]byte, 0, header.Len()))
	if err != nil {
		return nil, err
	}
	return append([][]byte{b}, c.Args...), nil
}

// A back calls the peer's programs over the link that the peer has made. It ends
// with it.
type back link

// backXIDs are those of all backs: any that is not in use does.
var backXIDs atomic.Uint32

// Call makes a call. With the connection lost, so is the call.
func (b *back) Call(ctx context.Context, c *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	l := (*link)(b)
	for {
		xid := c.XID
		if !c.Forward {
			xid = backXIDs.Add(1)
		}
		pieces, err := message(c, xid)
		if err != nil {
			return nil, err
		}
		w := &waiting{alloc: c.Alloc, done: make(chan answer, 1)}
		a, err := l.exchange(ctx, xid, w, 0, pieces)
		if errors.Is(err, oncrpc.ErrXIDInUse) && !c.Forward {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("rpctcp: calling back %v: %w", l.nc.RemoteAddr(), err)
		}
		return a.reply(c.Forward)
	}
}

// Close does nothing: the connection is not the caller's.
func (b *back) Close() error { return nil }
