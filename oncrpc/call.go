// This file holds the header of call messages, and the prefix that calls and replies
// have in common (RFC 5531 §9).

package oncrpc

import "fmt"

// RPCVersion is the version of the RPC protocol (RFC 5531 §9, rpcvers).
const RPCVersion = 2

// A MsgType distinguishes calls from replies (msg_type).
type MsgType uint32

const (
	MsgCall  MsgType = 0
	MsgReply MsgType = 1
)

func (t MsgType) String() string {
	switch t {
	case MsgCall:
		return "CALL"
	case MsgReply:
		return "REPLY"
	}
	return fmt.Sprintf("msg_type %d", uint32(t))
}

// ParsePrefix reads the XID and the msg_type at the start of a message, eight octets.
// Where calls go in both directions, an XID has no meaning without the type (RFC 5667
// §5.1). An error is a [*DecodeError]: the message is too short, or of another type. The
// XID is valid if there are four octets.
func ParsePrefix(b []byte) (xid uint32, t MsgType, err error) {
	d := NewDecoder(b, "message")
	xid, t = decodePrefix(&d)
	return xid, t, d.Err()
}

func decodePrefix(d *Decoder) (xid uint32, t MsgType) {
	xid = d.Uint32()
	at := d.Pos()
	if t = MsgType(d.Uint32()); t > MsgReply {
		d.Fail(at, "%v, expected CALL (0) or REPLY (1)", t)
	}
	return xid, t
}

// minCallLen is the length of a call header with an empty credential and verifier.
const minCallLen = 40

// A Call is the header of a call message (RFC 5531 §9, rpc_msg with call_body).
//
//	 0  xid
//	 4  msg_type: CALL (0)
//	 8  rpcvers: 2
//	12  prog
//	16  vers
//	20  proc
//	24  cred: flavor, length of the body, body and its roundup
//	    verf: the same
//	    arguments
type Call struct {
	XID  uint32
	Prog uint32
	Vers uint32 // of the program
	Proc uint32
	Cred OpaqueAuth
	Verf OpaqueAuth
}

// Len is the header's length in octets: where the arguments begin.
func (c *Call) Len() int { return minCallLen - 16 + c.Cred.Len() + c.Verf.Len() }

// Encode appends the header to e.
func (c *Call) Encode(e *Encoder) {
	e.Uint32(c.XID)
	e.Uint32(uint32(MsgCall))
	e.Uint32(RPCVersion)
	e.Uint32(c.Prog)
	e.Uint32(c.Vers)
	e.Uint32(c.Proc)
	c.Cred.Encode(e)
	c.Verf.Encode(e)
}

// Append appends the header to dst. Its only error is of the kind [ErrLimit], for a
// credential or verifier of more than [MaxAuthBody] octets; it then returns dst
// unchanged.
func (c *Call) Append(dst []byte) ([]byte, error) {
	e := NewEncoder(dst)
	c.Encode(&e)
	return e.Finish()
}

// Parse reads the header at the start of the message b and returns where in b the
// arguments begin. The bodies of Cred and Verf are part of b.
//
// There are two types of error. For a [*RejectError] the server has to reply, and c.XID
// is set: RPC_MISMATCH, or AUTH_BADCRED or AUTH_BADVERF for a body of more than
// [MaxAuthBody] octets. A [*DecodeError] says that b is not a call, or that its header is
// incomplete.
func (c *Call) Parse(b []byte) (args int, err error) {
	d := NewDecoder(b, "call")
	*c = Call{}
	var t MsgType
	c.XID, t = decodePrefix(&d)
	if t != MsgCall {
		d.Fail(4, "%v, expected CALL (0)", t)
	}
	// RFC 5531 §9: the layout of other versions is unknown beyond here.
	if vers := d.Uint32(); d.Err() == nil && vers != RPCVersion {
		cause := &DecodeError{What: "call", Offset: 8, Kind: ErrValue, Detail: fmt.Sprintf("RPC version %d, expected %d", vers, RPCVersion)}
		return 0, &RejectError{Stat: RPCMismatch, Low: RPCVersion, High: RPCVersion, Err: cause}
	}
	c.Prog = d.Uint32()
	c.Vers = d.Uint32()
	c.Proc = d.Uint32()
	if err := c.auth(&d, &c.Cred, AuthBadCred); err != nil {
		return 0, err
	}
	if err := c.auth(&d, &c.Verf, AuthBadVerf); err != nil {
		return 0, err
	}
	return d.Pos(), nil
}

// auth decodes a credential or verifier. If it is too long the error has the auth_stat
// stat.
func (c *Call) auth(d *Decoder, a *OpaqueAuth, stat AuthStat) error {
	a.Decode(d)
	if d.err == nil {
		return nil
	}
	if d.err.Kind == ErrLimit {
		return &RejectError{Stat: AuthError, Auth: stat, Err: d.err}
	}
	return d.err
}
