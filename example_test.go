// Two programs in one. The server registers memory and does nothing more; the client
// reads that memory.
package weft_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

func Example() {
	ctx := context.Background()
	rnic := must(verbs.Open(verbs.Config{}))
	pd := must(rnic.AllocPD())
	cq := must(rnic.CreateCQ(verbs.CQConfig{Entries: 16}))
	qp := verbs.QPConfig{SendCQ: cq, RecvCQ: cq, IRD: 1, ORD: 1}

	// The server registers its memory, and accepts with the STag that names it.
	region := must(pd.Register([]byte("Hello from afar"), verbs.LocalRead|verbs.RemoteRead))
	ln := must(cm.Listen(ctx, rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{}))
	go func() {
		req := must(ln.Accept(ctx))
		stag := binary.BigEndian.AppendUint32(nil, uint32(region.STag()))
		must(req.Accept(ctx, must(pd.CreateQP(qp)), cm.Params{PrivateData: stag}))
	}()

	// The client reads 15 bytes into memory of its own.
	buf := make([]byte, 15)
	sink := must(pd.Register(buf, verbs.LocalWrite|verbs.RemoteWrite))
	client := must(pd.CreateQP(qp))
	conn := must(cm.Dial(ctx, client, "tcp", ln.Addr().String(), cm.Params{}))
	from := verbs.Remote{STag: memory.STag(binary.BigEndian.Uint32(conn.PrivateData()))}
	read := verbs.SendWR{Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{sink.SGE(0, 15)}, Remote: from}
	must(0, client.PostSend(read))
	must(0, cq.Wait(ctx))
	var done [1]verbs.WC
	cq.Poll(done[:])
	fmt.Printf("%s\n", must(buf, done[0].Err()))
	// Output: Hello from afar
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
