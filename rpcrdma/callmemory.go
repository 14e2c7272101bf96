// This file handles faults of memory that belongs to the program: an unreadable
// page fails its own call and no other.

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
	return x.shape.Describe(x.head, &x.call, binding, &x.reader.Cursor, unbound)
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

// memoryFault returns why the peer could not use memory that was exposed, or nil.
// With a fault the next connection would be lost as this one was.
func (x *rpc) memoryFault() error {
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

// repliesTo returns what is wrong with the reply of a handler. A reply in the
// handler's own memory may be unreadable.
func repliesTo(reply []byte, xid uint32) (err error) {
	defer pages.Catch(&err, [][]byte{reply}, pages.Trap())
	if len(reply) < 4 || binary.BigEndian.Uint32(reply) != xid {
		err = errors.New("rpcrdma: the handler's reply does not begin with the XID of the call")
	}
	return err
}

// layOutCaught is layOut with an error for a reply that cannot be read.
func (c *handlerCall) layOutCaught(reply []byte) (err error) {
	defer pages.Catch(&err, [][]byte{reply}, pages.Trap())
	return c.layOut(reply)
}
