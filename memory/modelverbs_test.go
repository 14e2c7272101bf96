package memory

import (
	"slices"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// Verbs on the table and on the model, and the comparison of their results.

// verb does a verb. Nobody holds memory meanwhile: this goroutine would wait for itself.
func (m *model) verb(t *testing.T, op byte, next func() byte) {
	for j := range m.holders {
		m.holders[j].Release()
	}
	defer func() {
		for j := range m.holders {
			want := true
			for _, u := range m.holders[j].uses {
				want = want && !u.reg.revoked()
			}
			if got := m.holders[j].Acquire(); got != want {
				t.Fatalf("Acquire %v, want %v", got, want)
			}
		}
	}()
	pd, stream := m.pds[next()%2], Stream(1+next()%2)
	r, w := m.pick(next, false), m.pick(next, true)
	switch op {
	case 0:
		q := m.request(next)
		octets, size, fbo, entries, wrong := q.memory()
		got, err := m.table.Register(pd, q.buf, q.cfg)
		if agree(t, "register", err, append(wrong, m.room(1, len(octets))...)) {
			o := &modelObject{object: &got.object, pd: pd, stream: q.cfg.Stream, remote: q.remote(), entries: entries, size: size, fbo: fbo}
			o.become(&q, octets)
			m.objects = append(m.objects, o)
		}
	case 1:
		entries, remote := int(next()%5), next()%2 == 0
		var wrong []error
		if entries > modelEntries {
			wrong = []error{ErrEntryLimit}
		}
		got, err := m.table.AllocRegion(pd, entries, remote)
		if agree(t, "allocate region", err, append(wrong, m.room(1, 0)...)) {
			m.objects = append(m.objects, &modelObject{
				object: &got.object, pd: pd, stag: got.STag(), remote: remote, entries: max(entries, 1), size: 1,
			})
		}
	case 2:
		if r != nil {
			m.reregister(t, r, pd, m.request(next))
		}
	case 3:
		if r != nil {
			m.registerShared(t, r, r.stag^STag(next()/200), pd, m.request(next))
		}
	case 4, 5:
		if r != nil {
			m.fastRegister(t, r, pd, stream, m.request(next))
		}
	case 6:
		got, err := m.table.AllocWindow(pd)
		var wrong []error
		if m.usage().Windows == modelWindows {
			wrong = []error{ErrWindowLimit}
		}
		if agree(t, "allocate window", err, wrong) {
			m.objects = append(m.objects, &modelObject{object: &got.object, pd: pd, stag: got.STag()})
		}
	case 7, 8:
		if r != nil && w != nil {
			m.bind(t, w, r, pd, stream, next)
		}
	case 9:
		if o := []*modelObject{r, w}[next()%2]; o != nil {
			m.invalidate(t, o, o.stag^STag(next()/200), pd, stream, next()%2 == 0)
		}
	case 10:
		if o := []*modelObject{r, w}[next()%2]; o != nil && next()%2 == 0 {
			m.deallocate(t, o, next()%2 == 0)
		}
	case 11:
		var wrong []error
		if m.count(func(o *modelObject) bool { return o.valid && o.under != nil && o.stream == stream }) > 0 {
			wrong = []error{ErrStreamWindows}
		}
		if m.retired[stream] {
			m.table.ForgetStream(stream)
			m.retired[stream] = false
		} else if agree(t, "retire", m.table.RetireStream(stream), wrong) {
			m.retired[stream] = true
		}
	}
}

func (m *model) reregister(t *testing.T, r *modelObject, pd *PD, q request) {
	octets, size, fbo, entries, wrong := q.memory()
	err := m.table.Reregister(r.region, pd, q.buf, q.cfg)
	switch {
	case r.gone || r.shared:
		agree(t, "reregister", err, []error{ErrRegion})
		return
	case m.windows(r) > 0:
		agree(t, "reregister", err, []error{ErrWindows})
		return
	}
	r.valid = false
	if !agree(t, "reregister", err, append(wrong, m.room(0, len(octets))...)) {
		r.gone = true
		return
	}
	r.pd, r.stream, r.remote, r.entries, r.size, r.fbo = pd, q.cfg.Stream, q.remote(), max(r.entries, entries), size, fbo
	r.become(&q, octets)
}

func (m *model) registerShared(t *testing.T, r *modelObject, stag STag, pd *PD, q request) {
	wrong := append(q.wrong(len(r.octets), r.size, r.fbo), m.room(1, len(r.octets))...)
	if r.gone || !r.valid || stag != r.stag {
		wrong = append(wrong, ErrRegion)
	}
	got, err := m.table.RegisterShared(stag, pd, q.cfg)
	if agree(t, "register shared", err, wrong) {
		o := &modelObject{
			object: &got.object, pd: pd, stream: q.cfg.Stream, remote: q.remote(), shared: true,
			entries: r.entries, size: r.size, fbo: r.fbo,
		}
		o.become(&q, r.octets)
		m.objects = append(m.objects, o)
		r.shared = true
	}
}

func (m *model) fastRegister(t *testing.T, r *modelObject, pd *PD, stream Stream, q request) {
	q.cfg.RemoteAccess = RemoteAllowed
	octets, size, fbo, entries, wrong := q.memory()
	wrong = append(wrong, m.room(0, len(octets))...)
	if r.gone || r.shared {
		wrong = append(wrong, ErrRegion)
	}
	if r.pd != pd || r.stream != 0 && r.stream != stream {
		wrong = append(wrong, ErrPD)
	}
	if r.valid {
		wrong = append(wrong, ErrNotInvalid)
	}
	if entries > r.entries {
		wrong = append(wrong, ErrListLength)
	}
	if q.cfg.Access.Remote() && !r.remote {
		wrong = append(wrong, ErrAccess)
	}
	if agree(t, "fast-register", m.table.FastRegister(pd, stream, makeSTag(r.index, q.cfg.Key), q.buf, q.cfg), wrong) {
		r.size, r.fbo = size, fbo
		r.become(&q, octets)
	}
}

func (m *model) bind(t *testing.T, w, r *modelObject, pd *PD, stream Stream, next func() byte) {
	b := Binding{
		Window: makeSTag(w.index, next()%2), Region: r.stag ^ STag(next()/240), VA: r.base + uint64(int8(next()%8)-2),
		Length: uint64(next() % 8), ZeroBased: next()%2 == 0, Access: Access(next()) & anyAccess,
	}
	if next()%2 == 0 {
		b.Access &= anyRemote & r.access << 2
	}
	if next()%32 == 0 {
		b.Length = -b.Length
	}
	var wrong []error
	if w.gone {
		wrong = append(wrong, ErrWindow)
	}
	if w.valid {
		wrong = append(wrong, ErrNotInvalid)
	}
	if r.gone || !r.valid || r.stag != b.Region {
		wrong = append(wrong, ErrRegion)
	}
	if w.pd != pd || r.pd != pd || r.stream != 0 && r.stream != stream {
		wrong = append(wrong, ErrPD)
	}
	rights := b.Access != 0 && b.Access&^anyRemote == 0 && (b.Access&RemoteRead == 0 || r.access&LocalRead != 0) &&
		(b.Access&RemoteWrite == 0 || r.access&LocalWrite != 0) && (b.Access&RemoteAtomic == 0 || r.access&anyLocal == anyLocal)
	if r.access&BindWindow == 0 || r.zero || !rights {
		wrong = append(wrong, ErrAccess)
	}
	if wraps(b.VA, b.Length) {
		wrong = append(wrong, ErrWrap)
	}
	if b.Length == 0 || !r.within(b.VA, b.Length) {
		wrong = append(wrong, ErrBounds)
	}
	if m.retired[stream] {
		wrong = append(wrong, ErrRetired)
	}
	if !agree(t, "bind", m.table.Bind(pd, stream, b), wrong) {
		return
	}
	at := offset(b.VA, r.base).Uint64()
	w.valid, w.stag, w.stream, w.access, w.under, w.zero, w.base = true, b.Window, stream, b.Access, r, b.ZeroBased, b.VA
	w.octets = r.octets[at : at+b.Length]
	if w.zero {
		w.base = 0
	}
}

func (m *model) invalidate(t *testing.T, o *modelObject, stag STag, pd *PD, stream Stream, remote bool) {
	var wrong []ddp.Fault
	blocked := o.shared || m.windows(o) > 0
	foreign := o.pd != pd || o.stream != 0 && o.stream != stream
	if o.window != nil {
		foreign = o.valid && o.stream != stream || !o.valid && o.pd != pd
	}
	if o.gone || o.valid && stag != o.stag || blocked && !remote {
		wrong = append(wrong, ddp.FaultSTag)
	}
	if foreign || blocked && remote {
		wrong = append(wrong, ddp.FaultAssociation)
	}
	if remote && o.window == nil && !(o.valid && o.access.Remote() || !o.valid && o.remote) {
		wrong = append(wrong, ddp.FaultAccess)
	}
	fault := m.table.Invalidate(uint32(stag), pd, stream, remote)
	if len(wrong) == 0 {
		wrong = []ddp.Fault{ddp.NoFault}
	}
	if !slices.Contains(wrong, fault) {
		t.Fatalf("invalidate: %v, want one of %v", fault, wrong)
	}
	if fault == ddp.NoFault {
		o.valid, o.under = false, nil
	}
}

func (m *model) deallocate(t *testing.T, o *modelObject, byIndex bool) {
	var err error
	unknown := ErrRegion
	switch {
	case byIndex:
		err = m.table.DeallocateIndex(o.index)
	case o.window != nil:
		err, unknown = m.table.DeallocateWindow(o.window), ErrWindow
	default:
		err = m.table.Deallocate(o.region)
	}
	var wrong []error
	if o.gone {
		wrong = []error{unknown}
	} else if m.windows(o) > 0 {
		wrong = []error{ErrWindows}
	}
	if agree(t, "deallocate", err, wrong) {
		o.gone, o.valid, o.under = true, false, nil
	}
}
