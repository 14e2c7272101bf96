// Calls of any kind, at random and by the fuzzer.

package payload_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/internal/worked"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// randomCall is a call of EXCHANGE with anything in it.
func randomCall(r *rand.Rand, most int) *oncrpc.ClientCall {
	length := func() int {
		switch r.IntN(4) {
		case 0:
			return r.IntN(8)
		case 1:
			return r.IntN(300)
		case 2:
			return 900 + r.IntN(200)
		}
		return r.IntN(most)
	}
	var items [][]byte
	for i := range r.IntN(6) {
		items = append(items, exchange.Pattern(i, length()))
	}
	var wanted []int
	var sinks [][]byte
	for range r.IntN(6) {
		n := length()
		wanted = append(wanted, n)
		sinks = append(sinks, make([]byte, max(0, n-r.IntN(2)+r.IntN(3))))
	}
	c := exchange.Call(exchange.Args(fmt.Sprintf("%.*s", r.IntN(exchange.MaxTag), "the quick brown fox jumps over the lazy dog, and back again"), items, wanted...))
	c.Sinks = sinks[:r.IntN(len(sinks)+1)]
	if r.IntN(4) == 0 { // cut anywhere
		var pieces [][]byte
		for all := bytes.Join(c.Args, nil); len(all) > 0; {
			n := 1 + r.IntN(len(all))
			pieces, all = append(pieces, all[:n]), all[n:]
		}
		c.Args = pieces
	}
	c.XID = r.Uint32()
	return c
}

// Claims: P-3.4-4 P-3.4-14 P8166-3.4.4.1-2 P8166-3.4.4.4-2 P8166-3.4.5-1 P8166-3.4.5-2 P8166-3.4.5.2-2 P8166-3.4.6-2 P8166-3.5.3-1
// Claims: P8166-3.5.3-8 P8166-4.3.2.2-2 P8166-4.3.3-1 P8166-8.2.2-1 P8166-8.2.2.3-1
func TestAnyCallArrivesWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var p payload.CallPlan
	for range 3000 {
		terms := payload.CallTerms{Call: 1024 << r.IntN(3), Reply: 1024 << r.IntN(3), Rules: &worked.RFC5666, Align: uint32(r.IntN(2) * 64)}
		s := shapeOf(t, randomCall(r, 20000), exchange.Binding{}, 0)
		s.Protected = r.IntN(8) == 0
		if err := p.Plan(s, &terms); err != nil {
			t.Fatal(err)
		}
		checkPlan(t, s, &terms, &p)
	}
}

// FuzzCallPlan plans calls of any octets, cut anywhere, with any bound.
func FuzzCallPlan(f *testing.F) {
	f.Add(slices.Concat(exchange.Args("abc", [][]byte{exchange.Pattern(1, 7000)}, 9)...), uint16(5), 100, 7, uint16(0))
	f.Add(slices.Concat(exchange.Args("", [][]byte{exchange.Pattern(1, 7), exchange.Pattern(2, 1500)}, 9)...), uint16(60), -1, 5000, uint16(64))
	f.Fuzz(func(t *testing.T, args []byte, cut uint16, maxReply, sink int, align uint16) {
		args = args[:len(args)&^3]
		at := int(cut) % (len(args) + 1)
		c := exchange.Call([][]byte{args[:at], args[at:]})
		c.MaxReply = max(0, maxReply%100000)
		c.Sinks = [][]byte{make([]byte, max(0, sink%10000))}
		head, _ := c.Call.Append(nil)
		s := &payload.CallShape{}
		if err := s.Describe(head, c, exchange.Binding{}, &payload.Cursor{}, 1<<16); err != nil {
			return
		}
		terms := payload.CallTerms{Call: 1024, Reply: 1024, Rules: &wire.Rules{MSGP: true, Octets: 1 << 16}, Align: uint32(align)}
		var p payload.CallPlan
		if err := p.Plan(s, &terms); err != nil {
			return
		}
		checkPlan(t, s, &terms, &p)
	})
}
