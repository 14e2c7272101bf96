package verbs_test

import (
	"go/token"
	"reflect"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// A handle shows nothing of what is behind it: queues and tables are reached
// through the verbs alone, and nobody but the RNIC makes a handle that works
// (Verbs §10.6).
//
// Claims: V-10.6-3 V-9.1-6
func TestHandlesShowNothingOfWhatIsBehindThem(t *testing.T) {
	inside := reflect.TypeFor[verbs.RNIC]().PkgPath()
	for _, handle := range []reflect.Type{
		reflect.TypeFor[verbs.RNIC](), reflect.TypeFor[verbs.PD](), reflect.TypeFor[verbs.CQ](), reflect.TypeFor[verbs.QP](),
		reflect.TypeFor[verbs.SRQ](), reflect.TypeFor[verbs.MR](),
	} {
		for i := range handle.NumField() {
			if f := handle.Field(i); f.IsExported() {
				t.Errorf("%v shows its field %s", handle, f.Name)
			}
		}
		// Nor does a method give out something whose name is not for others.
		methods := reflect.PointerTo(handle)
		for i := range methods.NumMethod() {
			m := methods.Method(i)
			for j := range m.Type.NumOut() {
				out := m.Type.Out(j)
				for k := out.Kind(); k == reflect.Pointer || k == reflect.Slice || k == reflect.Chan; k = out.Kind() {
					out = out.Elem()
				}
				if out.PkgPath() == inside && !token.IsExported(out.Name()) {
					t.Errorf("%v.%s gives out a %v", handle, m.Name, out)
				}
			}
		}
	}
}

// Consumers that do not trust each other have an RNIC each: no handle and no STag
// of one is of use with another's (Verbs §5.1, §10.3, §10.6).
//
// Claims: V-10.3-11 V-10.6-4
// Claims: V-5.1-1 V-10.6-2
func TestWhatBelongsToOneRNICIsUnknownToAnother(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		one, other := newSide(t, reads), newSide(t, reads)
		for name, cfg := range map[string]verbs.QPConfig{
			"send CQ":    {SendCQ: other.sendCQ, RecvCQ: one.recvCQ},
			"receive CQ": {SendCQ: one.sendCQ, RecvCQ: other.recvCQ},
		} {
			_, err := one.pd.CreateQP(cfg)
			if wantError(t, err, verbs.ErrCQ); err == nil {
				t.Errorf("a queue pair was made with another RNIC's %s", name)
			}
		}
		_, err := one.pd.RegisterMR(verbs.MRConfig{Buf: make([]byte, 8), Access: verbs.LocalRead, QP: other.qp})
		wantError(t, err, verbs.ErrQP)

		w.connect(t, one.qp, other.qp, cm.Params{})
		foreign := other.mr.STag()
		for taken := true; taken; { // by chance both RNICs may have given the same
			if taken = foreign == one.mr.STag(); taken {
				foreign = other.region(0, 8, allRights).STag()
			}
		}
		one.post(verbs.SendWR{ID: 1, Op: verbs.OpSend, SGL: []verbs.SGE{{STag: foreign, Length: 8}}})
		wantDone(t, one.sendCQ, done{1, verbs.InvalidSTag})
		if !other.mr.Valid() {
			t.Error("the other's region has suffered")
		}
	})
}

// What an RNIC keeps for itself is no memory region: none of the STags that a
// consumer or a peer may try is the RNIC's own (Verbs §7.5).
//
// Claims: V-7.5-2
func TestAnRNICHasNoSTagsOfItsOwn(t *testing.T) {
	r := must(verbs.Open(verbs.Config{}))(t)
	defer func() { check(t, r.Close()) }()
	pd := must(r.AllocPD())(t)
	cq := must(r.CreateCQ(verbs.CQConfig{Entries: 100}))(t)
	srq := must(pd.CreateSRQ(verbs.SRQConfig{WRs: 10}))(t)
	for range 10 {
		must(pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SRQ: srq, IRD: 4, ORD: 4}))(t)
	}
	if u := r.Usage(); u.Regions != 0 || u.Windows != 0 {
		t.Errorf("%d regions and %d windows before the consumer made any", u.Regions, u.Windows)
	}
}
