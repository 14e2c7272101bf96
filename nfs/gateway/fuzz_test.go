package gateway

import (
	"bufio"
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpctcp"
)

// FuzzGateway runs a gateway between a client and a server that send fuzzed data: in front
// records, each with two octets of length, and behind an answer for each call that arrives. An
// answer that begins with a zero becomes a record with the call's XID, any other is sent as it
// is. The gateway ends without leaks, and sends only whole records: replies in front, and
// calls behind.
func FuzzGateway(f *testing.F) {
	framed := func(list ...[]byte) (b []byte) {
		for _, m := range list {
			b = append(binary.BigEndian.AppendUint16(b, uint16(len(m))), m...)
		}
		return b
	}
	answer := func(words []byte) []byte { return append([]byte{0}, words...) }
	calls := framed(call(7, 1, 4, 1), call(8, 6, 4, 1, 0, 0, 100), call(9, 0))
	f.Add(calls, framed(answer(reply(0, 1, 2)[4:]), answer(reply(0, 0, 0, 5, 0, 5, 1, 2)[4:]), answer(reply(0)[4:])))
	f.Add(calls, framed(answer(words(1, 9, 0, 0, 0)), answer(words(0, 2, nfs.Program, 3, 1)), answer(nil)))
	f.Add(calls, framed([]byte("\x80\x00\x00\x02hi"), []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), nil))
	f.Add(framed(reply(7, 1), []byte("junk"), call(7, 1, 4, 1), call(7, 1, 4, 1)), framed(answer(reply(0, 1)[4:]), nil))
	mnt := oncrpc.Call{XID: 5, Prog: nfs.MountProgram, Vers: nfs.MountV3, Proc: 1}
	m, err := mnt.Append(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(framed(append(m, words(1, 0x2f000000)...)), framed(answer(reply(0, 0, 4, 1, 0)[4:])))
	f.Fuzz(func(t *testing.T, sent, answers []byte) {
		if len(sent) > 1<<12 || len(answers) > 1<<12 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			behind := &hostileServer{t: t, answers: answers}
			g, err := New(Config{Backend: behind.backend(), Wait: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			s, err := rpctcp.NewServer(rpctcp.ServerConfig{Handler: g, Stall: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			client, server := iwarptest.Pipe()
			done := make(chan struct{})
			go func() {
				s.ServeConn(context.Background(), server)
				close(done)
			}()
			go speak(client, sent)
			rd := oncrpc.NewRecordReader(bufio.NewReader(client), oncrpc.RecordLimits{})
			for {
				message, err := rd.AppendRecord(nil)
				if err != nil {
					break
				}
				if _, kind, err := oncrpc.ParsePrefix(message); err != nil || kind != oncrpc.MsgReply {
					t.Errorf("in front: % x", message)
				}
			}
			client.Close()
			<-done
			s.Close()
			g.Close()
		})
	})
}

// speak sends the framed data as records, and then closes the connection.
func speak(nc *iwarptest.Conn, framed []byte) {
	wr := oncrpc.NewRecordWriter(nc, 0)
	for message := next(&framed); message != nil; message = next(&framed) {
		if wr.WriteRecord(message) != nil {
			return
		}
	}
	nc.CloseWrite()
}

// next returns the next piece with its two octets of length removed, or nil at the end.
func next(framed *[]byte) []byte {
	b := *framed
	if len(b) < 2 {
		return nil
	}
	n := min(int(binary.BigEndian.Uint16(b)), len(b)-2)
	*framed = b[2+n:]
	return b[2 : 2+n : 2+n]
}

// A hostileServer answers calls with fuzzed data, and closes the connection when there are no
// more.
type hostileServer struct {
	t *testing.T

	mu      sync.Mutex
	answers []byte
}

func (h *hostileServer) next() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return next(&h.answers)
}

func (h *hostileServer) backend() Backend {
	return Backend{Open: func(f Front) (oncrpc.Caller, error) {
		return rpctcp.NewClient(rpctcp.ClientConfig{Reverse: f.Reverse, Attempts: 1, Dial: func(context.Context) (net.Conn, error) {
			a, b := iwarptest.Pipe()
			go h.serve(b)
			return a, nil
		}})
	}}
}

func (h *hostileServer) serve(nc *iwarptest.Conn) {
	defer nc.Close()
	rd := oncrpc.NewRecordReader(bufio.NewReader(nc), oncrpc.RecordLimits{})
	for {
		message, err := rd.AppendRecord(nil)
		if err != nil {
			return
		}
		xid, _, err := oncrpc.ParsePrefix(message)
		if err != nil {
			h.t.Errorf("behind: % x", message)
		}
		answer := h.next()
		switch {
		case answer == nil:
			return
		case len(answer) > 0 && answer[0] == 0:
			record := binary.BigEndian.AppendUint32(nil, 1<<31|uint32(4+len(answer)-1))
			record = binary.BigEndian.AppendUint32(record, xid)
			answer = append(record, answer[1:]...)
		}
		if _, err := nc.Write(answer); err != nil {
			return
		}
	}
}
