package memory

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// A model is the obvious way to do what Table and Holder do: no hashing, no
// caching, no arithmetic that could wrap.
type model struct {
	table   *Table
	pds     [2]*PD
	streams [2]Stream
	holders [4]Holder // one for each domain and stream
	regions []*modelRegion
}

type modelRegion struct {
	*Region
	dead bool
}

func newModel() *model {
	m := &model{table: NewTable(Config{}), streams: [2]Stream{1, 2}}
	for i := range m.pds {
		m.pds[i] = m.table.AllocPD()
	}
	for i := range m.holders {
		m.holders[i].Init(m.table, m.pds[i/2], m.streams[i%2])
	}
	return m
}

// answer is what Resolve has to say.
func (m *model) answer(holder int, stag STag, to, n uint64, need Access) (*modelRegion, ddp.Fault) {
	if n == 0 {
		return nil, ddp.NoFault
	}
	for _, r := range m.regions {
		if r.dead || r.STag() != stag {
			continue
		}
		end, carry := bits.Add64(to, n, 0)
		limit, top := bits.Add64(r.Base(), r.Len(), 0)
		switch {
		case r.PD() != m.pds[holder/2], r.Stream() != 0 && r.Stream() != m.streams[holder%2]:
			return nil, ddp.FaultAssociation
		case need&^r.Access() != 0:
			return nil, ddp.FaultAccess
		case carry == 1 && end > 0:
			return nil, ddp.FaultWrap
		case to < r.Base(), carry > top, carry == top && end > limit:
			return nil, ddp.FaultBounds
		}
		return r, ddp.NoFault
	}
	return nil, ddp.FaultSTag
}

// step does one operation chosen by the octets that next supplies, on both
// sides, and compares.
func (m *model) step(t *testing.T, next func() byte) {
	pick := func() *modelRegion {
		if len(m.regions) == 0 {
			return nil
		}
		return m.regions[int(next())%len(m.regions)]
	}
	i := int(next()) % len(m.holders)
	h := &m.holders[i]
	switch op := next() % 16; op {
	case 0:
		cfg := RegionConfig{
			Access:    Access(next()),
			Key:       next() % 2,
			VA:        uint64(int8(next())), // near either end of the offsets
			ZeroBased: next()%2 == 0,
			Stream:    Stream(next() % 3),
		}
		if r, err := m.table.Register(m.pds[next()%2], make([]byte, next()%9), cfg); err == nil {
			m.regions = append(m.regions, &modelRegion{Region: r})
		}
	case 1, 2:
		r := pick()
		if r == nil {
			return
		}
		// Nobody may hold what is being revoked, or this goroutine waits for itself.
		for j := range m.holders {
			m.holders[j].Release()
		}
		if op == 1 {
			_ = m.table.Deallocate(r.Region)
		} else {
			m.table.Invalidate(uint32(r.STag()), r.PD(), r.Stream(), false)
		}
		r.dead = true
		for j := range m.holders {
			want := true
			for _, u := range m.holders[j].uses {
				want = want && !u.reg.revoked()
			}
			if got := m.holders[j].Acquire(); got != want {
				t.Fatalf("Acquire %v, want %v", got, want)
			}
		}
	case 3:
		h.Release()
	case 4:
		h.Forget()
	default:
		stag := STag(next())<<8 | STag(next())
		to := uint64(int8(next()))
		if r := pick(); r != nil && next()%8 != 0 {
			stag = r.STag() ^ STag(next()/255)
			to = r.Base() + uint64(int8(next()%16)-4)
		}
		n := uint64(next() % 12)
		if next()%32 == 0 {
			n = -n
		}
		need := Access(1) << (next() % 6)
		want, wantFault := m.answer(i, stag, to, n, need)
		pieces, fault := h.Resolve(nil, uint32(stag), to, n, need)
		if fault != wantFault {
			t.Fatalf("Resolve(%v, %#x, %#x, %v): %v, want %v", stag, to, n, need, fault, wantFault)
		}
		switch {
		case want == nil && len(pieces) != 0:
			t.Fatalf("Resolve(%v, %#x, %#x, %v): %d pieces, want none", stag, to, n, need, len(pieces))
		case want != nil && (len(pieces) != 1 || uint64(len(pieces[0])) != n || &pieces[0][0] != &want.Buf()[to-want.Base()]):
			t.Fatalf("Resolve(%v, %#x, %#x, %v): other octets than these", stag, to, n, need)
		}
	}
}

// end lets everything go; a hold lost on the way would make Close wait for ever.
func (m *model) end(t *testing.T) {
	for i := range m.holders {
		m.holders[i].Forget()
	}
	for _, r := range m.regions {
		if n := r.current.Load().word.Load() &^ revokedBit; n != 0 {
			t.Fatalf("STag %v is held %d times by nobody", r.STag(), n)
		}
	}
	m.table.Close()
}

// Claims: DDP-8.3.1-3 R-8.1.1-3 S-6.2.1-1 V-7.6.3-1
func TestResolveAgreesWithANaiveModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		m := newModel()
		for range 500 {
			m.step(t, func() byte { return byte(rng.Uint32()) })
		}
		m.end(t)
	}
}

func FuzzResolve(f *testing.F) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 0))
		ops := make([]byte, 400)
		for i := range ops {
			ops[i] = byte(rng.Uint32())
		}
		f.Add(ops)
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		m := newModel()
		for len(ops) > 0 {
			m.step(t, func() byte {
				if len(ops) == 0 {
					return 0
				}
				b := ops[0]
				ops = ops[1:]
				return b
			})
		}
		m.end(t)
	})
}
