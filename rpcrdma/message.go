// The receives of an endpoint, and the messages that arrive in them.

package rpcrdma

import (
	"errors"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// A message is a receive of an endpoint and, from its completion until it is posted
// again, what came in it. The half that receives a message keeps it as long as
// needed, and then calls repost. Until then the peer can send one message less.
type message struct {
	Header  wire.Header
	Payload []byte // what follows the header of an RDMA_MSG or RDMA_MSGP
	Fault   error  // of Header.Parse, an *Error

	// Invalidated is the STag of ours that the message invalidated.
	Invalidated    memory.STag
	HasInvalidated bool

	e     *endpoint
	index int    // in endpoint.receives
	buf   []byte // all of the receive
}

// postReceives makes n receives of size octets in one region, and posts them.
func (e *endpoint) postReceives(n, size int) (err error) {
	size = (size + 7) &^ 7
	buf := make([]byte, n*size)
	if e.receiveMR, err = e.pd.Register(buf, verbs.LocalWrite); err != nil {
		return err
	}
	e.receives = make([]message, n)
	for i := range e.receives {
		m := &e.receives[i]
		m.e, m.index, m.buf = e, i, buf[i*size:][:size:size]
		if err := m.post(); err != nil {
			return err
		}
	}
	return nil
}

func (m *message) post() error {
	sgl := [1]verbs.SGE{m.e.receiveMR.SGE(m.index*len(m.buf), len(m.buf))}
	return m.e.qp.PostRecv(verbs.RecvWR{ID: receiveID | uint64(m.index), SGL: sgl[:]})
}

// repost posts the receive again. It has to be posted before the message is sent
// that lets the peer use it.
func (m *message) repost() {
	m.Payload = nil
	if err := m.post(); err != nil && !errors.Is(err, verbs.ErrState) { // else the stream is being closed, and its end is seen
		m.e.fail(err)
	}
}

// arrived reads the header of what a receive has completed with.
func (m *message) arrived(wc *verbs.WC) {
	m.Invalidated, m.HasInvalidated = wc.Invalidated, wc.HasInvalidated
	m.Payload, m.Fault = m.Header.Parse(m.buf[:wc.Bytes], &m.e.rules)
}
