package memory

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// A model is the obvious way to do what Table and Holder do: no hashing, no
// caching, no arithmetic that could wrap, each octet by itself.
type model struct {
	table   *Table
	pds     [2]*PD
	holders [4]Holder // one for each domain and stream; the first may use the STag of zero
	objects []*modelObject
	retired [3]bool // streams
}

type modelObject struct {
	*object
	gone   bool
	valid  bool
	stag   STag
	pd     *PD
	stream Stream
	access Access
	base   uint64
	zero   bool
	octets []*byte

	// Of regions:
	shared, remote bool
	entries        int
	size, fbo      uint64

	under *modelObject // of a window that is bound
}

const (
	modelRegions, modelWindows = 8, 4
	modelBytes                 = 250
	modelEntries               = 3
	modelBlock                 = 64
)

var modelPhysical = make([]byte, 5)

func newModel() *model {
	m := &model{table: NewTable(Config{
		MaxRegions: modelRegions, MaxWindows: modelWindows, MaxBytes: modelBytes, MaxEntries: modelEntries,
		Block: true, Physical: modelPhysical, Rand: rand.NewChaCha8([32]byte{}), // so that a failure comes again
	})}
	for i := range m.pds {
		m.pds[i] = m.table.AllocPD()
	}
	for i := range m.holders {
		m.holders[i].Init(m.table, m.pds[i/2], Stream(1+i%2))
	}
	m.holders[0].AllowZero()
	// What denies zero to peers, and what is no object of the table.
	m.objects = append(m.objects, &modelObject{valid: true, gone: true, access: anyLocal, octets: addresses(modelPhysical)})
	return m
}

func addresses(buf []byte) (octets []*byte) {
	for i := range buf {
		octets = append(octets, &buf[i])
	}
	return octets
}

// count is how many objects f holds for.
func (m *model) count(f func(o *modelObject) bool) (n int) {
	for _, o := range m.objects {
		if f(o) {
			n++
		}
	}
	return n
}

func (m *model) usage() (u Usage) {
	for _, o := range m.objects {
		switch {
		case o.gone:
		case o.window != nil:
			u.Windows++
		default:
			u.Regions++
			if o.valid {
				u.Bytes += uint64(len(o.octets))
			}
		}
	}
	return u
}

// windows is how many windows are bound to o.
func (m *model) windows(o *modelObject) int {
	return m.count(func(w *modelObject) bool { return w.valid && w.under == o })
}

// offset is the distance from base to to, if it is not negative.
func offset(to, base uint64) *big.Int {
	return new(big.Int).Sub(new(big.Int).SetUint64(to), new(big.Int).SetUint64(base))
}

// wraps says that n octets from to on do not all have an offset.
func wraps(to, n uint64) bool {
	end := new(big.Int).Add(new(big.Int).SetUint64(to), new(big.Int).SetUint64(n))
	return end.Cmp(new(big.Int).Lsh(big.NewInt(1), 64)) > 0
}

// within says that n octets from to on are among those of o.
func (o *modelObject) within(to, n uint64) bool {
	off := offset(to, o.base)
	end := new(big.Int).Add(off, new(big.Int).SetUint64(n))
	return off.Sign() >= 0 && end.Cmp(big.NewInt(int64(len(o.octets)))) <= 0
}

// answer is what Resolve has to say.
func (m *model) answer(holder int, stag STag, to, n uint64, need Access) ([]*byte, ddp.Fault) {
	if n == 0 {
		return nil, ddp.NoFault
	}
	for _, o := range m.objects {
		if !o.valid || o.stag != stag {
			continue
		}
		window, zero := o.object != nil && o.window != nil, o.object == nil
		switch {
		case zero && (holder != 0 || need&anyLocal == 0), window && o.stream == Stream(1+holder%2) && need&anyLocal != 0:
			return nil, ddp.FaultSTag
		case !zero && !window && o.pd != m.pds[holder/2], o.stream != 0 && o.stream != Stream(1+holder%2):
			return nil, ddp.FaultAssociation
		case need&^o.access != 0:
			return nil, ddp.FaultAccess
		case wraps(to, n):
			return nil, ddp.FaultWrap
		case !o.within(to, n):
			return nil, ddp.FaultBounds
		}
		at := offset(to, o.base).Uint64()
		return o.octets[at : at+n], ddp.NoFault
	}
	return nil, ddp.FaultSTag
}

// A request is memory and how it is to be registered.
type request struct {
	buf []byte
	cfg RegionConfig
}

