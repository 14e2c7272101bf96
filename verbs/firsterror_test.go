package verbs_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// initiating are the terms of a stream on which this side may send at once.
var initiating = mpa.Params{Revision: mpa.Revision2, CRC: true, Initiator: true}

// writeFPDU is the FPDU of an RDMA Write of 8 octets, and its DDP header.
func writeFPDU(t *testing.T, stag uint32) (fpdu, header []byte) {
	t.Helper()
	x, y := iwarptest.Pipe()
	h := ddp.Tagged{Last: true, Version: 1, RsvdULP: rdmap.Control(1, rdmap.OpWrite), STag: stag}
	header = h.Append(nil)
	c := mpa.NewConn(x, initiating)
	c.Append(header, [][]byte{make([]byte, 8)})
	must(c.Flush(true))(t)
	check(t, c.Close())
	return must(io.ReadAll(y))(t), header
}

// raw is a side over a connection whose other end is the test's.
func raw(t *testing.T) (a *side, y *iwarptest.Conn) {
	t.Helper()
	a = newSide(t, reads)
	x, y := iwarptest.Pipe()
	must(a.qp.Modify(verbs.RTS, verbs.QPModify{LLP: mpa.NewConn(x, initiating)}))(t)
	return a, y
}

// A segment that is bad does nothing before it has arrived whole and in order; the
// first that has is the one that is reported (Verbs §6.4).
//
// Claims: V-6.4-9 V-6.4-11
func TestTheFirstBadSegmentThatIsDeliveredIsTold(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		a, y := raw(t)
		first, header := writeFPDU(t, 0xABAD00)
		second, _ := writeFPDU(t, 0xBAD000)
		must(y.Write(first[:len(first)-1]))(t)
		quiesce()
		if at := a.qp.State(); at != verbs.RTS {
			t.Fatalf("it is %v before the segment is there", at)
		}
		must(y.Write(append(first[len(first)-1:], second...)))(t)
		quiesce()
		q := query(t, a.qp)
		if q.State != verbs.Terminate || q.TerminateError == nil || !bytes.Equal(q.TerminateError.DDPHeader, header) {
			t.Errorf("it is %v and Query returns %+v, expected the header % x", q.State, q.TerminateError, header)
		}
		a.wantEvents(verbs.EventProtectionSTag)
		check(t, y.Close())
	})
}

// Another error does not wait for a bad segment that is still arriving.
//
// Claims: V-6.4-10
func TestAnErrorOfOursDoesNotWaitForABadSegment(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		a, y := raw(t)
		bad, _ := writeFPDU(t, 0xABAD00)
		must(y.Write(bad[:len(bad)-1]))(t)
		quiesce()
		a.post(verbs.SendWR{ID: 1, Op: verbs.OpSend, SGL: []verbs.SGE{{STag: 0xBAD000, Length: 1}}})
		quiesce()
		wantDone(t, a.sendCQ, done{1, verbs.InvalidSTag})
		q := query(t, a.qp)
		if q.State != verbs.Terminate || q.TerminateError == nil || q.TerminateError.EType != rdmap.LocalCatastrophic || q.TerminateError.Layer != rdmap.LayerRDMA {
			t.Errorf("it is %v and Query returns %+v, expected 0/0/00", q.State, q.TerminateError)
		}
		must(y.Write(bad[len(bad)-1:]))(t)
		quiesce()
		if after := query(t, a.qp); !bytes.Equal(after.Terminate, q.Terminate) {
			t.Errorf("then Query returns % x, expected % x", after.Terminate, q.Terminate)
		}
		a.wantEvents()
		check(t, y.Close())
	})
}

// IRD and ORD that change under outstanding Reads are the harm of that queue pair,
// at most: others of the RNIC go on.
//
// Claims: V-6.5-9
func TestReadsOfOthersGoOnWhenIRDAndORDChange(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, reads)
		qa, qb := a.newQP(reads), b.newQP(reads)
		w.connect(t, qa, qb, cm.Params{})
		for i := range uint64(200) {
			a.post(a.read(i, b, 0, 1000))
			check(t, qa.PostSend(a.read(1000+i, b, 2000, 1000)))
			must(a.qp.Modify(verbs.RTS, verbs.QPModify{ORD: new(1 + int(i%4))}))(t)
			if i == 150 {
				must(b.qp.Modify(verbs.RTS, verbs.QPModify{IRD: new(0)}))(t) // ends the first pair
				break
			}
			must(b.qp.Modify(verbs.RTS, verbs.QPModify{IRD: new(4 + int(i%3))}))(t)
			for _, wc := range take(t, a.sendCQ, 2) {
				if wc.Status != verbs.Success {
					t.Fatalf("request %d: %v", wc.ID, wc.Status)
				}
			}
		}
		take(t, a.sendCQ, 2)
		for i := range uint64(20) {
			check(t, qa.PostSend(a.read(i, b, 2000, 1000)))
			wantDone(t, a.sendCQ, done{i, verbs.Success})
		}
	})
}
