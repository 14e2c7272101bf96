package gateway

import (
	"bytes"
	"context"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/binding"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
)

// read3 is a READ of NFS version 3 of n octets.
func read3(n uint32) []byte {
	return call(1, 6, 4, 0xfeedbeef, 0, 0, n)
}

// readReply is a reply to it in two parts: what precedes the data, with attributes or without,
// and the data.
func readReply(attributes bool, data []byte) (before, rest []byte) {
	before = reply(1, 0, 0)
	if attributes {
		before = append(reply(1, 0, 1), bytes.Repeat([]byte{0xaa}, 84)...)
	}
	before = append(before, words(uint32(len(data)), 1, uint32(len(data)))...)
	return before, append(bytes.Clone(data), make([]byte, oncrpc.Padding(len(data)))...)
}

// A reply with placed data is assembled to what it would be without placement. Data that lie
// in their place are not moved.
func TestPlacedResultsAreWhereTheReplyHasThem(t *testing.T) {
	data := []byte("placed by the backend")
	for name, tt := range map[string]struct {
		attributes bool
		data       []byte
		inline     bool // not placed after all
		own        bool // the rest of the reply is in memory of the backend's
		unmoved    bool
	}{
		"as long as it can be": {attributes: true, data: data, unmoved: true},
		"without attributes":   {data: data},
		"nothing to place":     {attributes: true, data: []byte{}},
		"in the reply":         {attributes: true, data: data, inline: true},
		"in the reply, and its memory is the backend's": {attributes: true, data: data, inline: true, own: true},
		"placed, the rest in the backend's memory":      {attributes: true, data: data, own: true, unmoved: true},
	} {
		before, rest := readReply(tt.attributes, tt.data)
		want := append(bytes.Clone(before), rest...)
		var sink []byte
		released := false
		b := backend(func(_ context.Context, c *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
			message := before
			r := &oncrpc.ClientReply{Free: func() { released = true }}
			switch {
			case len(c.Sinks) != 1 || len(c.Sinks[0]) != 4096:
				t.Fatalf("%s: %d sinks", name, len(c.Sinks))
			case tt.inline:
				message = want
				r.Placed = []oncrpc.Placed{{At: len(before), Length: -1}}
			default:
				sink = c.Sinks[0]
				copy(sink, tt.data)
				r.Placed = []oncrpc.Placed{{At: len(before), Length: len(tt.data)}}
			}
			if r.Message = message; !tt.own {
				r.Message = append(c.Alloc(len(message))[:0], message...)
			}
			return r, nil
		})
		b.Bindings = binding.NFS()
		g, err := New(Config{Backend: b})
		if err != nil {
			t.Fatal(err)
		}
		got, err := g.ServeRPC(t.Context(), request(t, read3(4096)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: reply %x and %v, want %x", name, got, err, want)
		}
		if tt.unmoved && &got[len(before)] != &sink[0] {
			t.Errorf("%s: the data were moved", name)
		}
		if !released {
			t.Errorf("%s: the backend's memory is not released", name)
		}
	}
}

// Results that are not where they were expected are moved to their place, also if that is behind
// the expected end of the reply.
func TestAReplyMayBeLongerThanExpected(t *testing.T) {
	data := random(1, 2048) // with which the reply is not longer than the room for it
	before, rest := readReply(true, data)
	before = append(reply(1), append(make([]byte, 400), before[24:]...)...)
	want := append(bytes.Clone(before), rest...)
	for name, behind := range map[string][]byte{"the data are last": nil, "more is behind them": words(1, 2, 3)} {
		b := backend(func(_ context.Context, c *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
			copy(c.Sinks[0], data)
			return &oncrpc.ClientReply{Message: append(bytes.Clone(before), behind...), Placed: []oncrpc.Placed{{At: len(before), Length: len(data)}}}, nil
		})
		b.Bindings = binding.NFS()
		g, err := New(Config{Backend: b})
		if err != nil {
			t.Fatal(err)
		}
		got, err := g.ServeRPC(t.Context(), request(t, read3(4096)))
		if want := append(bytes.Clone(want), behind...); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: the reply is not put together: %v", name, err)
		}
	}
}

// Memory is limited by Config.MaxPayload, not by what a call asks for.
func TestMemoryForResultsIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		message []byte
		sinks   []int
	}{
		"READ of 4 GiB":             {read3(0xffffffff), []int{8192}},
		"READ of a little":          {read3(5), []int{5}},
		"READ of nothing":           {read3(0), nil},
		"READ with wrong arguments": {call(1, 6, 400), nil},
		"GETATTR":                   {call(1, 1, 4, 0), nil},
		"READDIR of 4 GiB":          {call(1, 16, 4, 0, 0, 0, 0, 0, 0xffffffff), nil},
		"two READs of version 4": {append(words(1, 0, 2, nfs.Program, 4, 1, 0, 0, 0, 0, 0, 1, 2),
			words(25, 0, 0, 0, 0, 0, 0, 16, 25, 0, 0, 0, 0, 0, 0, 16)...), []int{16}},
		"an operation not known": {append(words(1, 0, 2, nfs.Program, 4, 1, 0, 0, 0, 0, 0, 1, 2),
			words(25, 0, 0, 0, 0, 0, 0, 16, 9999)...), []int{16}},
		"another program": {words(1, 0, 2, 100227, 3, 1, 0, 0, 0, 0), nil},
	} {
		g := &Gateway{cfg: Config{MaxPayload: 8192, Backend: Backend{Bindings: binding.NFS()}}}
		r := request(t, tt.message)
		allocated := 0
		r.Alloc = func(n int) []byte {
			allocated += n
			return make([]byte, n)
		}
		p := g.place(r)
		var got []int
		for _, s := range p.sinks {
			got = append(got, len(s))
		}
		if len(got) != len(tt.sinks) || len(got) > 0 && got[0] != tt.sinks[0] || allocated > 2*8192 {
			t.Errorf("%s: sinks of %v octets and %d allocated, want %v", name, got, allocated, tt.sinks)
		}
	}
}

// Calls of other programs and versions are forwarded without sinks, and so are all calls to a
// backend that does not place results.
func TestOnlyWhatIsBoundIsPlaced(t *testing.T) {
	for name, b := range map[string]payload.Bindings{"no bindings": nil, "version 4 only": {{Prog: nfs.Program, Vers: nfs.V4}: binding.V4{}}} {
		g := &Gateway{cfg: Config{MaxPayload: 8192, Backend: Backend{Bindings: b}}}
		if p := g.place(request(t, read3(16))); p.sinks != nil || p.buf != nil {
			t.Errorf("%s: %d sinks", name, len(p.sinks))
		}
	}
}
