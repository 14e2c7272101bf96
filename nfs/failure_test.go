package nfs

import (
	"errors"
	"testing"

	"github.com/weft-rdma/weft/oncrpc"
)

// What Fail returns is what the procedure's own results decode.
func TestEveryProcedureFailsInItsOwnWay(t *testing.T) {
	for p := ProcGetattr; p <= ProcCommit; p++ {
		r := &oncrpc.Request{Call: oncrpc.Call{XID: 7, Prog: Program, Vers: V3, Proc: uint32(p)}}
		b, err := Fail(r, ErrJukebox)
		if err != nil {
			t.Fatalf("%v: %v", p, err)
		}
		var head oncrpc.Reply
		at, err := head.Parse(b)
		if err != nil || head.XID != 7 || head.Err() != nil {
			t.Fatalf("%v: %+v, %v", p, head, err)
		}
		d := oncrpc.NewDecoder(b[at:], "results")
		results[p].fields(decoderFrom(&d))
		if err := d.End(); err != nil {
			t.Errorf("%v: %v", p, err)
		}
		var again oncrpc.Encoder = oncrpc.NewEncoder(nil)
		results[p].fields(encoderTo(&again))
		if got, err := again.Finish(); err != nil || string(got) != string(b[at:]) {
			t.Errorf("%v: %x decodes and encodes to %x, %v", p, b[at:], got, err)
		}
	}
}

func TestWhatHasNoStatusCannotFail(t *testing.T) {
	for _, p := range []uint32{0, uint32(ProcCommit) + 1, 1<<32 - 1} {
		var unavailable *oncrpc.AcceptError
		if b, err := Fail(&oncrpc.Request{Call: oncrpc.Call{Proc: p}}, ErrStale); !errors.As(err, &unavailable) || unavailable.Stat != oncrpc.ProcUnavail {
			t.Errorf("procedure %d: %x, %v", p, b, err)
		}
	}
}
