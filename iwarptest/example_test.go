package iwarptest_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// A program is the program under test in these examples: an RNIC with a queue pair
// and 64 octets of memory.
type program struct {
	rnic *verbs.RNIC
	cq   *verbs.CQ
	qp   *verbs.QP
	mr   *verbs.MR
	buf  []byte
}

func newProgram() *program {
	rnic := must(verbs.Open(verbs.Config{}))
	pd := must(rnic.AllocPD())
	p := &program{rnic: rnic, cq: must(rnic.CreateCQ(verbs.CQConfig{Entries: 16})), buf: make([]byte, 64)}
	p.mr = must(pd.Register(p.buf, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite))
	p.qp = must(pd.CreateQP(verbs.QPConfig{SendCQ: p.cq, RecvCQ: p.cq, IRD: 4, ORD: 4}))
	p.receive()
	return p
}

// receive posts a receive of 64 octets.
func (p *program) receive() {
	must(0, p.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{p.mr.SGE(0, 64)}}))
}

// completion waits for the next one and returns its status.
func (p *program) completion() string {
	must(0, p.cq.Wait(context.Background()))
	var wc [1]verbs.WC
	p.cq.Poll(wc[:])
	return fmt.Sprintf("%v: %v", wc[0].Op, wc[0].Status)
}

// dial connects the program, as Initiator, to a Peer over TCP.
func (p *program) dial() *iwarptest.Peer {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	defer ln.Close()
	connected := make(chan error, 1)
	go func() {
		_, err := cm.Dial(context.Background(), p.qp, "tcp", ln.Addr().String(), cm.Params{})
		connected <- err
	}()
	peer := iwarptest.NewPeer(must(ln.Accept()))
	must(peer.Accept())
	must(0, <-connected)
	return peer
}

// accept connects a Peer, as Initiator, to the program, over a Pipe.
func (p *program) accept() *iwarptest.Peer {
	ours, theirs := iwarptest.Pipe()
	connected := make(chan error, 1)
	go func() {
		req, err := cm.Receive(context.Background(), theirs, mpa.Config{})
		if err == nil {
			_, err = req.Accept(context.Background(), p.qp, cm.Params{})
		}
		connected <- err
	}()
	peer := iwarptest.NewPeer(ours)
	must(peer.Initiate(iwarptest.Startup{CRC: true}))
	must(0, <-connected)
	return peer
}

// read posts an RDMA Read of 8 octets, and has the Peer receive the request.
func (p *program) read(peer *iwarptest.Peer) iwarptest.Read {
	from := verbs.Remote{STag: memory.STag(0x100), TO: 0}
	must(0, p.qp.PostSend(verbs.SendWR{Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{p.mr.SGE(0, 8)}, Remote: from}))
	request, ok := must(peer.NextMessage()).Read()
	if !ok {
		log.Fatal("expected a Read Request")
	}
	return request
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A message is damaged on its way: the program must not accept it, and reports the
// CRC error to the peer.
func Example_damagedCRC() {
	p := newProgram()
	defer p.rnic.Close()
	p.receive()
	peer := p.accept()
	defer peer.Close()

	good, damaged := iwarptest.Send(1, []byte("hello")...), iwarptest.Send(2, []byte("hello")...)
	must(0, peer.Send(good))
	must(0, peer.SendRaw(iwarptest.FlipBit(peer.Frame(damaged), -1)))
	fmt.Println("the program:", p.completion())
	fmt.Println("the peer:", must(peer.NextMessage()))
	must(0, peer.Close())
	fmt.Println("the program:", p.completion())
	// Output:
	// the program: Receive: success
	// the peer: Terminate 2/0/02
	// the program: Receive: flushed
}

// A Read Response names an STag that was not advertised to the peer: nothing may be placed.
func Example_wrongSTag() {
	p := newProgram()
	defer p.rnic.Close()
	peer := p.dial()
	defer peer.Close()

	request := p.read(peer)
	must(0, peer.Send(iwarptest.ReadResponse(request.SinkSTag^1, request.SinkTO, []byte("nonsense")...)))
	fmt.Println("the peer:", must(peer.NextMessage()))
	must(0, peer.Close())
	fmt.Println("the program:", p.completion())
	fmt.Printf("its memory: %q\n", p.buf[:8])
	// Output:
	// the peer: Terminate 1/1/00
	// the program: RDMA Read: flushed
	// its memory: "\x00\x00\x00\x00\x00\x00\x00\x00"
}

// The peer refuses an RDMA Read with a Terminate message: its memory is not to be read.
func Example_terminate() {
	p := newProgram()
	defer p.rnic.Close()
	peer := p.dial()
	defer peer.Close()

	request := iwarptest.ReadRequest(1, p.read(peer))
	// RFC 5040 §4.8: layer 0 (RDMAP), error type 1 (remote protection), code 2 (access rights).
	must(0, peer.Send(iwarptest.Terminate(0, 1, 2, iwarptest.ReadHeader, request)))
	fmt.Println("the program:", p.completion())
	// Output:
	// the program: RDMA Read: remote termination error
}

// The peer goes away in the middle of a message. The program must not take what it
// has for the whole.
func Example_fin() {
	p := newProgram()
	defer p.rnic.Close()
	peer := p.accept()
	defer peer.Close()

	first := iwarptest.ClearLast(iwarptest.Send(1, []byte("the beginning of")...))
	must(0, peer.Send(first))
	must(0, peer.CloseWrite())
	fmt.Println("the program:", p.completion())
	fmt.Println("the peer:", must(peer.NextMessage()))
	// Output:
	// the program: Receive: flushed
	// the peer: Terminate 0/2/07
}

// A slow peer: each octet is a segment of TCP of its own.
func Example_slowPeer() {
	p := newProgram()
	defer p.rnic.Close()
	peer := p.dial()
	defer peer.Close()

	peer.Trickle = true
	must(0, peer.Send(iwarptest.Split(iwarptest.Send(1, []byte("drop by drop")...), 4)...))
	fmt.Println("the program:", p.completion())
	fmt.Printf("its memory: %q\n", p.buf[:12])
	// Output:
	// the program: Receive: success
	// its memory: "drop by drop"
}

// A connection in memory damages, delays and cuts off what its two ends send. Here it
// ends after 1000 octets, in the middle of what the program sends.
func ExampleConn_FinAfter() {
	ours, theirs := iwarptest.Pipe()
	theirs.FinAfter(1000)
	go func() { _, _ = theirs.Write(make([]byte, 4096)) }()
	n := 0
	for buf := make([]byte, 512); ; {
		k, err := ours.Read(buf)
		n += k
		if err != nil {
			fmt.Println(n, err)
			return
		}
	}
	// Output: 1000 EOF
}
