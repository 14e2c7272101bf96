package rpcmodel_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// A raw is a requester that makes one call at a time, with any chunk lists that
// RFC 8166 allows.
type raw struct {
	w    *world
	rnic *verbs.RNIC
	pd   *verbs.PD
	cq   *verbs.CQ
	qp   *verbs.QP
	in   []byte
	inMR *verbs.MR
	out  []byte
	mr   *verbs.MR
	xid  uint32
	lent []*verbs.MR
}

const rawSize = 8192

func (w *world) newRaw() *raw {
	w.t.Helper()
	r := &raw{w: w, in: make([]byte, rawSize), out: make([]byte, rawSize)}
	check := func(err error) {
		if err != nil {
			w.t.Fatal(err)
		}
	}
	var err error
	r.rnic, err = verbs.Open(verbs.Config{})
	check(err)
	r.pd, err = r.rnic.AllocPD()
	check(err)
	r.cq, err = r.rnic.CreateCQ(verbs.CQConfig{Entries: 8})
	check(err)
	r.qp, err = r.pd.CreateQP(verbs.QPConfig{SendCQ: r.cq, RecvCQ: r.cq, SendDepth: 4, RecvDepth: 4, IRD: 8, ORD: 1})
	check(err)
	r.inMR, err = r.pd.Register(r.in, verbs.LocalWrite)
	check(err)
	r.mr, err = r.pd.Register(r.out, verbs.LocalRead)
	check(err)
	hello := wire.PrivateData{RemoteInvalidation: w.r.IntN(2) == 0, SendSize: rawSize, ReceiveSize: rawSize}
	_, err = cm.Connect(context.Background(), r.qp, w.connect(), cm.Params{PrivateData: hello.Append(nil)})
	check(err)
	return r
}

// lend registers memory with unused octets around it, and cuts it into segments, some of
// them empty.
func (r *raw) lend(b []byte, access memory.Access) (list []wire.Segment) {
	mr, err := r.pd.RegisterMR(verbs.MRConfig{Buf: b, Access: access | verbs.LocalRead | verbs.LocalWrite, VA: 1 << 40, Key: byte(r.xid)})
	if err != nil {
		r.w.t.Fatal(err)
	}
	r.lent = append(r.lent, mr)
	at := 0
	for at < len(b) {
		n := len(b) - at
		if r.w.r.IntN(3) > 0 && len(list) < 12 {
			n = r.w.r.IntN(n + 1)
		}
		list = append(list, wire.Segment{Handle: uint32(mr.STag()), Length: uint32(n), Offset: mr.Base() + uint64(at)})
		at += n
	}
	return list
}

// act makes a call and checks the reply.
func (r *raw) act() {
	rnd := r.w.r
	q := ask(rnd, 9000)
	r.xid++
	head, _ := (&oncrpc.Call{XID: r.xid, Prog: program, Vers: version, Proc: proc}).Append(nil)
	stream := append(head, q.args()...)
	h := wire.Header{XID: r.xid, Credits: 1}
	rest := r.reduce(&h, stream, q, len(head))
	results := q.results()

	// Memory for results: any number of Write chunks, some of them empty.
	var sinks [][]byte
	for _, n := range q.wanted[:rnd.IntN(len(q.wanted)+1)] {
		if rnd.IntN(5) == 0 {
			h.Writes, sinks = append(h.Writes, nil), append(sinks, nil)
			continue
		}
		sink := make([]byte, n+1+rnd.IntN(9))
		h.Writes, sinks = append(h.Writes, r.lend(sink, verbs.RemoteWrite)), append(sinks, sink)
	}
	long := make([]byte, 24+len(results)+rnd.IntN(9))
	h.HasReply, h.Reply = true, r.lend(long, verbs.RemoteWrite)

	if len(rest)+h.Len() > 1024 || rnd.IntN(4) == 0 {
		// The rest from position zero, its entries among the others'.
		h.Proc = wire.ProcNoMsg
		r.mix(&h, 0, r.lend(rest, verbs.RemoteRead))
		rest = nil
	}
	message := append(h.Append(nil), rest...)
	if len(message) > 1024 { // the server may take no more
		r.w.counts["raw, too long"]++
		r.takeBack()
		return
	}
	r.exchange(message)
	r.check(&h, q, sinks, long)
	r.takeBack()
	r.w.counts["raw"]++
}

