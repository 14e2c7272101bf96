// This file is the memory of a call that is its program's: what may be wrong with it
// is the call's misfortune, and no other's.

package rpcrdma

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/rpcrdma/payload"
)

// describe makes the shape of the call. The error may be that its memory cannot be
// read, as may those of gather and appendMessage.
func (x *rpc) describe(binding payload.Binding, unbound int) (err error) {
	defer pages.Catch(&err, x.call.Args, pages.Trap())
	return x.shape.Describe(x.head, &x.call, binding, &x.taker.Cursor, unbound)
}

// gather copies what is gathered for Read chunks.
func (x *rpc) gather() (err error) {
	defer pages.Catch(&err, x.call.Args, pages.Trap())
	x.plan.GatherTo(x.gathered, x.shape.Stream)
	return nil
}

// appendMessage appends what the Send of the call holds.
func (x *rpc) appendMessage(dst []byte) (b []byte, err error) {
	defer pages.Catch(&err, x.call.Args, pages.Trap())
	return x.plan.AppendMessage(dst, x.shape.Stream), nil
}

// unusable says why the peer cannot have used memory that was exposed, if that is so:
// then the connection was lost because of it, and so would be the next.
func (x *rpc) unusable() error {
	for i := range x.plan.Exposures {
		e := &x.plan.Exposures[i]
		usable := pages.Readable
		if e.List == payload.ExposedWrite {
			usable = pages.Writable
		}
		if _, err := usable(e.Memory); err != nil {
			return fmt.Errorf("rpcrdma: the call of XID %#x: %w", x.call.XID, err)
		}
	}
	return nil
}

// repliesTo says what is wrong with the reply of a handler: it may be that it cannot be
// read, as it is the handler's memory, if it did not ask for any.
func repliesTo(reply []byte, xid uint32) (err error) {
	defer pages.Catch(&err, [][]byte{reply}, pages.Trap())
	if len(reply) < 4 || binary.BigEndian.Uint32(reply) != xid {
		err = errors.New("rpcrdma: the handler's reply does not begin with the XID of the call")
	}
	return err
}

// layOutCaught is layOut, of which the error may be that the reply cannot be read.
func (c *handlerCall) layOutCaught(reply []byte) (err error) {
	defer pages.Catch(&err, [][]byte{reply}, pages.Trap())
	return c.layOut(reply)
}
