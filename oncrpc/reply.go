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

// A Reply is the header of a reply message (RFC 5531 §9, rpc_msg with reply_body).
// Stat, Accept and Reject say which other fields are used; those not used are zero.
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

// ReplyTo returns the reply for the result err of a call: success for nil, the status of
// an [*AcceptError] or [*RejectError], GARBAGE_ARGS for a [*DecodeError], and
// SYSTEM_ERR for any other. The caller sets the verifier.
func ReplyTo(xid uint32, err error) Reply {
	r := Reply{XID: xid}
	if err != nil {
		r.setError(err)
	}
	return r
}

// setError sets the fields for err. It is a function of its own because errors.As
// makes its targets escape to the heap, and a success allocates nothing.
func (r *Reply) setError(err error) {
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
		case reject.Auth == AuthOK: // not a reason to deny a call
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

// Err returns nil for success, and otherwise an [*AcceptError] or a [*RejectError].
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
			e.Fail("%v, expected RPC_MISMATCH (0) or AUTH_ERROR (1)", r.Reject)
		}
	default:
		e.Fail("%v, expected MSG_ACCEPTED (0) or MSG_DENIED (1)", r.Stat)
	}
}

// Append appends the header to dst. It fails with the kind [ErrLimit] for a verifier of
// more than [MaxAuthBody] octets, and [ErrValue] for an unknown Stat or Reject; it then
// returns dst unchanged.
func (r *Reply) Append(dst []byte) ([]byte, error) {
	e := NewEncoder(dst)
	r.Encode(&e)
	return e.Finish()
}

// Parse reads the header at the start of the message b and returns where in b the
// results begin or, for an unsuccessful call, the header ends. The body of Verf is part
// of b. An error is a [*DecodeError]: b is not a reply, or its header is incomplete.
// [Reply.Err] returns what the reply says.
//
// An accept_stat that RFC 5531 does not define is accepted, with no data, by the
// default arm of its union. The unions of reply_stat and reject_stat have no default arm.
func (r *Reply) Parse(b []byte) (results int, err error) {
	d := NewDecoder(b, "reply")
	*r = Reply{}
	var t MsgType
	r.XID, t = decodePrefix(&d)
	if t != MsgReply {
		d.Fail(4, "%v, expected REPLY (1)", t)
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
			d.Fail(12, "%v, expected RPC_MISMATCH (0) or AUTH_ERROR (1)", r.Reject)
		}
	default:
		d.Fail(8, "%v, expected MSG_ACCEPTED (0) or MSG_DENIED (1)", r.Stat)
	}
	if err := d.Err(); err != nil {
		return 0, err
	}
	return d.Pos(), nil
}
