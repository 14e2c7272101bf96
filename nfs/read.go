// This file holds READ, and how a server reads a file into the reply (RFC 1813
// §3.3.6).

package nfs

import (
	"fmt"

	"github.com/weft-rdma/weft/oncrpc"
)

// MaxData limits the data of one READ or WRITE, in octets. A server tells the
// lower limit that it has by FSINFO.
const MaxData = 4 << 20

// ReadArgs are the arguments of READ.
type ReadArgs struct {
	File   FH
	Offset uint64 // in octets, as Count
	Count  uint32
}

// Encode appends a to e.
func (a *ReadArgs) Encode(e *oncrpc.Encoder) {
	a.File.Encode(e)
	e.Uint64(a.Offset)
	e.Uint32(a.Count)
}

// Decode reads a from d.
func (a *ReadArgs) Decode(d *oncrpc.Decoder) {
	a.File.Decode(d)
	a.Offset = d.Uint64()
	a.Count = d.Uint32()
}

// ReadRes are the results of READ.
type ReadRes struct {
	Stat  Stat
	Attr  PostOpAttr
	Count uint32 // octets read; if OK, as what follows
	EOF   bool   // the file ends behind them
	Data  []byte // Count octets, at most MaxData
}

// Encode appends r to e. It copies Data; [ReadReply] does without.
func (r *ReadRes) Encode(e *oncrpc.Encoder) {
	r.encodeHead(e, len(r.Data))
	if r.Stat == OK {
		e.Fixed(r.Data)
	}
}

// encodeHead encodes what is before the data, of which there are n octets.
func (r *ReadRes) encodeHead(e *oncrpc.Encoder, n int) {
	e.Uint32(uint32(r.Stat))
	r.Attr.Encode(e)
	if r.Stat == OK {
		e.Uint32(r.Count)
		e.Bool(r.EOF)
		e.Length(n, MaxData)
	}
}

// Decode reads r from d.
func (r *ReadRes) Decode(d *oncrpc.Decoder) {
	if n := r.DecodeHead(d); n > 0 {
		r.Data = d.Fixed(int(n))
	}
}

// DecodeHead reads what comes before the data from d and returns their count
// word, at most [MaxData]: the data follow, or are elsewhere. A count that
// contradicts that word fails.
func (r *ReadRes) DecodeHead(d *oncrpc.Decoder) uint32 {
	*r = ReadRes{Stat: Stat(d.Uint32())}
	r.Attr.Decode(d)
	if r.Stat != OK {
		return 0
	}
	at := d.Pos()
	r.Count = d.Uint32()
	r.EOF = d.Bool()
	n := d.Length(MaxData)
	if n != r.Count {
		d.Fail(at, "count %d, with %d octets of data", r.Count, n)
		return 0
	}
	return n
}

// readHead is how many octets of results come before the data when there are
// attributes.
var readHead = ProcRead.MaxResults()

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
	if head := reply.Len() + res.headLen(); head < p.head && n > 0 {
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

// headLen is how many octets come before the data of r.
func (r *ReadRes) headLen() int {
	if r.Attr.Follows {
		return readHead
	}
	return readHead - fattrLen
}
