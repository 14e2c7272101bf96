package verbs_test

import (
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// A goroutine that polls a CQ receives for the queue pairs attached to it while they are
// connected. It does not for one that pauses until a receive is posted, because that
// goroutine may be the one that has to post it.
func TestThoseWhoPollReceiveForConnections(t *testing.T) {
	for _, v := range []struct {
		name string
		wire wire
		cfg  verbs.QPConfig
		led  int
	}{
		{"a connection", wires[0], verbs.QPConfig{}, 1},
		{"one that pauses", wires[0], verbs.QPConfig{PauseOnEmptyRQ: true}, 0},
	} {
		a, b := newSide(t, v.cfg), newSide(t, verbs.QPConfig{})
		v.wire.connect(t, a.qp, b.qp, cm.Params{})
		if s, r := a.sendCQ.Connections(), a.recvCQ.Connections(); s != v.led || r != v.led {
			t.Errorf("%s: %d and %d streams, expected %d at either CQ", v.name, s, r, v.led)
		}
		check(t, a.qp.Destroy())
		if s, r := a.sendCQ.Connections(), a.recvCQ.Connections(); s+r != 0 {
			t.Errorf("%s: %d streams are left behind", v.name, s+r)
		}
	}
}

// Every queue pair attached has its turn.
func TestPollsOfOneCQTakeTurns(t *testing.T) {
	polled := wires[0]
	polled.spin = time.Millisecond
	const pairs = 3
	a := newSide(t, verbs.QPConfig{})
	var peers []*side
	for i := range pairs {
		qp := a.qp
		if i > 0 {
			qp = a.newQP(verbs.QPConfig{})
		}
		b := newSide(t, verbs.QPConfig{})
		polled.connect(t, b.qp, qp, cm.Params{})
		check(t, qp.PostRecv(verbs.RecvWR{ID: uint64(i), SGL: []verbs.SGE{a.mr.SGE(64*i, 64)}}))
		peers = append(peers, b)
	}
	if n := a.recvCQ.Connections(); n != pairs {
		t.Fatalf("%d streams, expected %d", n, pairs)
	}
	for i, b := range peers {
		check(t, b.qp.PostSend(b.send(1, 0, 10+i)))
	}
	seen := map[uint64]uint32{}
	var wc [1]verbs.WC
	for len(seen) < pairs {
		if a.recvCQ.Poll(wc[:]) == 1 {
			seen[wc[0].ID] = wc[0].Bytes
		}
	}
	for i := range peers {
		if seen[uint64(i)] != uint32(10+i) {
			t.Errorf("receive %d has %d octets, expected %d", i, seen[uint64(i)], 10+i)
		}
	}
}
