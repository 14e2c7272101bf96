package verbs_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/pages/pagestest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// byHand connects a queue pair, without CRC and over TCP, to a peer that sends what the test says.
func byHand(t *testing.T, qp *verbs.QP) *iwarptest.Peer {
	t.Helper()
	x, y := nettest.TCPPair(t, "tcp4")
	params := cm.Params{MPA: mpa.Config{NoCRC: true}}
	accepted := make(chan error, 1)
	go func() {
		req, err := cm.Receive(context.Background(), y, params.MPA)
		if err == nil {
			_, err = req.Accept(context.Background(), qp, params)
		}
		accepted <- err
	}()
	p := iwarptest.NewPeer(x)
	_, err := p.Initiate(iwarptest.Startup{Enhanced: []byte{0, 0, 0, 0}})
	check(t, errors.Join(err, <-accepted))
	return p
}

// However many segments of a message arrive together, the Terminate message names the one whose
// memory cannot be written.
func TestTheSegmentAtFaultIsNamedAmongThoseThatArriveTogether(t *testing.T) {
	const size, segments = 30000, 4
	for _, v := range []struct {
		good int // pages that can be written
		bad  int // the segment with the first page that cannot
	}{{1, 0}, {10, 1}, {20, 2}, {25, 3}} {
		s := newSide(t, verbs.QPConfig{})
		mr := must(s.pd.Register(pagestest.Truncated(t, v.good, 40), allRights))(t)
		p := byHand(t, s.qp)
		check(t, p.Send(iwarptest.Write(uint32(s.mr.STag()), 0, 7))) // the first has to be taken whole
		message := iwarptest.Write(uint32(mr.STag()), 0, bytes.Repeat([]byte{1}, segments*size)...)
		raw := p.Frame(iwarptest.Split(message, size)...)
		go func() { _, _ = p.Write(raw) }() // the rest is lost with the connection
		answer := must(p.NextMessage())(t)
		if code, ok := answer.Terminate(); !ok || code != (iwarptest.ErrorCode{Layer: 1, EType: 1, Code: 2}) {
			t.Fatalf("%d pages: %v", v.good, answer)
		}
		header := answer.Payload[6:] // behind the control field and the length
		if to := binary.BigEndian.Uint64(header[6:]); to != uint64(v.bad*size) {
			t.Errorf("%d pages can be written: the segment at TO %d is named, expected %d", v.good, to, v.bad*size)
		}
		check(t, s.rnic.Close())
	}
}
