// The faults of incoming messages, each with the code that a Terminate message
// reports (RFC 5040 §7.2, RFC 7306 §8.2).

package rdmap

import (
	"errors"
	"fmt"

	"github.com/weft-rdma/weft/ddp"
)

// ErrUnfinished: the peer closed the stream in the middle of a message.
var ErrUnfinished = NewError(RemoteOperation, CodeStream, "the peer closed the stream in the middle of a message")

// ErrNoORD is what an RDMA Read or atomic fails with when ORD is 0.
var ErrNoORD = errors.New("rdmap: no RDMA Reads or atomics may be outstanding (ORD 0)")

var (
	// errEnded ends the reception of a stream that this side terminated.
	errEnded = errors.New("rdmap: the stream has been terminated")
	// errClosing: the peer sends on although this side has closed its half,
	// which both may do only when nothing is left to be said (Verbs §6.2.5).
	errClosing = NewError(RemoteOperation, CodeStream, "a message arrived while the stream was closing")
)

func errVersion(got, want uint8) error {
	return NewError(RemoteOperation, CodeVersion, "the message says version %d, the stream is version %d", got, want)
}

func errOpcode(op Opcode, tagged bool, qn uint32) error {
	where := "in a tagged segment"
	if !tagged {
		where = fmt.Sprintf("on queue %d", qn)
	}
	return NewError(RemoteOperation, CodeOpcode, "%s %s", op, where)
}

func errUnasked(op Opcode) error {
	return NewError(RemoteOperation, CodeOpcode, "%s that nothing asked for", op)
}

// errNotLast: a message went on, or another began, where its last segment was
// due (Verbs §8.3.3: No 'L' bit when expected).
func errNotLast(op Opcode) error {
	return NewError(RemoteOperation, CodeStream, "%s without a last segment", op)
}

func errShortResponse(got uint64, want uint32) error {
	return NewError(RemoteOperation, CodeStream, "RDMA Read Response of %d octets to a request for %d", got, want)
}

// errInvalidate: whatever keeps an STag from being invalidated but its
// non-existence and missing rights has code 9 (RFC 5040 §5.3, Verbs §8.3.2).
func errInvalidate(stag uint32, f ddp.Fault) *Error {
	e := NewProtectionError(f, "invalidation of STag 0x%08x: %s", stag, f.Reason())
	if f != ddp.FaultSTag && f != ddp.FaultAccess {
		e.Code = CodeCannotInvalidate
	}
	return e
}

// errTooManyRequests: the peer has more Reads and atomics outstanding than was
// agreed, and so found no buffer on queue 1 (Verbs §8.3.3: IRRQ, too many RDMA
// Reads in progress).
func errTooManyRequests(ird int) error {
	return &refusal{etype: ddp.UntaggedBuffer, code: ddp.CodeMSNRange,
		detail: fmt.Sprintf("more than the agreed %d RDMA Reads and atomics at a time (IRD)", ird)}
}

// errReadDisabled: Verbs §8.3.3, RDMA Read Request received while the queue
// pair does not allow them.
func errReadDisabled() error {
	return &refusal{etype: ddp.UntaggedBuffer, code: ddp.CodeInvalidQN, detail: "RDMA Reads are not enabled on this stream"}
}

// A refusal is a decision of RDMAP that is reported with a code of DDP, because the
// buffers of queue 1 are RDMAP's.
type refusal struct {
	etype, code uint8
	detail      string
}

func (e *refusal) TerminateCode() (layer, etype, code uint8) { return LayerDDP, e.etype, e.code }

func (e *refusal) Error() string {
	return fmt.Sprintf("rdmap: %s: %s", numbered(name(LayerDDP, e.etype, e.code), LayerDDP, e.etype, e.code), e.detail)
}
