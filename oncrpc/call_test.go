package oncrpc

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"
)

// nullCall is a NULL call of NFSv3; writeCall is the header of a WRITE with AUTH_SYS, and its
// first argument.
const (
	nullCall = `
	5a5a0001 00000000 00000002   xid CALL rpcvers
	000186a3 00000003 00000000   100003 v3 proc 0
	00000000 00000000            AUTH_NONE cred
	00000000 00000000            AUTH_NONE verf`
	writeCall = `
	5a5a0002 00000000 00000002 000186a3 00000003 00000007
	00000001 00000024            AUTH_SYS, 36 octets
	01020304 00000007 6b727970746f6e 00 000003e8 00000064 00000002 00000004 0000001b
	00000000 00000000
	00000020                     length of the file handle`
)

// Claims: P-2-1
func TestCallHasTheOctetsOfTheSpecification(t *testing.T) {
	for _, c := range []struct {
		name string
		call Call
		wire string
		args int
	}{
		{"NULL", Call{XID: 0x5a5a0001, Prog: 100003, Vers: 3}, nullCall, 40},
		{"WRITE", Call{0x5a5a0002, 100003, 3, 7, OpaqueAuth{FlavorSys, annotated(t, authSysWire)}, OpaqueAuth{}}, writeCall, 76},
	} {
		t.Run(c.name, func(t *testing.T) {
			wire := annotated(t, c.wire)
			header := wire[:c.args]
			got, err := c.call.Append([]byte("before"))
			if err != nil || !bytes.Equal(got, append([]byte("before"), header...)) || c.call.Len() != c.args {
				t.Errorf("Append: % x, %v, Len %d\nwant % x", got, err, c.call.Len(), header)
			}
			var call Call
			args, err := call.Parse(wire)
			if err != nil || args != c.args || call.Len() != args {
				t.Errorf("Parse: arguments at %d, %v, want %d", args, err, c.args)
			}
			if again, err := call.Append(nil); err != nil || !bytes.Equal(again, header) {
				t.Errorf("parsed and appended: % x, %v\nwant % x", again, err, header)
			}
			if call.XID != c.call.XID || call.Prog != 100003 || call.Vers != 3 || call.Proc != c.call.Proc || call.Cred.Flavor != c.call.Cred.Flavor {
				t.Errorf("Parse: %+v", call)
			}
		})
	}
}

func TestTheBodiesOfACallAreNotCopied(t *testing.T) {
	wire := annotated(t, writeCall)
	var call Call
	if _, err := call.Parse(wire); err != nil {
		t.Fatal(err)
	}
	if &call.Cred.Body[0] != &wire[32] {
		t.Error("the credential was copied")
	}
}

func TestACallCutAnywhereIsNoCall(t *testing.T) {
	wire := annotated(t, writeCall)[:76]
	for n := range wire {
		call := Call{XID: 9}
		_, err := call.Parse(wire[:n])
		var decode *DecodeError
		if !errors.As(err, &decode) || !errors.Is(err, ErrShort) {
			t.Errorf("%d octets: %v", n, err)
		}
		if want := uint32(0x5a5a0002); n >= 4 && call.XID != want {
			t.Errorf("%d octets: XID %#x, want %#x", n, call.XID, want)
		}
	}
}

func TestACallThatCannotBeTakenIsDroppedOrDenied(t *testing.T) {
	good := annotated(t, nullCall)
	with := func(offset int, words string) []byte {
		b := slices.Clone(good)
		copy(b[offset:], unhex(t, words))
		return append(b, make([]byte, 500)...)
	}
	for _, c := range []struct {
		name   string
		wire   []byte
		deny   *RejectError // nil: no answer
		kind   error
		offset int
	}{
		{"a reply", with(4, "00000001"), nil, ErrValue, 4},
		{"msg_type 2", with(4, "00000002"), nil, ErrValue, 4},
		{"version 3", with(8, "00000003"), &RejectError{Stat: RPCMismatch}, ErrValue, 8},
		{"version 1, and no more of it", with(8, "00000001")[:12], &RejectError{Stat: RPCMismatch}, ErrValue, 8},
		{"credential of 401", with(28, "00000191"), &RejectError{Stat: AuthError, Auth: AuthBadCred}, ErrLimit, 28},
		{"verifier of 401", with(36, "00000191"), &RejectError{Stat: AuthError, Auth: AuthBadVerf}, ErrLimit, 36},
	} {
		t.Run(c.name, func(t *testing.T) {
			var call Call
			_, err := call.Parse(c.wire)
			wantDecodeError(t, err, c.kind, c.offset)
			var reject *RejectError
			if errors.As(err, &reject) != (c.deny != nil) || c.deny != nil && !errors.Is(err, c.deny) {
				t.Errorf("got %v, want %v", err, c.deny)
			}
			if call.XID != 0x5a5a0001 {
				t.Errorf("XID %#x: it cannot be answered", call.XID)
			}
			if reject != nil && reject.Stat == RPCMismatch && (reject.Low != 2 || reject.High != 2) {
				t.Errorf("versions %d to %d", reject.Low, reject.High)
			}
		})
	}
}

func TestACallWithTooLongACredentialIsNotSent(t *testing.T) {
	for _, call := range []Call{{Cred: OpaqueAuth{Body: make([]byte, 401)}}, {Verf: OpaqueAuth{Body: make([]byte, 401)}}} {
		if b, err := call.Append([]byte("before")); !errors.Is(err, ErrLimit) || string(b) != "before" {
			t.Errorf("%q, %v", b, err)
		}
	}
}

func TestThePrefixTellsCallsFromReplies(t *testing.T) {
	for _, c := range []struct {
		wire string
		xid  uint32
		t    MsgType
		kind error // nil: none
	}{
		{"5a5a0001 00000000", 0x5a5a0001, MsgCall, nil},
		{"5a5a0001 00000001 ffffffff", 0x5a5a0001, MsgReply, nil},
		{"5a5a0001 00000002", 0x5a5a0001, 2, ErrValue},
		{"5a5a0001 000000", 0x5a5a0001, 0, ErrShort},
		{"5a5a00", 0, 0, ErrShort},
	} {
		xid, typ, err := ParsePrefix(unhex(t, c.wire))
		if xid != c.xid || typ != c.t || !errors.Is(err, c.kind) {
			t.Errorf("%s: %#x %v %v", c.wire, xid, typ, err)
		}
	}
	if s := []string{MsgCall.String(), MsgReply.String(), MsgType(7).String()}; !reflect.DeepEqual(s, []string{"CALL", "REPLY", "msg_type 7"}) {
		t.Errorf("names %q", s)
	}
}
