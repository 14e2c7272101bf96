package nfs

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/weft-rdma/weft/oncrpc"
)

// dirty gives memory full of octets that nobody wants in a reply.
func dirty(n int) []byte { return bytes.Repeat([]byte{0xee}, n) }

func TestAReplyToREADHasItsDataInPlace(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 10)
	for _, res := range []ReadRes{
		{Attr: listAttr, EOF: true},
		{},
		{Stat: ErrStale},
		{Stat: ErrIO, Attr: listAttr},
	} {
		for n := range 10 {
			var room []byte
			req := &oncrpc.Request{Call: oncrpc.Call{XID: 7}, Alloc: func(n int) []byte { room = dirty(n); return room }}
			reply := NewReadReply(req, 9)
			data := reply.Data(9)
			if len(data) != 9 || cap(data) != 9 {
				t.Fatalf("room for %d octets of %d, want 9", len(data), cap(data))
			}
			copy(data, content)
			res := res
			res.Count = uint32(min(n, 9))
			got, err := reply.Finish(&res)
			if err != nil {
				t.Fatal(err)
			}

			// The same by the plain way, which copies.
			if res.Stat == OK {
				res.Data = content[:res.Count]
			}
			e := new(oncrpc.Request)
			e.XID = 7
			plain := e.Accept(0)
			res.Encode(&plain)
			want, err := plain.Finish()
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v, %d octets: %v, got\n%x, want\n%x", res.Stat, n, err, got, want)
			}
			if &got[0] != &room[0] {
				t.Errorf("%v, %d octets: the reply is not in the transport's memory", res.Stat, n)
			}
		}
	}
}

func TestAReplyToREADRefusesMoreThanItHasRoomFor(t *testing.T) {
	reply := NewReadReply(&oncrpc.Request{}, 8)
	if b, err := reply.Finish(&ReadRes{Count: 9}); err == nil {
		t.Errorf("9 octets in room for 8: %x", b)
	}
}

// A server that reads a file into the reply allocates nothing but that.
func TestAReplyToREADAllocatesOnlyItsMemory(t *testing.T) {
	room := make([]byte, 4096)
	req := &oncrpc.Request{Alloc: func(n int) []byte { return room[:n] }}
	res := ReadRes{Attr: listAttr, Count: 1000}
	if n := testing.AllocsPerRun(100, func() {
		reply := NewReadReply(req, 1000)
		clear(reply.Data(1000))
		if _, err := reply.Finish(&res); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkREAD is what a server does around the data of a READ, which it reads
// into the reply, and a client that takes it from there. The data itself stay
// where they are.
func BenchmarkREAD(b *testing.B) {
	for _, n := range []int{4 << 10, 1 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			room := make([]byte, n+1024)
			req := &oncrpc.Request{Alloc: func(n int) []byte { return room[:n] }}
			in, out := ReadRes{Attr: listAttr, Count: uint32(n)}, ReadRes{}
			var reply oncrpc.Reply
			b.ReportAllocs()
			for b.Loop() {
				p := NewReadReply(req, n)
				p.Data(n)[0]++
				wire, err := p.Finish(&in)
				if err != nil {
					b.Fatal(err)
				}
				at, err := reply.Parse(wire)
				if err != nil {
					b.Fatal(err)
				}
				d := oncrpc.NewDecoder(wire[at:], "READ3res")
				if out.Decode(&d); d.End() != nil || len(out.Data) != n {
					b.Fatal(d.Err())
				}
			}
		})
	}
}
