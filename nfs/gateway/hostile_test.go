package gateway

import (
	"bytes"
	"testing"

	"github.com/weft-rdma/weft/oncrpc"
)

// A server that violates the protocol fails the calls concerned and no others. Calls over its
// next connection are answered.
func TestAServerThatMakesNoSenseFailsItsCallsAlone(t *testing.T) {
	systemErr := func(xid uint32) []byte { return words(xid, 1, 0, 0, 0, uint32(oncrpc.SystemErr)) }
	for name, tt := range map[string]struct {
		answer func(xid uint32) []byte // what the server sends, marks and all
		failed bool                    // the call; else it is made again
	}{
		"a record that has no end":        {answer: func(uint32) []byte { return words(1<<31 - 1) }},
		"octets that are no record":       {answer: func(uint32) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }},
		"a record of nothing":             {answer: func(uint32) []byte { return words(1 << 31) }},
		"a message of no direction":       {answer: func(xid uint32) []byte { return words(1<<31|8, xid, 2) }},
		"a reply that is cut off":         {answer: func(xid uint32) []byte { return words(1<<31|8, xid, 1) }, failed: true},
		"a reply of no status":            {answer: func(xid uint32) []byte { return words(1<<31|24, xid, 1, 9, 0, 0, 0) }, failed: true},
		"a reply with a huge verifier":    {answer: func(xid uint32) []byte { return words(1<<31|24, xid, 1, 0, 0, 1<<31, 0) }, failed: true},
		"a reply to nobody, then silence": {answer: func(xid uint32) []byte { return append(words(1<<31|24), reply(xid+1)...) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			front := dial(t, r.front)
			front.send(call(7, 1, 4, 1))
			behind := accept(t, r.behind)
			xid := xidOf(behind.receive())
			if _, err := behind.nc.Write(tt.answer(xid)); err != nil {
				t.Fatal(err)
			}
			if tt.failed {
				if got := front.receive(); !bytes.Equal(got, systemErr(7)) {
					t.Errorf("reply %x, want SYSTEM_ERR", got)
				}
			} else {
				if name == "a reply to nobody, then silence" {
					behind.nc.Close()
				}
				behind = accept(t, r.behind)
				behind.send(reply(xidOf(behind.receive()), 1, 2, 3))
				if got := front.receive(); !bytes.Equal(got, reply(7, 1, 2, 3)) {
					t.Errorf("reply %x", got)
				}
			}
			front.send(call(8, 1, 4, 1))
			behind.send(reply(xidOf(behind.receive()), 4))
			if got := front.receive(); !bytes.Equal(got, reply(8, 4)) {
				t.Errorf("the next call: reply %x", got)
			}
		})
	}
}
