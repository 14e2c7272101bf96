//go:build !race

package rdmap

import (
	"encoding/binary"
	"testing"
)

// A quietRig sends and receives without recording.
func quietRig(t testing.TB) *rig {
	r := newRig(t, digests, func(_ *Config, l *line) { l.mulpdu = 1024 })
	r.line.take = func(*segment) {}
	r.ulp.quiet = true
	r.ulp.memory[0] = &region{data: make([]byte, 4096), hollow: true}
	r.region(0x11, 0x100, 4096, 0)
	r.region(0x33, 8, 4096, 0)
	r.region(0x44, 16, 8, 0)
	r.receive(4096)
	return r
}

// work is what a stream does over and over, each message with the next MSN of
// its queue.
var work = []struct {
	name   string
	octets int // that each message moves
	with   func(r *rig) func()
}{
	{"Send", 2500, func(r *rig) func() { return r.repeat(sendOf(2500)) }},
	{"Write", 2500, func(r *rig) func() { return r.repeat(writeOf(2500)) }},
	{"Immediate Data", 8, func(r *rig) func() { return r.repeat(immediateOf(1)) }},
	{"Read", 1000, func(r *rig) func() {
		ask := r.repeat(readOf(1000))
		u := tagged(OpReadResponse, 0x11, 0x100, true, octets(1000))
		return func() { ask(); r.ulpdu(u) }
	}},
	{"FetchAdd", 8, func(r *rig) func() {
		ask := r.repeat(fetchAdd())
		u := atomicResponse(0, 1, 5)
		return func() { ask(); r.numbered(u) }
	}},
	{"CmpSwap", 8, func(r *rig) func() {
		swap := fetchAdd()
		swap.Atomic.AOpCode = AOpCmpSwap
		ask := r.repeat(swap)
		u := atomicResponse(0, 1, 5)
		return func() { ask(); r.numbered(u) }
	}},
	{"inbound Send", 1000, func(r *rig) func() {
		u := whole(OpSend, 0, octets(1000))
		return func() { r.numbered(u) }
	}},
	{"inbound Write", 1000, func(r *rig) func() {
		u := tagged(OpWrite, 0x11, 0x100, true, octets(1000))
		return func() { r.ulpdu(u) }
	}},
	{"inbound Immediate Data", 8, func(r *rig) func() {
		u := whole(OpImmediate, 0, octets(8))
		return func() { r.numbered(u) }
	}},
	{"inbound Read", 2500, func(r *rig) func() {
		u := asks(0, 2500)
		return func() { r.numbered(u) }
	}},
	{"inbound FetchAdd", 8, func(r *rig) func() {
		u := adds(0, 1)
		return func() { r.numbered(u) }
	}},
}

// repeat sends op again with each call.
func (r *rig) repeat(op Operation) func() {
	op.Ticket = 1
	one := []Operation{op}
	return func() { r.ulp.ops = one; r.Kick() }
}

// ulpdu receives one segment and lets the stream do what it asks for.
func (r *rig) ulpdu(u []byte) {
	if err := r.in.receiver.ULPDU(u); err != nil {
		r.t.Fatal(err)
	}
	r.in.Idle()
}

// numbered does so after giving an untagged one the next MSN.
func (r *rig) numbered(u []byte) {
	binary.BigEndian.PutUint32(u[10:], binary.BigEndian.Uint32(u[10:])+1)
	r.ulpdu(u)
}

func TestMessagesAllocateNothing(t *testing.T) {
	for _, w := range work {
		t.Run(w.name, func(t *testing.T) {
			r := quietRig(t)
			step := w.with(r)
			for range 100 {
				step()
			}
			if n := testing.AllocsPerRun(100, step); n != 0 {
				t.Errorf("%v allocations a message, want 0", n)
			}
			if len(r.ended) > 0 {
				t.Errorf("ended with %v", r.ended)
			}
		})
	}
}

// BenchmarkMessage is one message of each operation, out or in, in segments of at
// most 1024 octets, over a stream that costs nothing.
func BenchmarkMessage(b *testing.B) {
	for _, w := range work {
		b.Run(w.name, func(b *testing.B) {
			step := w.with(quietRig(b))
			b.SetBytes(int64(w.octets))
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}
