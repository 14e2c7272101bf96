// This file holds READ, and how a server reads a file into the reply (RFC 1813
// §3.3.6).

package nfs

import (
	"fmt"

	"github.com/weft-rdma/weft/oncrpc"
)

// MaxData limits the data of one READ or WRITE, in octets. A server returns its own, lower
// limit by FSINFO.
const MaxData = 4 << 20

// ReadArgs are the arguments of READ.
type ReadArgs struct {
	File   FH
	Offset uint64 // in octets, as Count
	Count  uint32
}

func (a *ReadArgs) fields(c *coder) {
	a.File.fields(c)
	c.uint64(&a.Offset)
	c.uint32(&a.Count)
}

// Encode appends a to e.
func (a *ReadArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *ReadArgs) Decode(d *oncrpc.Decoder) {
	*a = ReadArgs{}
	a.fields(decoderFrom(d))
}

// Walk has w go through the arguments.
func (a *ReadArgs) Walk(w Walker) { a.fields(walkerBy(w)) }

// ReadRes are the results of READ.
type ReadRes struct {
	Stat  Stat
	Attr  PostOpAttr
	Count uint32 // octets read; if OK, as what follows
	EOF   bool   // the file ends behind them
	Data  []byte // Count octets, at most MaxData
}

func (r *ReadRes) fields(c *coder) {
	ok := c.stat(&r.Stat)
	r.Attr.fields(c)
	if ok {
		c.uint32(&r.Count)
		c.bool(&r.EOF)
		c.data(&r.Data, r.Count)
	}
}

// Encode appends r to e. It copies Data; [ReadReply] does not.
func (r *ReadRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d. It fails where Count is not the length of Data.
func (r *ReadRes) Decode(d *oncrpc.Decoder) {
	*r = ReadRes{}
	r.fields(decoderFrom(d))
}

// encodeHead encodes what is before the data, which have n octets.
func (r *ReadRes) encodeHead(e *oncrpc.Encoder, n int) {
	r.fields(&coder{mode: encoding, e: e, headOnly: true, count: n})
}

// DecodeHead reads what is before the data from d, and returns how many octets
// they have, at most [MaxData]. The data follow in d, or are elsewhere. It fails
// where that is not Count.
func (r *ReadRes) DecodeHead(d *oncrpc.Decoder) uint32 {
	*r = ReadRes{}
	c := coder{mode: decoding, d: d, headOnly: true}
	r.fields(&c)
	return uint32(c.count)
}

// Walk has w go through the results.
func (r *ReadRes) Walk(w Walker) { r.fields(walkerBy(w)) }

// readHead is the octets of results before the data, with attributes.
var readHead = bound(new(ReadRes))

// A ReadReply is a reply to READ in the making: the data come first, into their
// place, and what stands before them after that.
type ReadReply struct {
	xid  uint32
	buf  []byte // of the whole reply, empty
	head int    // where the data are in it
}

// NewReadReply returns a reply to r with room for count octets.
func NewReadReply(r *oncrpc.Request, count int) ReadReply {
	reply := oncrpc.Reply{XID: r.XID}
	head := reply.Len() + readHead
	return ReadReply{xid: r.XID, buf: r.Buffer(head + oncrpc.RoundUp(count)), head: head}
}

// Data is the room for the data, with undefined contents.
func (p *ReadReply) Data(count int) []byte { return p.buf[p.head : p.head+count : p.head+count] }

// Finish returns the reply: res with the first res.Count octets of the room in
// place of its Data. Where there are no attributes they have to be moved, once.
func (p *ReadReply) Finish(res *ReadRes) ([]byte, error) {
	reply := oncrpc.Reply{XID: p.xid}
	n := 0
	if res.Stat == OK {
		n = int(res.Count)
	}
	if n > cap(p.buf)-p.head {
		return nil, fmt.Errorf("nfs: READ of %d octets in a reply with room for %d", n, cap(p.buf)-p.head)
	}
	data := p.buf[p.head : p.head+n]
	if n > 0 && !res.Attr.Follows {
		head := p.head - attributesLen
		data = p.buf[head : head+copy(p.buf[head:head+n], data)]
	}
	e := oncrpc.NewEncoder(p.buf)
	reply.Encode(&e)
	res.encodeHead(&e, n)
	b, err := e.Finish()
	if err != nil || res.Stat != OK {
		return b, err
	}
	b = b[:len(b)+len(data)]
	for range oncrpc.Padding(n) {
		b = append(b, 0)
	}
	return b, nil
}
