// This file holds the header of reply messages (RFC 5531 §9).

package oncrpc

import (
	"errors"
	"fmt"
)

// A ReplyStat says whether a call was accepted (reply_stat).
type ReplyStat uint32

const (
	MsgAccepted ReplyStat = 0
	MsgDenied   ReplyStat = 1
)

func (s ReplyStat) String() string {
	switch s {
	case MsgAccepted:
		return "MSG_ACCEPTED"
	case MsgDenied:
		return "MSG_DENIED"
	}
	return fmt.Sprintf("reply_stat %d", uint32(s))
}

// A Reply is the header of a reply message (RFC 5531 §9, rpc_msg with
// reply_body). Which fields there are depends on Stat, Accept and Reject; the
// others are zero.
//
//	 0  xid: the call's
//	 4  msg_type: REPLY (1)
//	 8  reply_stat
//	    MSG_ACCEPTED                          MSG_DENIED
//	12  verf: flavor, length, body, roundup   12  reject_stat
//	    accept_stat                           16  RPC_MISMATCH: low, high
//	    SUCCESS: results                          AUTH_ERROR: auth_stat
//	    PROG_MISMATCH: low, high
type Reply struct {
	XID  uint32
	Stat ReplyStat

	Verf   OpaqueAuth // of MsgAccepted
	Accept AcceptStat

	Reject RejectStat // of MsgDenied
	Auth   AuthStat   // of AuthError

	Low, High uint32 // of ProgMismatch and of RPCMismatch
}

// ReplyTo is the reply that tells the caller err: success for nil, what an
// [*AcceptError] or [*RejectError] says, GARBAGE_ARGS for a [*DecodeError], and
// SYSTEM_ERR for any other. The verifier is the caller's to set.
func ReplyTo(xid uint32, err error) Reply {
	r := Reply{XID: xid}
	if err != nil {
		r.tell(err)
	}
	return r
}

// tell sets the fields that say err. It is apart from ReplyTo because errors.As
// costs allocations, and success shall not.
func (r *Reply) tell(err error) {
	var (
		accept *AcceptError
		reject *RejectError
		decode *DecodeError
	)
	switch {
	case errors.As(err, &accept) && accept.Stat != Success:
		r.Accept = accept.Stat
		if accept.Stat == ProgMismatch {
			r.Low, r.High = accept.Low, accept.High
		}
	case errors.As(err, &reject):
		r.Stat, r.Reject = MsgDenied, reject.Stat
		switch {
		case reject.Stat == RPCMismatch:
			r.Low, r.High = reject.Low, reject.High
		case reject.Auth == AuthOK: // who denies does not say OK
			r.Auth = AuthFailed
		default:
			r.Auth = reject.Auth
		}
	case errors.As(err, &decode):
		r.Accept = GarbageArgs
	default:
		r.Accept = SystemErr
	}
}

// Err is what the reply says: nil for success, with results, else an
// [*AcceptError] or a [*RejectError].
func (r *Reply) Err() error {
	switch {
	case r.Stat == MsgDenied:
		return &RejectError{Stat: r.Reject, Low: r.Low, High: r.High, Auth: r.Auth}
	case r.Accept != Success:
		return &AcceptError{Stat: r.Accept, Low: r.Low, High: r.High}
	}
	return nil
}

// Len is the header's length in octets: where the results begin.
func (r *Reply) Len() int {
	switch {
	case r.Stat == MsgDenied && r.Reject == RPCMismatch:
		return 24
	case r.Stat == MsgDenied:
		return 20
	case r.Accept == ProgMismatch:
		return 24 + r.Verf.Len()
	}
	return 16 + r.Verf.Len()
}

// Encode appends the header to e.
func (r *Reply) Encode(e *Encoder) {
	e.Uint32(r.XID)
	e.Uint32(uint32(MsgReply))
	e.Uint32(uint32(r.Stat))
	switch r.Stat {
	case MsgAccepted:
		r.Verf.Encode(e)
		e.Uint32(uint32(r.Accept))
		if r.Accept == ProgMismatch {
			e.Uint32(r.Low)
			e.Uint32(r.High)
		}
	case MsgDenied:
		e.Uint32(uint32(r.Reject))
		switch r.Reject {
		case RPCMismatch:
			e.Uint32(r.Low)
			e.Uint32(r.High)
		case AuthError:
			e.Uint32(uint32(r.Auth))
		default:
			e.Fail("%v, want RPC_MISMATCH (0) or AUTH_ERROR (1)", r.Reject)
		}
	default:
		e.Fail("%v, want MSG_ACCEPTED (0) or MSG_DENIED (1)", r.Stat)
	}
}

// Append appends the header to dst. An error is of the kind [ErrLimit], for a
// verifier with more than [MaxAuthBody] octets, or [ErrValue], for a Stat or
// Reject that does not exist; dst is then returned as it was.
func (r *Reply) Append(dst []byte) ([]byte, error) {
	e := NewEncoder(dst)
	r.Encode(&e)
	return e.Finish()
}

// Parse reads the header at the start of the message b and says at which octet
// the results begin, or, without success, the header ends. The body of Verf is
// part of b. An error is a [*DecodeError]: b is not a reply, or not a whole
// header of one. What a reply says is for [Reply.Err].
//
// An accept_stat that RFC 5531 does not know is void and passes, by its default
// arm; a reply_stat or reject_stat has none.
func (r *Reply) Parse(b []byte) (results int, err error) {
	d := NewDecoder(b, "reply")
	*r = Reply{}
	var t MsgType
	r.XID, t = decodePrefix(&d)
	if t != MsgReply {
		d.Fail(4, "%v, want REPLY (1)", t)
	}
	r.Stat = ReplyStat(d.Uint32())
	switch r.Stat {
	case MsgAccepted:
		r.Verf.Decode(&d)
		r.Accept = AcceptStat(d.Uint32())
		if r.Accept == ProgMismatch {
			r.Low, r.High = d.Uint32(), d.Uint32()
		}
	case MsgDenied:
		r.Reject = RejectStat(d.Uint32())
		switch r.Reject {
		case RPCMismatch:
			r.Low, r.High = d.Uint32(), d.Uint32()
		case AuthError:
			r.Auth = AuthStat(d.Uint32())
		default:
			d.Fail(12, "%v, want RPC_MISMATCH (0) or AUTH_ERROR (1)", r.Reject)
		}
	default:
		d.Fail(8, "%v, want MSG_ACCEPTED (0) or MSG_DENIED (1)", r.Stat)
	}
	if err := d.Err(); err != nil {
		return 0, err
	}
	return d.Pos(), nil
}