func (m *model) request(next func() byte) (q request) {
	q.cfg = RegionConfig{
		Access: Access(next()) & (anyAccess | 1<<7), Key: next() % 2, VA: uint64(int8(next())), // near either end of the offsets
		ZeroBased: next()%4 == 0, Stream: Stream(next() % 4 / 3), RemoteAccess: RemoteAccess(next() % 3),
	}
	if next()%4 != 0 {
		q.cfg.Access = anyLocal | q.cfg.Access&anyAccess
	}
	if next()%3 != 0 {
		q.buf = make([]byte, next()%9)
		return q
	}
	size := modelBlock
	if next()%16 == 0 {
		size--
	}
	l := &BufferList{Size: size, FBO: int(next()%16) * 5, Length: uint64(next() % 200)}
	for range next() % 5 {
		l.Buffers = append(l.Buffers, make([]byte, size))
	}
	if len(l.Buffers) > 0 && next()%16 == 0 {
		l.Buffers[0] = l.Buffers[0][1:]
	}
	if next()%8 != 0 {
		q.cfg.VA = uint64(int64(int8(next())))&^(modelBlock-1) + uint64(l.FBO)
	}
	q.cfg.List = l
	return q
}

// wrong is everything that is wrong with memory and addressing, size and fbo being
// those of its list.
func (q *request) wrong(octets int, size, fbo uint64) (errs []error) {
	if !q.cfg.Access.Valid() || q.cfg.RemoteAccess == RemoteForbidden && q.cfg.Access.Remote() {
		errs = append(errs, ErrAccess)
	}
	if !q.cfg.ZeroBased && size > 0 && (q.cfg.VA%size != fbo || octets > 0 && wraps(q.cfg.VA, uint64(octets))) {
		errs = append(errs, ErrVA)
	}
	return errs
}

// memory is the octets that q names, and all that is wrong with it.
func (q *request) memory() (octets []*byte, size, fbo uint64, entries int, errs []error) {
	size, entries = 1, 1
	if l := q.cfg.List; l == nil {
		if octets = addresses(q.buf); len(octets) == 0 {
			errs = append(errs, ErrLength)
		}
	} else {
		size, fbo, entries = uint64(l.Size), uint64(l.FBO), len(l.Buffers)
		for _, b := range l.Buffers {
			octets = append(octets, addresses(b)...)
			if len(b) != l.Size {
				errs = append(errs, ErrBufferEntry)
			}
		}
		if l.Size < modelBlock {
			errs = append(errs, ErrBufferSize)
		}
		if l.FBO >= l.Size {
			errs = append(errs, ErrFBO)
		}
		if entries > modelEntries {
			errs = append(errs, ErrEntryLimit)
		}
		if l.Length == 0 || fbo+l.Length > uint64(len(octets)) {
			errs = append(errs, ErrLength)
			octets = nil
		} else {
			octets = octets[fbo : fbo+l.Length]
		}
	}
	return octets, size, fbo, entries, append(errs, q.wrong(len(octets), size, fbo)...)
}

// room is what stands against n more octets in regions more regions.
func (m *model) room(regions, n int) (errs []error) {
	u := m.usage()
	if u.Regions+regions > modelRegions {
		errs = append(errs, ErrRegionLimit)
	}
	if u.Bytes+uint64(n) > modelBytes {
		errs = append(errs, ErrByteLimit)
	}
	return errs
}

// agree fails the test unless err is one of wrong, or nil if there is none.
func agree(t *testing.T, verb string, err error, wrong []error) bool {
	t.Helper()
	if len(wrong) == 0 && err == nil {
		return true
	}
	if !slices.ContainsFunc(wrong, func(w error) bool { return errors.Is(err, w) }) {
		t.Fatalf("%s: %v, want one of %v", verb, err, wrong)
	}
	return false
}

// become is what a region is after it was registered as q says.
func (o *modelObject) become(q *request, octets []*byte) {
	o.valid, o.access, o.stag = true, q.cfg.Access, makeSTag(o.index, q.cfg.Key)
	o.octets, o.zero, o.base = octets, q.cfg.ZeroBased, q.cfg.VA
	if o.zero {
		o.base = 0
	}
}

func (q *request) remote() bool {
	return q.cfg.RemoteAccess == RemoteAllowed || q.cfg.RemoteAccess == RemoteAsAccess && q.cfg.Access.Remote()
}

