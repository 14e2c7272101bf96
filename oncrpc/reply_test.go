package oncrpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"
)

// replies has a reply of each kind.
var replies = []struct {
	name  string
	reply Reply
	wire  string
	text  string // what Err prints, empty for success
}{
	{"success", Reply{XID: 0x5a5a0001}, `
		5a5a0001 00000001 00000000   xid REPLY MSG_ACCEPTED
		00000000 00000000 00000000   AUTH_NONE verf, SUCCESS`,
		""},
	{"success with a verifier", Reply{XID: 2, Verf: OpaqueAuth{FlavorGSS, []byte{1, 2, 3, 4, 5}}}, `
		00000002 00000001 00000000
		00000006 00000005 0102030405 000000
		00000000`,
		""},
	{"PROG_UNAVAIL", Reply{XID: 2, Accept: ProgUnavail}, "00000002 00000001 00000000 00000000 00000000 00000001",
		"oncrpc: the server does not have this program (PROG_UNAVAIL)"},
	{"PROG_MISMATCH", Reply{XID: 2, Accept: ProgMismatch, Low: 3, High: 4}, `
		00000002 00000001 00000000 00000000 00000000 00000002
		00000003 00000004   low high`,
		"oncrpc: the server has versions 3 to 4 of this program (PROG_MISMATCH)"},
	{"PROC_UNAVAIL", Reply{XID: 2, Accept: ProcUnavail}, "00000002 00000001 00000000 00000000 00000000 00000003",
		"oncrpc: the program does not have this procedure (PROC_UNAVAIL)"},
	{"GARBAGE_ARGS", Reply{XID: 2, Accept: GarbageArgs}, "00000002 00000001 00000000 00000000 00000000 00000004",
		"oncrpc: the server could not decode the arguments (GARBAGE_ARGS)"},
	{"SYSTEM_ERR", Reply{XID: 2, Accept: SystemErr}, "00000002 00000001 00000000 00000000 00000000 00000005",
		"oncrpc: the server failed to execute the call (SYSTEM_ERR)"},
	{"unknown accept_stat", Reply{XID: 2, Accept: 6}, "00000002 00000001 00000000 00000000 00000000 00000006",
		"oncrpc: the server did not execute the call (accept_stat 6)"},
	{"RPC_MISMATCH", Reply{XID: 2, Stat: MsgDenied, Reject: RPCMismatch, Low: 2, High: 2}, `
		00000002 00000001 00000001   xid REPLY MSG_DENIED
		00000000 00000002 00000002   RPC_MISMATCH low high`,
		"oncrpc: the server speaks version 2 of RPC (RPC_MISMATCH)"},
	{"AUTH_ERROR", Reply{XID: 2, Stat: MsgDenied, Reject: AuthError, Auth: AuthTooWeak}, `
		00000002 00000001 00000001
		00000001 00000005            AUTH_ERROR AUTH_TOOWEAK`,
		"oncrpc: the server refused the caller: the authentication flavor is too weak, or the server does not allow this client (AUTH_TOOWEAK)"},
	{"unknown auth_stat", Reply{XID: 2, Stat: MsgDenied, Reject: AuthError, Auth: 99}, "00000002 00000001 00000001 00000001 00000063",
		"oncrpc: the server refused the caller: reason unknown (auth_stat 99)"},
}

// Claims: P-2-1
func TestReplyHasTheOctetsOfTheSpecification(t *testing.T) {
	for _, c := range replies {
		t.Run(c.name, func(t *testing.T) {
			want := annotated(t, c.wire)
			got, err := c.reply.Append([]byte("before"))
			if err != nil || !bytes.Equal(got, append([]byte("before"), want...)) || c.reply.Len() != len(want) {
				t.Errorf("Append: % x, %v, Len %d\nwant % x", got, err, c.reply.Len(), want)
			}
			var r Reply
			results, err := r.Parse(append(want, "results."...))
			if len(r.Verf.Body) == 0 {
				r.Verf.Body = nil
			}
			if err != nil || results != len(want) || !reflect.DeepEqual(r, c.reply) {
				t.Errorf("Parse: %+v, results at %d, %v", r, results, err)
			}
		})
	}
}

func TestWhatAReplySaysIsAnErrorInWordsAndBack(t *testing.T) {
	for _, c := range replies {
		t.Run(c.name, func(t *testing.T) {
			err := c.reply.Err()
			if c.text == "" && err != nil || c.text != "" && (err == nil || err.Error() != c.text) {
				t.Errorf("got  %v\nwant %s", err, c.text)
			}
			back := ReplyTo(c.reply.XID, err)
			back.Verf = c.reply.Verf
			if !reflect.DeepEqual(back, c.reply) {
				t.Errorf("ReplyTo: %+v, want %+v", back, c.reply)
			}
		})
	}
}

