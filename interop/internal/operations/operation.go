// Package operations runs every operation of RDMAP between two of Weft's RNICs
// over loopback and records what passes, for others to judge.
package operations

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/weft-rdma/weft/interop/internal/wire"
	"github.com/weft-rdma/weft/verbs"
)

// An Operation is one message, and its answer if it has one.
type Operation struct {
	Name   string
	Opcode wire.Opcode // of the message
	Size   int         // octets of payload; the larger ones take several segments
	op     verbs.Op
}

// Extension reports whether the operation is one of RFC 7306's.
func (o Operation) Extension() bool { return o.Opcode >= wire.Immediate }

// large is more than any one FPDU carries.
const large = 150_000

// All are the operations, each way of length included: none, one that needs
// padding, one segment, several segments.
var All = []Operation{
	{"send", wire.Send, 100, verbs.OpSend},
	{"send-padded", wire.Send, 3, verbs.OpSend},
	{"send-empty", wire.Send, 0, verbs.OpSend},
	{"send-large", wire.Send, large, verbs.OpSend},
	{"send-se", wire.SendSE, 101, verbs.OpSendSE},
	{"send-invalidate", wire.SendInvalidate, 102, verbs.OpSendInvalidate},
	{"send-se-invalidate", wire.SendSEInvalidate, 103, verbs.OpSendSEInvalidate},
	{"send-invalidate-large", wire.SendInvalidate, large, verbs.OpSendInvalidate},
	{"write", wire.Write, 1000, verbs.OpWrite},
	{"write-empty", wire.Write, 0, verbs.OpWrite},
	{"write-large", wire.Write, large, verbs.OpWrite},
	{"read", wire.ReadRequest, 1001, verbs.OpRead},
	{"read-empty", wire.ReadRequest, 0, verbs.OpRead},
	{"read-large", wire.ReadRequest, large, verbs.OpRead},
	{"read-invalidate", wire.ReadRequest, 1002, verbs.OpReadInvalidate},
	{"fetch-add", wire.AtomicRequest, 8, verbs.OpFetchAdd},
	{"cmp-swap", wire.AtomicRequest, 8, verbs.OpCmpSwap},
	{"immediate", wire.Immediate, 8, verbs.OpImmediate},
	{"immediate-se", wire.ImmediateSE, 8, verbs.OpImmediateSE},
}

// perform does the operation from one end to the other and checks the data
// where it arrived.
func (o Operation) perform(ctx context.Context, from, to *end) error {
	fill(from.local, o.Name)
	clear(to.remote)
	wr := verbs.SendWR{Op: o.op, SGL: []verbs.SGE{from.localMR.SGE(0, o.Size)}}
	switch o.op {
	case verbs.OpSend, verbs.OpSendSE:
		return o.send(ctx, from, to, wr)
	case verbs.OpSendInvalidate, verbs.OpSendSEInvalidate:
		spare, err := to.Register(make([]byte, 16), verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite)
		if err != nil {
			return err
		}
		wr.Invalidate = spare.STag()
		return o.send(ctx, from, to, wr)
	case verbs.OpImmediate, verbs.OpImmediateSE:
		wr.SGL, wr.Immediate = nil, [8]byte{1, 2, 3, 4, 5, 6, 7, 8}
		return o.send(ctx, from, to, wr)
	case verbs.OpWrite:
		wr.Remote = to.remoteMR.Remote(0)
		if err := from.Do(ctx, wr); err != nil {
			return err
		}
		// The peer does not notice that a Write has arrived; a Send behind it shows that.
		if err := (Operation{Opcode: wire.Send, op: verbs.OpSend}).send(ctx, from, to, verbs.SendWR{Op: verbs.OpSend}); err != nil {
			return err
		}
		return same(to.remote[:o.Size], from.local[:o.Size])
	case verbs.OpRead, verbs.OpReadInvalidate:
		return o.read(ctx, from, to, wr)
	}
	return o.atomic(ctx, from, to, wr)
}

// send does an operation that consumes a receive of the peer's.
func (o Operation) send(ctx context.Context, from, to *end, wr verbs.SendWR) error {
	if err := to.QP.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{to.remoteMR.SGE(0, max(o.Size, 16))}}); err != nil {
		return err
	}
	if err := from.Do(ctx, wr); err != nil {
		return err
	}
	wc, err := to.Received(ctx)
	switch {
	case err != nil:
		return err
	case o.Extension() && (wc.Op != verbs.OpRecvImmediate || wc.Immediate != wr.Immediate):
		return fmt.Errorf("a completion of %v with %x, expected %v with %x", wc.Op, wc.Immediate, verbs.OpRecvImmediate, wr.Immediate)
	case int(wc.Bytes) != o.Size:
		return fmt.Errorf("a message of %d octets arrived, expected %d", wc.Bytes, o.Size)
	case wc.Solicited != (o.op == verbs.OpSendSE || o.op == verbs.OpSendSEInvalidate || o.op == verbs.OpImmediateSE):
		return fmt.Errorf("the completion of a %v says solicited: %v", o.op, wc.Solicited)
	case wc.HasInvalidated != o.invalidates() || wc.Invalidated != wr.Invalidate:
		return fmt.Errorf("the completion of a %v says invalidated: %v %v", o.op, wc.HasInvalidated, wc.Invalidated)
	case o.Extension():
		return nil
	}
	return same(to.remote[:o.Size], from.local[:o.Size])
}

func (o Operation) invalidates() bool {
	return o.op == verbs.OpSendInvalidate || o.op == verbs.OpSendSEInvalidate
}

// read reads the peer's remote memory to a region of its own.
func (o Operation) read(ctx context.Context, from, to *end, wr verbs.SendWR) error {
	fill(to.remote, o.Name)
	sink := make([]byte, max(o.Size, 1))
	mr, err := from.Register(sink, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite)
	if err != nil {
		return err
	}
	wr.SGL, wr.Remote = []verbs.SGE{mr.SGE(0, o.Size)}, to.remoteMR.Remote(0)
	if err := from.Do(ctx, wr); err != nil {
		return err
	}
	return same(sink[:o.Size], to.remote[:o.Size])
}

// atomic adds to, or swaps, the first eight octets of the peer's memory.
func (o Operation) atomic(ctx context.Context, from, to *end, wr verbs.SendWR) error {
	const before, operand = 0x1122334455667788, 0x0101010101010101
	binary.NativeEndian.PutUint64(to.remote, before)
	wr.Remote = to.remoteMR.Remote(0)
	wr.Atomic = verbs.Atomic{Data: operand}
	after := uint64(before + operand)
	if o.op == verbs.OpCmpSwap {
		wr.Atomic = verbs.Atomic{Data: operand, Mask: ^uint64(0), Compare: before, CompareMask: ^uint64(0)}
		after = operand
	}
	if err := from.Do(ctx, wr); err != nil {
		return err
	}
	if got := binary.NativeEndian.Uint64(from.local); got != before {
		return fmt.Errorf("%v returned %#x, the target held %#x", o.op, got, uint64(before))
	}
	if got := binary.NativeEndian.Uint64(to.remote); got != after {
		return fmt.Errorf("%v left %#x in the target, expected %#x", o.op, got, after)
	}
	return nil
}

// fill gives buf contents that differ from operation to operation.
func fill(buf []byte, name string) {
	for i := range buf {
		buf[i] = byte(i) ^ byte(i>>8) ^ name[i%len(name)]
	}
}

func same(got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("octet %d of %d arrived as %#02x, sent was %#02x", i, len(got), got[i], want[i])
		}
	}
	return fmt.Errorf("%d octets arrived, sent were %d", len(got), len(want))
}