// pick is an object that exists or did, of a kind; nil if there is none.
func (m *model) pick(next func() byte, window bool) *modelObject {
	var of []*modelObject
	for _, o := range m.objects {
		if o.object != nil && (o.window != nil) == window {
			of = append(of, o)
		}
	}
	if len(of) == 0 {
		return nil
	}
	return of[int(next())%len(of)]
}

// step does one operation chosen by the octets that next supplies, on both
// sides, and compares.
func (m *model) step(t *testing.T, next func() byte) {
	t.Helper()
	if op := next() % 24; op < 12 {
		m.verb(t, op, next)
		m.compare(t, next)
	} else {
		m.access(t, op, next)
	}
}

// compare compares what there is, and one object in all that can be asked of it.
func (m *model) compare(t *testing.T, next func() byte) {
	if got, want := m.table.Usage(), m.usage(); got != want {
		t.Fatalf("usage %+v, want %+v", got, want)
	}
	o := m.pick(next, next()%2 == 0)
	if o == nil {
		return
	}
	if o.Valid() != o.valid || o.valid && (o.STag() != o.stag || o.Base() != o.base || o.ZeroBased() != o.zero || o.Len() != uint64(len(o.octets))) {
		t.Fatalf("STag %v: it differs from %+v", o.STag(), o)
	}
	var key uint8
	if o.valid {
		key = o.stag.Key()
	}
	if o.window != nil {
		a, err := m.table.QueryWindow(o.index)
		want := WindowAttributes{Index: o.index, Valid: o.valid, PD: o.pd, Key: key}
		if o.valid {
			want.Access, want.Stream, want.Region = o.access, o.stream, o.under.index
			want.Base, want.Length, want.ZeroBased = o.base, uint64(len(o.octets)), o.zero
		}
		if (err != nil) != o.gone || !o.gone && a != want {
			t.Fatalf("window %+v, %v, want %+v", a, err, want)
		}
		return
	}
	a, err := m.table.QueryRegion(o.index)
	want := RegionAttributes{
		Index: o.index, Key: key, Valid: o.valid, Shared: o.shared, RemoteAccess: o.remote, PD: o.pd, Entries: o.entries,
		Access: o.access, Windows: m.windows(o),
	}
	if (err != nil) != o.gone || !o.gone && a != want {
		t.Fatalf("region %+v, %v, want %+v", a, err, want)
	}
}

// access uses memory.
func (m *model) access(t *testing.T, op byte, next func() byte) {
	i := int(next()) % len(m.holders)
	h := &m.holders[i]
	switch op {
	case 12:
		h.Release()
		return
	case 13:
		h.Forget()
		return
	}
	stag := STag(next())<<8 | STag(next())
	to := uint64(int8(next()))
	if r := m.pick(next, op%3 == 0); r != nil && next()%8 != 0 {
		stag = r.stag ^ STag(next()/255)
		to = r.base + uint64(int8(next()%16)-4)
	} else if next()%2 == 0 {
		stag = 0
	}
	n := uint64(next() % 12)
	switch next() % 32 {
	case 0:
		n = -n
	case 1, 2, 3:
		n *= 16
	}
	need := Access(1) << (next() % 6)
	want, wantFault := m.answer(i, stag, to, n, need)
	pieces, fault := h.Resolve(nil, uint32(stag), to, n, need)
	if fault != wantFault {
		t.Fatalf("Resolve(%v, %#x, %#x, %v): %v, want %v", stag, to, n, need, fault, wantFault)
	}
	var got []*byte
	for _, p := range pieces {
		got = append(got, addresses(p)...)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("Resolve(%v, %#x, %#x, %v): other octets than these, %d of %d", stag, to, n, need, len(got), len(want))
	}
}

// end releases everything; a hold lost on the way would make Close wait forever.
func (m *model) end(t *testing.T) {
	for i := range m.holders {
		m.holders[i].Forget()
	}
	for _, o := range m.objects[1:] {
		want := 0
		if o.region != nil {
			want = o.region.windows // each holds it
		}
		if n := int(o.current.Load().word.Load() &^ revokedBit); n != want {
			t.Fatalf("STag %v is held %d times, want %d", o.STag(), n, want)
		}
	}
	m.table.Close()
}

// Claims: DDP-8.3.1-3 R-8.1.1-3 S-6.2.1-1 V-7.6.3-1
// Claims: V-7.10.6.1-1 V-7.10.6.2-1 V-7.6.3-3
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
		ops := make([]byte, 600)
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
