package rdmap

import (
	"math"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// Messages of all the octets that a length can say, and offsets that reach and
// pass the top of 2^64.
//
// Claims: R-1.1-1 R-1.1-3
func TestLargestMessagesAreCutRight(t *testing.T) {
	const n = math.MaxUint32
	top := uint64(math.MaxUint64)
	for _, c := range []struct {
		name string
		op   Operation
		in   []byte
		last ddp.Tagged // where the last segment goes
		mo   uint32     // or at which offset
		size int        // and how many octets it has
	}{
		// 2^32-1 octets are 66327 segments of 64754 and one of 28737 tagged,
		// and 66331 of 64750 and one of 35045 untagged.
		{"Write", Operation{Opcode: OpWrite, Length: n, RemoteTO: 5}, nil, ddp.Tagged{TO: 5 + n - 28737}, 0, 28737},
		{"Write to the top", Operation{Opcode: OpWrite, Length: n, RemoteTO: top - n + 1}, nil, ddp.Tagged{TO: top - 28736}, 0, 28737},
		{"Send", Operation{Opcode: OpSend, Length: n}, nil, ddp.Tagged{}, n - 35045, 35045},
		{"Read Response", Operation{}, readRequestTo(1, ReadRequest{SinkTO: top - 99, Size: n, SourceSTag: 9, SourceTO: 1}),
			ddp.Tagged{TO: n - 28737 - 100}, 0, 28737},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, func(_ *Config, l *line) { l.mulpdu, l.room = 64768, 1000 })
			all := make([]byte, 64768)
			r.ulp.memory[0] = &region{data: all, hollow: true}
			r.ulp.memory[9] = &region{data: all, hollow: true}
			var total uint64
			var last segment
			r.line.take = func(s *segment) {
				total += uint64(len(s.pieces[0]))
				last = segment{header: append(last.header[:0], s.header...), payload: s.pieces[0]}
			}
			if c.in != nil {
				r.take(c.in)
			} else {
				c.op.Ticket = 1
				r.ulp.ops = append(r.ulp.ops, c.op)
				r.Kick()
			}
			r.writer()
			var h ddp.Tagged
			var u ddp.Untagged
			if h.Parse(last.header) {
				if !h.Last || h.TO != c.last.TO {
					t.Errorf("the last segment goes to %#x (%v), want %#x", h.TO, h.Last, c.last.TO)
				}
			} else if u.Parse(last.header); !u.Last || u.MO != c.mo {
				t.Errorf("the last segment goes to %#x (%v), want %#x", u.MO, u.Last, c.mo)
			}
			if total != n || len(last.payload) != c.size {
				t.Errorf("%d octets in all, %d at last; want %d and %d", total, len(last.payload), uint64(n), c.size)
			}
		})
	}
}

// A Read of all the octets that a length can say, into a sink that passes the
// top of 2^64, is taken to its last octet and not beyond.
//
// Claims: R-1.1-2
func TestLargestReadResponseIsTakenWhole(t *testing.T) {
	const n, sink = math.MaxUint32, uint64(math.MaxUint64 - 99)
	all := octets(64754)
	for _, over := range []int{0, 1} {
		r := newRig(t)
		r.ulp.memory[0x11] = &region{data: all, hollow: true}
		op := readOf(0)
		op.Ticket, op.Length, op.SinkTO = 1, n, sink
		r.ulp.ops = append(r.ulp.ops, op)
		r.Kick()
		u := tagged(OpReadResponse, 0x11, 0, false, all)
		at := uint64(0)
		for ; at+uint64(len(all)) < n; at += uint64(len(all)) {
			h := ddp.Tagged{Version: 1, RsvdULP: Control(1, OpReadResponse), STag: 0x11, TO: sink + at}
			h.Append(u[:0])
			// As if read straight into its place: 4 GiB need not be copied here.
			if _, ok, err := r.in.receiver.Begin(u, len(u)); !ok || err != nil {
				t.Fatalf("octet %d: %v", at, err)
			}
			if err := r.in.receiver.End(); err != nil {
				t.Fatalf("octet %d: %v", at, err)
			}
		}
		err := r.feed(tagged(OpReadResponse, 0x11, sink+at, true, octets(int(n-at)+over)))
		if over == 0 {
			want(t, "told", r.ulp.told(), "responded 1 0x0")
		} else if got := codeOf(t, err); got != "1/1/01" {
			t.Errorf("one octet more: code %s, want 1/1/01", got)
		}
	}
}
