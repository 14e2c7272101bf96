// Package wrongkey is a peer for rping(1) that, at one step of the protocol,
// uses an STag whose key octet is wrong: its own in what it advertises, or the
// peer's in what it asks for. The connection must end by a Terminate with the
// right codes, known to both sides.
package wrongkey

import (
	"context"
	"fmt"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/rping"
	"github.com/weft-rdma/weft/interop/internal/node"
	"github.com/weft-rdma/weft/interop/internal/operations"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// A Step is where the wrong key comes in.
type Step string

const (
	Read  Step = "read"  // the server's RDMA Read of the source
	Write Step = "write" // the server's RDMA Write to the sink
)

// codes of the Terminate that a wrong key draws, by the side whose memory was
// meant.
func (s Step) codes() (layer, etype, code uint8) {
	if s == Read {
		return 0, 1, 0 // RDMA, remote protection, invalid STag (RFC 5040 §4.8)
	}
	return 1, 1, 0 // DDP, tagged buffer, invalid STag (RFC 5041 §7.2)
}

const size = 64 // octets a ping: rping's default

// wrong spoils the key, the least significant octet of an STag.
func wrong(stag memory.STag) memory.STag { return stag ^ 0xff }

// An endpoint has the buffers of a session.
type endpoint struct {
	*node.Node
	info, data     []byte
	infoMR, dataMR *verbs.MR
}

func newEndpoint(rnic *verbs.RNIC) (*endpoint, error) {
	n, err := node.New(rnic, verbs.QPConfig{SendDepth: 4, RecvDepth: 4, SendSGEs: 1, RecvSGEs: 1, IRD: 1, ORD: 1})
	if err != nil {
		return nil, err
	}
	e := &endpoint{Node: n, info: make([]byte, 2*rping.InfoLen), data: make([]byte, size)}
	if e.infoMR, err = n.Register(e.info, verbs.LocalRead|verbs.LocalWrite); err == nil {
		if e.dataMR, err = n.Register(e.data, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite); err == nil {
			err = e.expect()
		}
	}
	if err != nil {
		n.Release()
		return nil, err
	}
	return e, nil
}

// expect posts a receive for the peer's next message.
func (e *endpoint) expect() error {
	return e.QP.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{e.infoMR.SGE(0, rping.InfoLen)}})
}

// advertise sends an advertisement of the data buffer under this STag.
func (e *endpoint) advertise(ctx context.Context, stag memory.STag) error {
	rping.AppendInfo(e.info[rping.InfoLen:rping.InfoLen], rping.Info{Buf: e.dataMR.Remote(0).TO, RKey: uint32(stag), Size: size})
	return e.Do(ctx, verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{e.infoMR.SGE(rping.InfoLen, rping.InfoLen)}})
}

// await waits for the peer's next message and readies the one after it.
func (e *endpoint) await(ctx context.Context) (rping.Info, error) {
	wc, err := e.Received(ctx)
	if err != nil {
		return rping.Info{}, err
	}
	info, err := rping.ParseInfo(e.info[:wc.Bytes])
	if err != nil {
		return info, err
	}
	return info, e.expect()
}

// ended waits for the end of the connection and checks why it came.
func (e *endpoint) ended(ctx context.Context, step Step, remote bool) error {
	if _, err := e.QP.WaitState(ctx, verbs.Error); err != nil {
		return fmt.Errorf("the connection did not end: %w", err)
	}
	layer, etype, code := step.codes()
	return operations.Terminated(e.QP.Err(), remote, layer, etype, code)
}

// Client advertises a wrong key to an rping server at addr. Our side refuses
// what the server then does, by a Terminate of its own.
func Client(ctx context.Context, rnic *verbs.RNIC, addr string, step Step, params cm.Params) error {
	e, err := newEndpoint(rnic)
	if err != nil {
		return err
	}
	defer e.Release()
	conn, err := cm.Dial(ctx, e.QP, "tcp", addr, params)
	if err != nil {
		return err
	}
	defer conn.Shutdown(ctx)
	stag := e.dataMR.STag()
	if step == Write {
		if err := e.advertise(ctx, stag); err != nil {
			return fmt.Errorf("advertising the source: %w", err)
		}
		if _, err := e.await(ctx); err != nil {
			return fmt.Errorf("waiting for the go-ahead: %w", err)
		}
	}
	if err := e.advertise(ctx, wrong(stag)); err != nil {
		return fmt.Errorf("advertising a wrong key: %w", err)
	}
	return e.ended(ctx, step, false)
}

// Server serves one rping client from ln and accesses its memory under a wrong
// key. The client's side must refuse, by a Terminate.
func Server(ctx context.Context, rnic *verbs.RNIC, ln *cm.Listener, step Step, params cm.Params) error {
	e, err := newEndpoint(rnic)
	if err != nil {
		return err
	}
	defer e.Release()
	req, err := ln.Accept(ctx)
	if err != nil {
		return err
	}
	conn, err := req.Accept(ctx, e.QP, params)
	if err != nil {
		return err
	}
	defer conn.Shutdown(ctx)
	source, err := e.await(ctx)
	if err != nil {
		return fmt.Errorf("waiting for the source: %w", err)
	}
	if step == Read {
		return e.access(ctx, step, verbs.OpRead, source)
	}
	if err := e.Do(ctx, e.request(verbs.OpRead, source)); err != nil {
		return fmt.Errorf("reading the source: %w", err)
	}
	if err := e.advertise(ctx, 0); err != nil {
		return fmt.Errorf("sending the go-ahead: %w", err)
	}
	sink, err := e.await(ctx)
	if err != nil {
		return fmt.Errorf("waiting for the sink: %w", err)
	}
	return e.access(ctx, step, verbs.OpWrite, sink)
}

func (e *endpoint) request(op verbs.Op, info rping.Info) verbs.SendWR {
	return verbs.SendWR{
		Op: op, SGL: []verbs.SGE{e.dataMR.SGE(0, size)},
		Remote: verbs.Remote{STag: memory.STag(info.RKey), TO: info.Buf},
	}
}

// access uses the peer's buffer under a wrong key. A Write may complete before
// the peer has seen it; a Read may not.
func (e *endpoint) access(ctx context.Context, step Step, op verbs.Op, info rping.Info) error {
	info.RKey = uint32(wrong(memory.STag(info.RKey)))
	if err := e.Do(ctx, e.request(op, info)); err == nil && op == verbs.OpRead {
		return fmt.Errorf("an RDMA Read under a wrong key succeeded")
	}
	return e.ended(ctx, step, true)
}
