package nlm

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/oncrpc"
)

const cookie = "00000005 0102030405 000000"

func call(t *testing.T, p Proc, args string) ([]byte, error) {
	t.Helper()
	octets, err := hex.DecodeString(strings.ReplaceAll(args, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	r := &oncrpc.Request{Call: oncrpc.Call{XID: 7, Prog: Program, Vers: V4, Proc: uint32(p)}, Args: octets}
	return oncrpc.Mux{NoLocks()}.ServeRPC(t.Context(), r)
}

func TestNobodyGetsALockAndEverybodyAnAnswer(t *testing.T) {
	const (
		granted, denied, noLocks = "00000000", "00000001", "00000002"
		more                     = "00000000 ffffffff" // what is behind the cookie
	)
	for p, want := range map[Proc]string{
		Null: "", Test: cookie + noLocks, Lock: cookie + noLocks, NMLock: cookie + noLocks,
		Unlock: cookie + granted, Cancel: cookie + denied, Granted: cookie + denied,
		Share: cookie + noLocks + "00000000", Unshare: cookie + granted + "00000000",
		testMsg: "", lastRes: "", FreeAll: "",
	} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			reply, err := call(t, p, cookie+more)
			if err != nil {
				t.Fatal(err)
			}
			header := oncrpc.Reply{XID: 7}
			whole, _ := header.Append(nil)
			results, _ := hex.DecodeString(strings.ReplaceAll(want, " ", ""))
			if whole = append(whole, results...); !bytes.Equal(reply, whole) {
				t.Errorf("%x, want %x", reply, whole)
			}
		})
	}
}

func TestWhatIsNoCallOfNLMIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		proc Proc
		args string
	}{
		"a procedure that there is not":  {16, cookie},
		"no cookie":                      {Lock, ""},
		"a cookie that is not all there": {Lock, "00000008 01020304"},
		"a cookie that is too long":      {Lock, "00000401" + strings.Repeat("00", 1028)},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := call(t, tt.proc, tt.args)
			var accept *oncrpc.AcceptError
			var decode *oncrpc.DecodeError
			if !errors.As(err, &accept) && !errors.As(err, &decode) {
				t.Errorf("%x, %v; want a refusal", reply, err)
			}
		})
	}
}
