package verbs_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// honoured checks that each exported field of C has an effect: the result of observe for
// base has to change when the field does. beside names the fields that cannot be observed
// in this way, and the test that checks each.
func honoured[C any](t *testing.T, base func(b *bench) C, changes map[string]func(b *bench, c *C), beside map[string]string, observe func(b *bench, c C) string) {
	t.Helper()
	typ := reflect.TypeFor[C]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		change, ok := changes[name]
		if !ok {
			if beside[name] == "" {
				t.Errorf("%v.%s: nothing shows that it is honoured", typ, name)
			}
			continue
		}
		t.Run(fmt.Sprintf("%v.%s", typ, name), func(t *testing.T) {
			b := newBench(t)
			plain, changed := base(b), base(b)
			change(b, &changed)
			// Each from the same beginning: STags are chosen at random.
			if one, other := observe(b, plain), observe(b, changed); one == other {
				t.Errorf("it makes no difference: %s", one)
			}
		})
	}
}

// Every input of a verb is used, and visible in the results of the query verbs (Verbs §9).
//
// Claims: V-9-7 V-9-8
// Claims: V-9.2.3.1-2 V-9.2.5.1-2 V-9.2.6.2-2 V-9.2.6.5-4 V-9.2.6.6-2 V-9.3.1.1-10 V-9.3.1.1-13 V-9.3.1.1-19 V-9.3.1.1-20 V-9.5-1
func TestEveryInputModifierIsHonoured(t *testing.T) {
	honoured(t, func(b *bench) verbs.CQConfig { return verbs.CQConfig{Entries: 1} },
		map[string]func(*bench, *verbs.CQConfig){
			"Entries": func(_ *bench, c *verbs.CQConfig) { c.Entries = 2 },
			"Handler": func(b *bench, c *verbs.CQConfig) { c.Handler = b.handle },
		},
		map[string]string{
			"Spin": "TestSpinningWaitFindsACompletion",
			"Sink": "TestASinkTakesCompletionsAndFreesTheirPlaces",
		},
		func(b *bench, c verbs.CQConfig) string {
			cq := must(b.rnic.CreateCQ(c))(b.t)
			return fmt.Sprintf("%+v", must(cq.Query())(b.t))
		})

	honoured(t, func(b *bench) verbs.SRQConfig { return verbs.SRQConfig{WRs: 3} },
		map[string]func(*bench, *verbs.SRQConfig){
			"WRs":   func(_ *bench, c *verbs.SRQConfig) { c.WRs = 4 },
			"SGEs":  func(_ *bench, c *verbs.SRQConfig) { c.SGEs = 2 },
			"Limit": func(_ *bench, c *verbs.SRQConfig) { c.Limit = 2 },
		}, nil,
		func(b *bench, c verbs.SRQConfig) string {
			srq := must(b.pd.CreateSRQ(c))(b.t)
			return fmt.Sprintf("%+v", must(srq.Query())(b.t))
		})

	// queuePair describes a queue pair, without its QP ID.
	queuePair := func(b *bench, c verbs.QPConfig) string {
		a := must(must(b.pd.CreateQP(c))(b.t).Query())(b.t)
		a.Num = 0
		return fmt.Sprintf("%+v", a)
	}
	qp := func(b *bench) verbs.QPConfig { return verbs.QPConfig{SendCQ: b.sendCQ, RecvCQ: b.recvCQ} }
	honoured(t, qp,
		map[string]func(*bench, *verbs.QPConfig){
			"SendCQ":        func(b *bench, c *verbs.QPConfig) { c.SendCQ = b.cq },
			"RecvCQ":        func(b *bench, c *verbs.QPConfig) { c.RecvCQ = b.cq },
			"SendDepth":     func(_ *bench, c *verbs.QPConfig) { c.SendDepth = 3 },
			"RecvDepth":     func(_ *bench, c *verbs.QPConfig) { c.RecvDepth = 3 },
			"SendSGEs":      func(_ *bench, c *verbs.QPConfig) { c.SendSGEs, c.WriteSGEs = 3, 4 },
			"RecvSGEs":      func(_ *bench, c *verbs.QPConfig) { c.RecvSGEs = 3 },
			"WriteSGEs":     func(_ *bench, c *verbs.QPConfig) { c.WriteSGEs = 3 },
			"SRQ":           func(b *bench, c *verbs.QPConfig) { c.SRQ = b.srq },
			"IRD":           func(_ *bench, c *verbs.QPConfig) { c.IRD = 2 },
			"ORD":           func(_ *bench, c *verbs.QPConfig) { c.ORD = 2 },
			"NoRemoteRead":  func(_ *bench, c *verbs.QPConfig) { c.NoRemoteRead = true },
			"NoRemoteWrite": func(_ *bench, c *verbs.QPConfig) { c.NoRemoteWrite = true },
			"BindWindows":   func(_ *bench, c *verbs.QPConfig) { c.BindWindows = true },
			"Privileged":    func(_ *bench, c *verbs.QPConfig) { c.Privileged = true },
			"Extensions":    func(_ *bench, c *verbs.QPConfig) { c.Extensions = true },
		},
		map[string]string{
			"RQLimit":            "below, with an S-RQ",
			"ReadSinkLocalWrite": "TestTheSinkOfAReadNeedsTheRightThatIsConfigured",
			"Strict":             "TestAStrictQueuePairRefusesWhatWouldFail",
			"PauseOnEmptyRQ":     "TestAPausedQueuePairGoesOnWithTheNextReceive",
			"SetAside":           "TestAnswersOvertakeAMessageThatIsSetAside",
			"Refill":             "TestARefillPostsReceivesWhenAMessageNeedsOne",
			"Announced":          "TestQueuePairsThatAnnounceLearnOfEachOther",
		}, queuePair)
	b := newBench(t)
	shared := verbs.QPConfig{SendCQ: b.sendCQ, RecvCQ: b.recvCQ, SRQ: b.srq}
	limited := shared
	limited.RQLimit = 1
	if queuePair(b, shared) == queuePair(b, limited) {
		t.Error("QPConfig.RQLimit makes no difference")
	}

	// region describes a region, without its index, which is chosen at random.
	region := func(b *bench, mr *verbs.MR) string {
		a := must(mr.Query())(b.t)
		a.Index = 0
		return fmt.Sprintf("%+v, %#x octets at %#x", a, mr.Len(), mr.Base())
	}
	registration := map[string]func(*bench, *verbs.MRConfig){
		"Buf":          func(b *bench, c *verbs.MRConfig) { c.Buf = b.buf[:9] },
		"List":         func(b *bench, c *verbs.MRConfig) { c.Buf, c.List, c.VA = nil, list(2, 0, 5000), 1<<20 },
		"Access":       func(_ *bench, c *verbs.MRConfig) { c.Access = verbs.LocalWrite },
		"Key":          func(_ *bench, c *verbs.MRConfig) { c.Key = 0xA5 },
		"VA":           func(_ *bench, c *verbs.MRConfig) { c.VA = 77 },
		"ZeroBased":    func(_ *bench, c *verbs.MRConfig) { c.ZeroBased = true },
		"RemoteAccess": func(_ *bench, c *verbs.MRConfig) { c.RemoteAccess = verbs.RemoteAllowed },
	}
	beside := map[string]string{"QP": "TestAnSTagGivesItsOwnRightsToItsOwnQueuePair"}
	plain := func(b *bench) verbs.MRConfig {
		return verbs.MRConfig{Buf: b.buf[:8], Access: verbs.LocalRead, VA: 1 << 20}
	}
	honoured(t, plain, registration, beside, func(b *bench, c verbs.MRConfig) string { return region(b, must(b.pd.RegisterMR(c))(b.t)) })
	honoured(t, plain, registration, beside, func(b *bench, c verbs.MRConfig) string {
		mr := must(b.pd.Register(make([]byte, 1), allRights))(b.t)
		check(b.t, mr.Reregister(b.pd, c))
		return region(b, mr)
	})
	honoured(t, func(*bench) verbs.SharedConfig { return verbs.SharedConfig{Access: verbs.LocalRead, VA: 1 << 20} },
		map[string]func(*bench, *verbs.SharedConfig){
			"ExistingKey":  func(_ *bench, c *verbs.SharedConfig) { c.ExistingKey = 1 },
			"Access":       func(_ *bench, c *verbs.SharedConfig) { c.Access = verbs.LocalWrite },
			"Key":          func(_ *bench, c *verbs.SharedConfig) { c.Key = 0xA5 },
			"VA":           func(_ *bench, c *verbs.SharedConfig) { c.VA = 77 },
			"ZeroBased":    func(_ *bench, c *verbs.SharedConfig) { c.ZeroBased = true },
			"RemoteAccess": func(_ *bench, c *verbs.SharedConfig) { c.RemoteAccess = verbs.RemoteAllowed },
		}, nil,
		func(b *bench, c verbs.SharedConfig) string {
			mr, err := b.twin.RegisterShared(b.pd, c)
			if err != nil {
				return err.Error()
			}
			return region(b, mr)
		})

	// What a Bind and a Fast-Register make.
	honoured(t, func(b *bench) verbs.Binding { return b.spare.Binding(b.under, 0, 50, verbs.RemoteRead) },
		map[string]func(*bench, *verbs.Binding){
			"Window":    func(_ *bench, c *verbs.Binding) { c.Window ^= 0x80 },
			"VA":        func(_ *bench, c *verbs.Binding) { c.VA++ },
			"Length":    func(_ *bench, c *verbs.Binding) { c.Length++ },
			"ZeroBased": func(_ *bench, c *verbs.Binding) { c.ZeroBased = true },
			"Access":    func(_ *bench, c *verbs.Binding) { c.Access = verbs.RemoteWrite },
			"Region": func(b *bench, c *verbs.Binding) {
				c.Region = must(b.pd.RegisterMR(verbs.MRConfig{Buf: b.buf[:100], VA: 4096, Access: allRights | verbs.BindWindow}))(b.t).STag()
			},
		}, nil,
		func(b *bench, c verbs.Binding) string {
			b.post(verbs.SendWR{ID: 1, Op: verbs.OpBind, Flags: verbs.Signaled, Bind: &c})
			wantDone(b.t, b.sendCQ, done{1, verbs.Success})
			told := fmt.Sprintf("%+v", must(b.spare.Query())(b.t))
			b.post(verbs.SendWR{ID: 2, Op: verbs.OpInvalidate, Flags: verbs.Signaled, Invalidate: c.Window})
			wantDone(b.t, b.sendCQ, done{2, verbs.Success})
			return told
		})
	honoured(t, func(b *bench) verbs.FastRegister {
		f := b.free.FastRegister(b.buf[:8], verbs.LocalRead)
		f.VA = 1 << 20
		return f
	},
		map[string]func(*bench, *verbs.FastRegister){
			"STag":      func(_ *bench, c *verbs.FastRegister) { c.STag ^= 0x80 },
			"Buf":       func(b *bench, c *verbs.FastRegister) { c.Buf = b.buf[:9] },
			"List":      func(_ *bench, c *verbs.FastRegister) { c.Buf, c.List = nil, *list(1, 0, 4000) },
			"Access":    func(_ *bench, c *verbs.FastRegister) { c.Access = verbs.LocalWrite },
			"VA":        func(_ *bench, c *verbs.FastRegister) { c.VA = 77 },
			"ZeroBased": func(_ *bench, c *verbs.FastRegister) { c.ZeroBased = true },
		}, nil,
		func(b *bench, c verbs.FastRegister) string {
			b.post(verbs.SendWR{ID: 1, Op: verbs.OpFastRegister, Flags: verbs.Signaled, FastRegister: &c})
			wantDone(b.t, b.sendCQ, done{1, verbs.Success})
			told := region(b, b.free)
			b.post(verbs.SendWR{ID: 2, Op: verbs.OpInvalidate, Flags: verbs.Signaled, Invalidate: c.STag})
			wantDone(b.t, b.sendCQ, done{2, verbs.Success})
			return told
		})
}
