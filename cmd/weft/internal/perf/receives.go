// This file posts receives and checks what arrives.

package perf

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-rdma/weft/verbs"
)

// receives are the messages that an endpoint expects in one run: exactly that
// many receives are posted, so that none is left for the next run.
type receives struct {
	total  int // messages expected
	posted int
	got    int
	op     Op   // what they carry: Send or Immediate data; else nothing
	run    *run // of op
	wrs    []verbs.RecvWR
	sges   []verbs.SGE
}

// expect posts receives for the first of total messages, no more than window.
// carry says what is in them: the messages of r, or nothing.
func (e *endpoint) expect(r *run, total, window int, carry bool) error {
	v := &e.recvs
	*v = receives{total: total, run: r, wrs: v.wrs, sges: v.sges}
	if carry {
		v.op = r.Op
	}
	if n := max(window, len(e.wcs)); n > len(v.wrs) {
		v.wrs, v.sges = make([]verbs.RecvWR, n), make([]verbs.SGE, n)
	}
	return v.post(e, window)
}

// post posts up to n receives more.
func (v *receives) post(e *endpoint, n int) error {
	n = min(n, v.total-v.posted)
	if n <= 0 {
		return nil
	}
	wrs := v.wrs[:n]
	for i := range wrs {
		wrs[i] = verbs.RecvWR{}
		if v.op == Send {
			v.sges[i] = e.inSGE(v.run.offset(v.posted+i), v.run.Size)
			wrs[i].SGL = v.sges[i : i+1]
		}
	}
	if _, err := e.qp.PostRecvs(wrs); err != nil {
		return e.why(err)
	}
	v.posted += n
	return nil
}

// arrived counts a message and checks its completion.
func (v *receives) arrived(wc *verbs.WC) error {
	switch {
	case v.got == v.total:
		return fmt.Errorf("more messages than the %d of the run", v.total)
	case v.op == Send && int64(wc.Bytes) != int64(v.run.Size):
		return fmt.Errorf("message %d has %d bytes, expected %d", v.got, wc.Bytes, v.run.Size)
	case v.op == Immediate:
		if n := binary.BigEndian.Uint64(wc.Immediate[:]); wc.Op != verbs.OpRecvImmediate || n != uint64(v.got) {
			return fmt.Errorf("message %d is a %v with number %d", v.got, wc.Op, n)
		}
	case v.op == "" && (wc.Op != verbs.OpRecv || wc.Bytes != 0):
		return fmt.Errorf("message %d is a %v of %d bytes, expected an empty Send", v.got, wc.Op, wc.Bytes)
	}
	v.got++
	return nil
}

func (v *receives) done() bool { return v.got == v.total }