func TestAnyErrorOfAServerHasAReply(t *testing.T) {
	decode := NewDecoder(nil, "arguments")
	decode.Uint32()
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"arguments that cannot be decoded": {fmt.Errorf("WRITE: %w", decode.Err()), &AcceptError{Stat: GarbageArgs}},
		"a failure of the server's":        {io.ErrClosedPipe, &AcceptError{Stat: SystemErr}},
		"a status, wrapped":                {fmt.Errorf("NFS: %w", &AcceptError{Stat: ProcUnavail}), &AcceptError{Stat: ProcUnavail}},
		"a status with its cause":          {&AcceptError{Stat: SystemErr, Err: decode.Err()}, &AcceptError{Stat: SystemErr}},
		"a denial with its cause":          {&RejectError{Stat: AuthError, Auth: AuthBadCred, Err: decode.Err()}, &RejectError{Stat: AuthError, Auth: AuthBadCred}},
		"success that is an error":         {&AcceptError{Stat: Success}, &AcceptError{Stat: SystemErr}},
		"a denial that says OK":            {&RejectError{Stat: AuthError}, &RejectError{Stat: AuthError, Auth: AuthFailed}},
	} {
		r := ReplyTo(7, c.err)
		if got := r.Err(); r.XID != 7 || !errors.Is(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		if _, err := r.Append(nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAReplyCutAnywhereIsNoReply(t *testing.T) {
	for _, c := range replies {
		wire := annotated(t, c.wire)
		for n := range wire {
			var r Reply
			if _, err := r.Parse(wire[:n]); !errors.Is(err, ErrShort) {
				t.Errorf("%s, %d octets: %v", c.name, n, err)
			}
		}
	}
}

func TestAReplyThatDoesNotExistIsNeitherTakenNorSent(t *testing.T) {
	for _, c := range []struct {
		name   string
		wire   string
		kind   error
		offset int
	}{
		{"a call", nullCall, ErrValue, 4},
		{"reply_stat 2", "00000002 00000001 00000002 00000000 00000000 00000000", ErrValue, 8},
		{"reject_stat 2", "00000002 00000001 00000001 00000002 00000000 00000000", ErrValue, 12},
		{"verifier of 401", "00000002 00000001 00000000 00000000 00000191 00000000", ErrLimit, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Reply
			_, err := r.Parse(annotated(t, c.wire))
			wantDecodeError(t, err, c.kind, c.offset)
		})
	}
	for _, r := range []Reply{{Stat: 2}, {Stat: MsgDenied, Reject: 2}} {
		if b, err := r.Append([]byte("before")); !errors.Is(err, ErrValue) || string(b) != "before" {
			t.Errorf("%+v: %q, %v", r, b, err)
		}
	}
	r := Reply{Verf: OpaqueAuth{Body: make([]byte, 401)}}
	if b, err := r.Append([]byte("before")); !errors.Is(err, ErrLimit) || string(b) != "before" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestErrorsIsTellsStatusesApart(t *testing.T) {
	accept := fmt.Errorf("x: %w", &AcceptError{Stat: ProgMismatch, Low: 2, High: 3, Err: io.EOF})
	reject := fmt.Errorf("x: %w", &RejectError{Stat: AuthError, Auth: AuthBadVerf, Err: io.EOF})
	mismatch := fmt.Errorf("x: %w", &RejectError{Stat: RPCMismatch, Low: 2, High: 3})
	for _, c := range []struct {
		err, target error
		want        bool
	}{
		{accept, &AcceptError{Stat: ProgMismatch}, true},
		{accept, &AcceptError{Stat: ProgUnavail}, false},
		{accept, &AcceptError{Stat: ProgMismatch, Low: 2, High: 4}, false},
		{accept, &RejectError{Stat: AuthError}, false},
		{accept, io.EOF, true},
		{reject, &RejectError{Stat: AuthError}, true},
		{reject, &RejectError{Stat: AuthError, Auth: AuthBadVerf}, true},
		{reject, &RejectError{Stat: AuthError, Auth: AuthBadCred}, false},
		{reject, &RejectError{Stat: RPCMismatch}, false},
		{reject, io.EOF, true},
		{mismatch, &RejectError{Stat: RPCMismatch}, true},
		{mismatch, &RejectError{Stat: AuthError}, false},
	} {
		if got := errors.Is(c.err, c.target); got != c.want {
			t.Errorf("%v is %+v: %v", c.err, c.target, got)
		}
	}
}

func TestStatusesHaveTheirNames(t *testing.T) {
	for i, want := range []string{"AUTH_OK", "AUTH_BADCRED", "AUTH_REJECTEDCRED", "AUTH_BADVERF", "AUTH_REJECTEDVERF", "AUTH_TOOWEAK", "AUTH_INVALIDRESP",
		"AUTH_FAILED", "AUTH_KERB_GENERIC", "AUTH_TIMEEXPIRE", "AUTH_TKT_FILE", "AUTH_DECODE", "AUTH_NET_ADDR", "RPCSEC_GSS_CREDPROBLEM", "RPCSEC_GSS_CTXPROBLEM"} {
		if got := AuthStat(i).String(); got != want || AuthStat(i).words() == "" {
			t.Errorf("auth_stat %d is %q, want %q", i, got, want)
		}
	}
	for want, got := range map[string]fmt.Stringer{
		"SUCCESS": Success, "SYSTEM_ERR": SystemErr, "accept_stat 6": AcceptStat(6),
		"RPC_MISMATCH": RPCMismatch, "AUTH_ERROR": AuthError, "reject_stat 2": RejectStat(2),
		"MSG_ACCEPTED": MsgAccepted, "MSG_DENIED": MsgDenied, "reply_stat 2": ReplyStat(2), "auth_stat 15": AuthStat(15),
	} {
		if got.String() != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := (&RejectError{Stat: 2, Err: io.EOF}).Error(); got != "oncrpc: the server denied the call (reject_stat 2): EOF" {
		t.Error(got)
	}
}
