// The calls of this side that wait for their replies on a link.

package rpctcp

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/weft-rdma/weft/oncrpc"
)

// A waiting call is one that has been sent, or is about to be.
type waiting struct {
	// alloc, if not nil, is where the reply is to go: memory of the caller's.
	alloc func(n int) []byte
	// done gets the answer, once. There is always room for it.
	done chan answer
	// left is set, under the table's lock, when nobody waits any more; what
	// comes is to be released then.
	abandoned bool
}

// An answer is a reply or the reason why there will be none.
type answer struct {
	message []byte
	buf     *buffer // what message is in, if the transport's
	err     error   // the link's end
}

// A table is the calls under way over a link. Its zero value is empty.
type table struct {
	mu    sync.Mutex
	calls map[uint32]*waiting
	ended bool
	err   error // why it ended
}

func (t *table) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.calls)
}

// add adds a call. claim or abandon removes it.
func (t *table) add(xid uint32, w *waiting) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return &lostError{t.err}
	}
	if t.calls[xid] != nil {
		return oncrpc.ErrXIDInUse
	}
	if t.calls == nil {
		t.calls = make(map[uint32]*waiting)
	}
	t.calls[xid] = w
	return nil
}

// claim removes the call whose reply has begun to arrive, for which answer has to
// be called then. It returns nil if there is none.
func (t *table) claim(xid uint32) *waiting {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.calls[xid]
	delete(t.calls, xid)
	return w
}

// abandon removes a call whose caller does not wait any more. It reports false if
// the reply has been claimed.
func (t *table) abandon(xid uint32, w *waiting) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.abandoned = true
	if t.calls[xid] != w {
		return false
	}
	delete(t.calls, xid)
	return true
}

// answer gives a claimed call its answer.
func (t *table) answer(w *waiting, a answer) {
	t.mu.Lock()
	left := w.abandoned
	w.done <- a
	t.mu.Unlock()
	if left && a.buf != nil {
		a.buf.release()
	}
}

// fail answers all calls by the link's end, and those to come. It returns how many
// calls there were.
func (t *table) fail(err error) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil || err == io.EOF {
		err = errClosedByPeer
	}
	t.ended, t.err = true, err
	n := len(t.calls)
	for xid, w := range t.calls {
		delete(t.calls, xid)
		w.done <- answer{err: &lostError{err}}
	}
	return n
}

// errClosedByPeer is why a link ended that the peer has closed between messages.
var errClosedByPeer = errors.New("closed by the peer")

// A lostError says that the link ended under a call: whether that was executed
// is not known.
type lostError struct{ cause error }

func (e *lostError) Error() string { return fmt.Sprintf("connection lost: %v", e.cause) }
func (e *lostError) Unwrap() error { return e.cause }
