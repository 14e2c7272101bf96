package gateway

import (
	"bufio"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/rpctest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/rpctcp"
)

// A rawConn sends and receives messages over a TCP connection, without a transport.
type rawConn struct {
	t  *testing.T
	nc net.Conn
	rd *oncrpc.RecordReader
	wr *oncrpc.RecordWriter
}

func newRawConn(t *testing.T, nc net.Conn) *rawConn {
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(30 * time.Second)) // a test that hangs
	return &rawConn{t, nc, oncrpc.NewRecordReader(bufio.NewReader(nc), oncrpc.RecordLimits{}), oncrpc.NewRecordWriter(nc, 0)}
}

func (w *rawConn) send(message []byte) {
	w.t.Helper()
	if err := w.wr.WriteRecord(message); err != nil {
		w.t.Fatalf("sending: %v", err)
	}
}

func (w *rawConn) receive() []byte {
	w.t.Helper()
	b, err := w.rd.AppendRecord(nil)
	if err != nil {
		w.t.Fatalf("receiving: %v", err)
	}
	return b
}

// ended waits for the end of the connection.
func (w *rawConn) ended() {
	w.t.Helper()
	if b, err := w.rd.AppendRecord(nil); err == nil {
		w.t.Fatalf("a message of %d octets, want the end of the connection", len(b))
	}
}

func dial(t *testing.T, address string) *rawConn {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return newRawConn(t, nc)
}

func accept(t *testing.T, ln net.Listener) *rawConn {
	t.Helper()
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return newRawConn(t, nc)
}

// A rig is a gateway behind a server of RPC over TCP. The test is the server behind it, at a
// listener.
type rig struct {
	*Gateway
	front  string // address
	behind *net.TCPListener
}

func newRig(t *testing.T, cfg Config) *rig {
	t.Helper()
	return newRigBefore(t, nettest.Listen(t, "tcp4"), cfg)
}

// newRigBefore makes a rig with a given listener for the server behind.
func newRigBefore(t *testing.T, behind *net.TCPListener, cfg Config) *rig {
	t.Helper()
	nettest.CheckLeaks(t)
	r := &rig{behind: behind}
	if cfg.Backend.Open == nil {
		cfg.Backend = TCP(TCPConfig{Address: r.behind.Addr().String()})
	}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Gateway = g
	t.Cleanup(func() { g.Close() })
	r.front = serve(t, g)
	return r
}

// serve serves a handler over TCP until the test ends. All callers seem to be on other
// machines.
func serve(t *testing.T, h oncrpc.Handler) (address string) {
	t.Helper()
	return serveTo(t, &origin.Origin{}, h)
}

// serveTo is serve with a given origin of all connections.
func serveTo(t *testing.T, from *origin.Origin, h oncrpc.Handler) (address string) {
	t.Helper()
	return rpctest.ServeTCP(t, rpctcp.ServerConfig{Handler: h, Admit: func(net.Conn) (*origin.Origin, error) { return from, nil }})
}

// words encodes words as XDR.
func words(list ...uint32) (b []byte) {
	for _, w := range list {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// call is a call of NFS version 3 with a credential, and arguments of which only the length
// matters.
func call(xid, proc uint32, args ...uint32) []byte {
	c := oncrpc.Call{XID: xid, Prog: nfs.Program, Vers: nfs.V3, Proc: proc, Cred: oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorSys, Body: words(1, 2, 3, 4, 0)}}
	b, err := c.Append(nil)
	if err != nil {
		panic(err)
	}
	return append(b, words(args...)...)
}

// reply is a successful reply.
func reply(xid uint32, results ...uint32) []byte {
	return append(words(xid, 1, 0, 0, 0, 0), words(results...)...)
}

func xidOf(message []byte) uint32 { return binary.BigEndian.Uint32(message) }

func portOf(a net.Addr) int { return a.(*net.TCPAddr).Port }