// reduce takes some of the items out of the stream into Read chunks.
func (r *raw) reduce(h *wire.Header, stream []byte, q *question, at int) (rest []byte) {
	rnd := r.w.r
	at += 4 + oncrpc.RoundUp(len(q.tag)) + 4
	from := 0
	for _, item := range q.items {
		at += 4
		rounded := oncrpc.RoundUp(len(item))
		if len(item) > 0 && rnd.IntN(2) == 0 {
			n := len(item)
			if rnd.IntN(2) == 0 {
				n = rounded
			}
			rest = append(rest, stream[from:at]...)
			r.mix(h, uint32(at), r.lend(bytes.Clone(stream[at:at+n]), verbs.RemoteRead))
			from = at + rounded
		}
		at += rounded
	}
	return append(rest, stream[from:]...)
}

// mix puts the entries of a Read chunk into the list, in their order, and among
// those of other chunks.
func (r *raw) mix(h *wire.Header, position uint32, list []wire.Segment) {
	at := 0
	for _, s := range list {
		at += r.w.r.IntN(len(h.Reads) - at + 1)
		h.Reads = slices.Insert(h.Reads, at, wire.ReadSegment{Position: position, Segment: s})
		at++
	}
}

// exchange sends a message, for which there is a receive, and waits for both.
func (r *raw) exchange(message []byte) {
	err := r.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{r.inMR.SGE(0, rawSize)}})
	if err == nil {
		err = r.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{r.mr.SGE(0, copy(r.out, message))}})
	}
	if err == nil {
		err = r.cq.Wait(context.Background())
	}
	if err != nil {
		r.w.t.Fatalf("step %d: %v", r.w.step, err)
	}
}

// check holds the reply against the model.
func (r *raw) check(call *wire.Header, q *question, sinks [][]byte, long []byte) {
	t := r.w.t
	wc, err := r.cq.PollOne()
	if err != nil || wc.Status != verbs.Success {
		t.Fatalf("step %d: %v, %v: %v", r.w.step, err, wc.Status, r.qp.Err())
	}
	var h wire.Header
	rules := &wire.Rules{}
	message, err := h.Parse(r.in[:wc.Bytes], rules)
	if err == nil {
		err = h.CheckReply(rules)
	}
	if err == nil {
		err = h.CheckReturned(call)
	}
	if err != nil || h.XID != call.XID || h.Proc == wire.ProcError || h.Credits == 0 {
		t.Fatalf("step %d: %v of XID %#x, %d credits, error %v: %v", r.w.step, h.Proc, h.XID, h.Credits, h.Err, err)
	}
	if h.Proc == wire.ProcNoMsg {
		message = long[:h.Reply.Length()]
	}
	// The model: each result that has a chunk with room is there, and only there.
	results := q.results()
	want := append([]byte(nil), message[:min(24, len(message))]...)
	at, from := 32+4, 0
	for i, n := range q.wanted {
		at += 4
		if i < len(sinks) && sinks[i] != nil {
			if !bytes.Equal(sinks[i][:n], results[at:at+n]) || len(bytes.Trim(sinks[i][n:], "\x00")) > 0 {
				t.Errorf("step %d: Write chunk %d does not hold the result", r.w.step, i)
			}
			if got := h.Writes[i].Length(); got != uint64(n) {
				t.Errorf("step %d: Write chunk %d came back with %d octets, want %d", r.w.step, i, got, n)
			}
			want = append(want, results[from:at]...)
			from = at + oncrpc.RoundUp(n)
		}
		at += oncrpc.RoundUp(n)
	}
	want = append(want, results[from:]...)
	if !bytes.Equal(message, want) || binary.BigEndian.Uint32(message) != call.XID {
		t.Errorf("step %d: the reply, %v with %d octets, is not that of the model, %d octets", r.w.step, h.Proc, len(message), len(want))
	}
}

func (r *raw) takeBack() {
	for _, mr := range r.lent {
		if err := mr.Deallocate(); err != nil {
			r.w.t.Error(err)
		}
	}
	r.lent = r.lent[:0]
}

func (r *raw) close() {
	if err := r.qp.Close(context.Background()); err != nil {
		r.w.t.Errorf("closing: %v", err)
	}
	if err := r.rnic.Close(); err != nil {
		r.w.t.Error(err)
	}
}
