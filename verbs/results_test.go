package verbs_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// A kit is an RNIC with small limits, and one object of each kind.
type kit struct {
	t       *testing.T
	rnic    *verbs.RNIC
	other   *verbs.RNIC // an RNIC that the objects are not of
	pd, pd2 *verbs.PD
	cq      *verbs.CQ
	srq     *verbs.SRQ
	qp      *verbs.QP
	shared  *verbs.QP // of the S-RQ
	mr      *verbs.MR
	mw      *verbs.MW
}

// kitLimits leave room for one more of each kind than a kit has.
var kitLimits = verbs.Limits{
	PDs: 3, CQs: 2, CQEntries: 64, CompletionHandlers: 1, QPs: 3, WRs: 16, SGEs: 4, IRD: 4, ORD: 4, SRQs: 2, SRQWRs: 16,
	Regions: 2, Windows: 2, RegionsOctets: 1 << 20, ListEntries: 2,
}

func newKit(t *testing.T) *kit {
	k := &kit{t: t}
	k.rnic = must(verbs.Open(verbs.Config{Limits: kitLimits}))(t)
	k.other = must(verbs.Open(verbs.Config{}))(t)
	t.Cleanup(func() {
		_ = k.rnic.Close() // the test may have closed it
		_ = k.other.Close()
	})
	k.pd, k.pd2 = must(k.rnic.AllocPD())(t), must(k.rnic.AllocPD())(t)
	k.cq = must(k.rnic.CreateCQ(verbs.CQConfig{Entries: 32}))(t)
	k.srq = must(k.pd.CreateSRQ(verbs.SRQConfig{WRs: 8, SGEs: 2}))(t)
	k.qp = must(k.pd.CreateQP(k.config()))(t)
	shared := k.config()
	shared.SRQ = k.srq
	k.shared = must(k.pd.CreateQP(shared))(t)
	k.mr = must(k.pd.RegisterMR(verbs.MRConfig{Buf: make([]byte, 4096), VA: 1 << 20, Access: verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.BindWindow}))(t)
	k.mw = must(k.pd.AllocMW())(t)
	return k
}

// config is of a queue pair with the smallest of everything.
func (k *kit) config() verbs.QPConfig {
	return verbs.QPConfig{SendCQ: k.cq, RecvCQ: k.cq, SendDepth: 1, RecvDepth: 1, SendSGEs: 1, RecvSGEs: 1, IRD: 1, ORD: 1, BindWindows: true, Privileged: true}
}

// of is what is left of a verb's results when it is called so.
func of[T any](_ T, err error) error { return err }

// bound binds the window to the queue pair, which that connects.
func (k *kit) bound() {
	k.t.Helper()
	peer := newSide(k.t, verbs.QPConfig{})
	wires[0].connect(k.t, k.qp, peer.qp, cm.Params{})
	b := k.mw.Binding(k.mr, 0, 8, verbs.RemoteRead)
	check(k.t, k.qp.PostSend(verbs.SendWR{Op: verbs.OpBind, Bind: &b, Flags: verbs.Signaled}))
	wantDone(k.t, k.cq, done{0, verbs.Success})
}

// region is a configuration of which one thing is wrong.
func (k *kit) region(change func(*verbs.MRConfig)) verbs.MRConfig {
	cfg := verbs.MRConfig{
		List:   &verbs.BufferList{Buffers: memory.Pages(2, memory.MinPageSize), Size: memory.MinPageSize, FBO: 100, Length: 5000},
		Access: verbs.LocalRead, VA: 100,
	}
	change(&cfg)
	return cfg
}

// wrongRegions are what RI-Register and RI-Reregister refuse alike.
var wrongRegions = []struct {
	want   error
	change func(*verbs.MRConfig)
}{
	{verbs.ErrVA, func(c *verbs.MRConfig) { c.VA = 101 }},
	{verbs.ErrLength, func(c *verbs.MRConfig) { c.List.Length = 2*memory.MinPageSize - 99 }},
	{verbs.ErrFBO, func(c *verbs.MRConfig) { c.List.FBO = memory.MinPageSize }},
	{verbs.ErrAccess, func(c *verbs.MRConfig) { c.Access = verbs.LocalRead | verbs.RemoteWrite }},
	{verbs.ErrBufferEntry, func(c *verbs.MRConfig) { c.List.Buffers[1] = c.List.Buffers[1][1:] }},
	{verbs.ErrBufferSize, func(c *verbs.MRConfig) { c.List.Size = 100 }},
	{verbs.ErrResources, func(c *verbs.MRConfig) { c.List, c.Buf = nil, make([]byte, 1<<20+1) }},
}

// A result is a verb, one of its results, and how to get it.
type result struct {
	verb string
	want error
	get  func(k *kit) error
}

// results are those of Verbs §9.2 to §9.4 but ErrRNIC, which closed has.
func results() []result {
	all := []result{
		{"Open RNIC", verbs.ErrName, func(k *kit) error { return of(verbs.Open(verbs.Config{Name: "no name"})) }},
		{"Open RNIC", verbs.ErrRNICInUse, func(k *kit) error { return of(verbs.Open(verbs.Config{Name: k.rnic.Name()})) }},
		{"Open RNIC", verbs.ErrResources, func(k *kit) error {
			for {
				r, err := verbs.Open(verbs.Config{})
				if err != nil {
					return err
				}
				k.t.Cleanup(func() { _ = r.Close() })
			}
		}},
		{"Allocate PD", verbs.ErrResources, func(k *kit) error { return errors.Join(of(k.rnic.AllocPD()), of(k.rnic.AllocPD())) }},
		{"Deallocate PD", verbs.ErrPDInUse, func(k *kit) error { return k.pd.Dealloc() }},
		{"Deallocate PD", verbs.ErrPD, func(k *kit) error { check(k.t, k.pd2.Dealloc()); return k.pd2.Dealloc() }},

		{"Create CQ", verbs.ErrResources, func(k *kit) error {
			return errors.Join(of(k.rnic.CreateCQ(verbs.CQConfig{Entries: 1})), of(k.rnic.CreateCQ(verbs.CQConfig{Entries: 1})))
		}},
		{"Create CQ", verbs.ErrCQEntries, func(k *kit) error { return of(k.rnic.CreateCQ(verbs.CQConfig{Entries: 65})) }},
		{"Create CQ", verbs.ErrHandler, func(k *kit) error { return of(k.rnic.CreateCQ(verbs.CQConfig{Entries: 1, Handler: 7})) }},
		{"Query CQ", verbs.ErrCQ, func(k *kit) error { return of(k.gone().Query()) }},
		{"Modify CQ", verbs.ErrCQ, func(k *kit) error { return of(k.gone().Resize(2)) }},
		{"Modify CQ", verbs.ErrCQEntries, func(k *kit) error { return of(k.cq.Resize(65)) }},
		{"Modify CQ", verbs.ErrShrink, func(k *kit) error { k.flushed(); return of(k.cq.Resize(1)) }},
		{"Destroy CQ", verbs.ErrCQ, func(k *kit) error { return k.gone().Destroy() }},
		{"Destroy CQ", verbs.ErrCQInUse, func(k *kit) error { return k.cq.Destroy() }},

		{"Create S-RQ", verbs.ErrResources, func(k *kit) error {
			return errors.Join(of(k.pd.CreateSRQ(verbs.SRQConfig{WRs: 1})), of(k.pd.CreateSRQ(verbs.SRQConfig{WRs: 1})))
		}},
		{"Create S-RQ", verbs.ErrWRMax, func(k *kit) error { return of(k.pd.CreateSRQ(verbs.SRQConfig{WRs: 17})) }},
		{"Create S-RQ", verbs.ErrSGEMax, func(k *kit) error { return of(k.pd.CreateSRQ(verbs.SRQConfig{WRs: 1, SGEs: 5})) }},
		{"Create S-RQ", verbs.ErrSRQLimit, func(k *kit) error { return of(k.pd.CreateSRQ(verbs.SRQConfig{WRs: 1, Limit: 2})) }},
		{"Create S-RQ", verbs.ErrPD, func(k *kit) error { check(k.t, k.pd2.Dealloc()); return of(k.pd2.CreateSRQ(verbs.SRQConfig{WRs: 1})) }},
		{"Query S-RQ", verbs.ErrSRQ, func(k *kit) error { return of(k.goneSRQ().Query()) }},
		{"Modify S-RQ", verbs.ErrSRQ, func(k *kit) error { return of(k.goneSRQ().Modify(verbs.SRQModify{})) }},
		{"Modify S-RQ", verbs.ErrWRMax, func(k *kit) error { return of(k.srq.Modify(verbs.SRQModify{WRs: new(17)})) }},
		{"Modify S-RQ", verbs.ErrSRQLimit, func(k *kit) error { return of(k.srq.Modify(verbs.SRQModify{Limit: new(9)})) }},
		{"Modify S-RQ", verbs.ErrShrink, func(k *kit) error {
			check(k.t, of(k.srq.PostRecvs(make([]verbs.RecvWR, 2))))
			return of(k.srq.Modify(verbs.SRQModify{WRs: new(1)}))
		}},
		{"Modify S-RQ", verbs.ErrModifier, func(k *kit) error {
			check(k.t, of(k.srq.Modify(verbs.SRQModify{Limit: new(4), Arm: true})))
			return of(k.srq.Modify(verbs.SRQModify{WRs: new(3)}))
		}},
		{"Destroy S-RQ", verbs.ErrSRQ, func(k *kit) error { return k.goneSRQ().Destroy() }},
		{"Destroy S-RQ", verbs.ErrSRQInUse, func(k *kit) error { return k.srq.Destroy() }},

		{"Create QP", verbs.ErrResources, func(k *kit) error { return errors.Join(k.create(nil), k.create(nil)) }},
		{"Create QP", verbs.ErrCQ, func(k *kit) error { return k.create(func(c *verbs.QPConfig) { c.SendCQ = k.foreignCQ() }) }},
		{"Create QP", verbs.ErrSRQ, func(k *kit) error { return k.create(func(c *verbs.QPConfig) { c.SRQ = k.goneSRQ() }) }},
		{"Create QP", verbs.ErrORD, func(k *kit) error { return k.create(func(c *verbs.QPConfig) { c.ORD = 5 }) }},
		{"Create QP", verbs.ErrIRD, func(k *kit) error { return k.create(func(c *verbs.QPConfig) { c.IRD = 5 }) }},
		{"Create QP", verbs.ErrWRMax, func(k *kit) error { return k.create(func(c *verbs.QPConfig) { c.SendDepth = 17 }) }},
		{"Create QP", verbs.ErrWRMax, func(k *kit) error { return k.create(func(c *verbs.QPConfig) { c.RecvDepth = 17 }) }},
		{"Create QP", verbs.ErrSGEMax, func(k *kit) error { return k.create(func(c *verbs.QPConfig) { c.SendSGEs = 5 }) }},
		{"Create QP", verbs.ErrSGEMax, func(k *kit) error { return k.create(func(c *verbs.QPConfig) { c.WriteSGEs = 5 }) }},
		{"Create QP", verbs.ErrSGEMax, func(k *kit) error { return k.create(func(c *verbs.QPConfig) { c.RecvSGEs = 5 }) }},
		{"Create QP", verbs.ErrRQLimit, func(k *kit) error {
			return k.create(func(c *verbs.QPConfig) { c.SRQ, c.RQLimit = k.srq, 9 })
		}},
		{"Create QP", verbs.ErrPD, func(k *kit) error { check(k.t, k.pd2.Dealloc()); return of(k.pd2.CreateQP(k.config())) }},
		{"Query QP", verbs.ErrQP, func(k *kit) error { return of(k.goneQP().Query()) }},
		{"Destroy QP", verbs.ErrQP, func(k *kit) error { return k.goneQP().Destroy() }},
		{"Destroy QP", verbs.ErrQPWindows, func(k *kit) error { k.bound(); return k.qp.Destroy() }},

		{"Allocate STag", verbs.ErrResources, func(k *kit) error { return errors.Join(of(k.pd.AllocMR(1, true)), of(k.pd.AllocMR(1, true))) }},
		{"Allocate STag", verbs.ErrPD, func(k *kit) error { check(k.t, k.pd2.Dealloc()); return of(k.pd2.AllocMR(1, true)) }},
		{"Register MR", verbs.ErrPD, func(k *kit) error {
			check(k.t, k.pd2.Dealloc())
			return of(k.pd2.Register(make([]byte, 1), verbs.LocalRead))
		}},
		{"Query MR", verbs.ErrSTag, func(k *kit) error { return of(k.rnic.QueryMR(k.mw.STag().Index())) }},
		{"Deallocate STag", verbs.ErrSTag, func(k *kit) error { return k.rnic.DeallocateSTag(0) }},
		{"Deallocate STag", verbs.ErrMRWindows, func(k *kit) error { k.bound(); return k.mr.Deallocate() }},
		{"Reregister MR", verbs.ErrSTag, func(k *kit) error {
			check(k.t, k.mr.Deallocate())
			return k.mr.Reregister(k.pd, k.region(func(*verbs.MRConfig) {}))
		}},
		{"Reregister MR", verbs.ErrMRWindows, func(k *kit) error {
			k.bound()
			return k.mr.Reregister(k.pd, k.region(func(*verbs.MRConfig) {}))
		}},
		{"Reregister MR", verbs.ErrPD, func(k *kit) error {
			check(k.t, k.pd2.Dealloc())
			return k.mr.Reregister(k.pd2, k.region(func(*verbs.MRConfig) {}))
		}},
		{"Register Shared MR", verbs.ErrResources, func(k *kit) error { return errors.Join(k.share(nil), k.share(nil)) }},
		{"Register Shared MR", verbs.ErrSTag, func(k *kit) error { return k.share(func(c *verbs.SharedConfig) { c.ExistingKey++ }) }},
		{"Register Shared MR", verbs.ErrAccess, func(k *kit) error { return k.share(func(c *verbs.SharedConfig) { c.Access = 0 }) }},
		{"Register Shared MR", verbs.ErrVA, func(k *kit) error { return k.share(func(c *verbs.SharedConfig) { c.VA = 1<<64 - 1 }) }},
		{"Register Shared MR", verbs.ErrPD, func(k *kit) error {
			check(k.t, k.pd2.Dealloc())
			return of(k.mr.RegisterShared(k.pd2, verbs.SharedConfig{ExistingKey: k.mr.STag().Key(), Access: verbs.LocalRead}))
		}},
		{"Allocate MW", verbs.ErrResources, func(k *kit) error { return errors.Join(of(k.pd.AllocMW()), of(k.pd.AllocMW())) }},
		{"Allocate MW", verbs.ErrPD, func(k *kit) error { check(k.t, k.pd2.Dealloc()); return of(k.pd2.AllocMW()) }},
		{"Query MW", verbs.ErrSTag, func(k *kit) error { return of(k.rnic.QueryMW(k.mr.STag().Index())) }},

		{"PostSQ", verbs.ErrQP, func(k *kit) error { return k.goneQP().PostSend(verbs.SendWR{Op: verbs.OpSend}) }},
		{"PostSQ", verbs.ErrFull, func(k *kit) error { return of(k.qp.PostSends([]verbs.SendWR{{Op: verbs.OpSend}, {Op: verbs.OpSend}})) }},
		{"PostSQ", verbs.ErrOp, func(k *kit) error { return k.qp.PostSend(verbs.SendWR{Op: verbs.OpRecv}) }},
		{"PostSQ", verbs.ErrSGLFormat, func(k *kit) error { return k.qp.PostSend(verbs.SendWR{Op: verbs.OpRead}) }},
		{"PostSQ", verbs.ErrSGLLength, func(k *kit) error {
			return k.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: make([]verbs.SGE, 5)})
		}},
		{"PostSQ", verbs.ErrModifier, func(k *kit) error { return k.qp.PostSend(verbs.SendWR{Op: verbs.OpInvalidate}) }},
		{"PostRQ", verbs.ErrQP, func(k *kit) error { return k.goneQP().PostRecv(verbs.RecvWR{}) }},
		{"PostRQ", verbs.ErrSRQ, func(k *kit) error { return k.goneSRQ().PostRecv(verbs.RecvWR{}) }},
		{"PostRQ", verbs.ErrFull, func(k *kit) error { return of(k.qp.PostRecvs(make([]verbs.RecvWR, 2))) }},
		{"PostRQ", verbs.ErrFull, func(k *kit) error { return of(k.srq.PostRecvs(make([]verbs.RecvWR, 9))) }},
		{"PostRQ", verbs.ErrSGLLength, func(k *kit) error { return k.qp.PostRecv(verbs.RecvWR{SGL: make([]verbs.SGE, 5)}) }},
		{"PostRQ", verbs.ErrSGLLength, func(k *kit) error { return k.srq.PostRecv(verbs.RecvWR{SGL: make([]verbs.SGE, 5)}) }},
		{"PostRQ", verbs.ErrRQOfSRQ, func(k *kit) error { return k.shared.PostRecv(verbs.RecvWR{}) }},
		{"Poll for Completion", verbs.ErrCQEmpty, func(k *kit) error { return of(k.cq.PollOne()) }},
		{"Poll for Completion", verbs.ErrCQ, func(k *kit) error { return of(k.gone().PollOne()) }},
		{"Request Completion Notification", verbs.ErrCQ, func(k *kit) error { return k.gone().RequestNotify(verbs.NotifyNext) }},
		{"Request Completion Notification", verbs.ErrNotify, func(k *kit) error { return k.cq.RequestNotify(9) }},
		{"Set Completion Event Handler", verbs.ErrHandler, func(k *kit) error { return of(k.rnic.SetCompletionHandler(nil, 3)) }},
		{"Set Completion Event Handler", verbs.ErrResources, func(k *kit) error {
			fn := func(*verbs.CQ) {}
			return errors.Join(of(k.rnic.SetCompletionHandler(fn, 0)), of(k.rnic.SetCompletionHandler(fn, 0)))
		}},
	}
	for _, w := range wrongRegions {
		all = append(all,
			result{"Register MR", w.want, func(k *kit) error { return of(k.pd.RegisterMR(k.region(w.change))) }},
			result{"Reregister MR", w.want, func(k *kit) error { return k.mr.Reregister(k.pd, k.region(w.change)) }})
	}
	return append(all, modifyResults()...)
}

func (k *kit) create(change func(*verbs.QPConfig)) error {
	cfg := k.config()
	if change != nil {
		change(&cfg)
	}
	return of(k.pd.CreateQP(cfg))
}

func (k *kit) share(change func(*verbs.SharedConfig)) error {
	cfg := verbs.SharedConfig{ExistingKey: k.mr.STag().Key(), Access: verbs.LocalRead}
	if change != nil {
		change(&cfg)
	}
	return of(k.mr.RegisterShared(k.pd, cfg))
}

// gone, goneSRQ and goneQP have been destroyed.
func (k *kit) gone() *verbs.CQ {
	cq := must(k.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(k.t)
	check(k.t, cq.Destroy())
	return cq
}

func (k *kit) goneSRQ() *verbs.SRQ {
	srq := must(k.pd.CreateSRQ(verbs.SRQConfig{WRs: 1}))(k.t)
	check(k.t, srq.Destroy())
	return srq
}

func (k *kit) goneQP() *verbs.QP {
	check(k.t, k.qp.Destroy())
	return k.qp
}

func (k *kit) foreignCQ() *verbs.CQ { return must(k.other.CreateCQ(verbs.CQConfig{Entries: 1}))(k.t) }

// flushed leaves two completions in the CQ.
func (k *kit) flushed() {
	check(k.t, k.qp.PostSend(verbs.SendWR{Op: verbs.OpSend}))
	check(k.t, k.qp.PostRecv(verbs.RecvWR{}))
	k.qp.Abort()
}

// Each verb has each of the results that the Verbs list for it, and errors.Is
// tells them apart (Verbs §9.5.1).
//
// Claims: V-9-1 V-9-7 V-9-8
func TestEveryVerbHasEachOfItsResults(t *testing.T) {
	for _, r := range results() {
		t.Run(r.verb+"/"+r.want.Error(), func(t *testing.T) {
			err := r.get(newKit(t))
			for name, is := range declaredResults(t) {
				if errors.Is(err, is) != (is == r.want) {
					t.Errorf("%v: errors.Is %s is %v", err, name, is != r.want)
				}
			}
		})
	}
}

// No result is declared that no verb has.
func TestEveryResultIsOfSomeVerb(t *testing.T) {
	have := []error{verbs.ErrRNIC, verbs.ErrBlockList} // of a closed RNIC; of an RNIC without Block Lists
	for _, r := range results() {
		have = append(have, r.want)
	}
	for name, is := range declaredResults(t) {
		if !slices.Contains(have, is) {
			t.Errorf("%s is the result of no verb", name)
		}
	}
}

// resultNames are the results by their names.
var resultNames = map[string]error{
	"ErrResources":   verbs.ErrResources,
	"ErrRNIC":        verbs.ErrRNIC,
	"ErrName":        verbs.ErrName,
	"ErrRNICInUse":   verbs.ErrRNICInUse,
	"ErrBlockList":   verbs.ErrBlockList,
	"ErrPD":          verbs.ErrPD,
	"ErrPDInUse":     verbs.ErrPDInUse,
	"ErrCQ":          verbs.ErrCQ,
	"ErrCQInUse":     verbs.ErrCQInUse,
	"ErrCQEntries":   verbs.ErrCQEntries,
	"ErrCQEmpty":     verbs.ErrCQEmpty,
	"ErrHandler":     verbs.ErrHandler,
	"ErrNotify":      verbs.ErrNotify,
	"ErrShrink":      verbs.ErrShrink,
	"ErrSRQ":         verbs.ErrSRQ,
	"ErrSRQInUse":    verbs.ErrSRQInUse,
	"ErrSRQLimit":    verbs.ErrSRQLimit,
	"ErrRQOfSRQ":     verbs.ErrRQOfSRQ,
	"ErrRQLimit":     verbs.ErrRQLimit,
	"ErrQP":          verbs.ErrQP,
	"ErrAttribute":   verbs.ErrAttribute,
	"ErrWRMax":       verbs.ErrWRMax,
	"ErrSGEMax":      verbs.ErrSGEMax,
	"ErrORD":         verbs.ErrORD,
	"ErrIRD":         verbs.ErrIRD,
	"ErrState":       verbs.ErrState,
	"ErrFlushing":    verbs.ErrFlushing,
	"ErrLLP":         verbs.ErrLLP,
	"ErrQPWindows":   verbs.ErrQPWindows,
	"ErrFull":        verbs.ErrFull,
	"ErrOp":          verbs.ErrOp,
	"ErrSGLFormat":   verbs.ErrSGLFormat,
	"ErrSGLLength":   verbs.ErrSGLLength,
	"ErrModifier":    verbs.ErrModifier,
	"ErrSTag":        verbs.ErrSTag,
	"ErrMRWindows":   verbs.ErrMRWindows,
	"ErrAccess":      verbs.ErrAccess,
	"ErrLength":      verbs.ErrLength,
	"ErrVA":          verbs.ErrVA,
	"ErrFBO":         verbs.ErrFBO,
	"ErrBufferEntry": verbs.ErrBufferEntry,
	"ErrBufferSize":  verbs.ErrBufferSize,
}

// declaredResults is resultNames, which has to hold all that errors.go declares.
func declaredResults(t *testing.T) map[string]error {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, parser.SkipObjectResolution)
	check(t, err)
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if name := v.Names[0].Name; strings.HasPrefix(name, "Err") && resultNames[name] == nil {
				t.Errorf("%s is not among the results that are tested", name)
			}
		}
		return true
	})
	return resultNames
}

// modifyResults are those of Modify QP.
func modifyResults() []result {
	all := []result{
		{"Modify QP", verbs.ErrQP, func(k *kit) error { return of(k.goneQP().Modify(verbs.Idle, verbs.QPModify{})) }},
		{"Modify QP", verbs.ErrState, func(k *kit) error { return of(k.qp.Modify(verbs.Closing, verbs.QPModify{})) }},
		{"Modify QP", verbs.ErrLLP, func(k *kit) error { return of(k.qp.Modify(verbs.RTS, verbs.QPModify{})) }},
		{"Modify QP", verbs.ErrAttribute, func(k *kit) error {
			return of(k.qp.Modify(verbs.Error, verbs.QPModify{ORD: new(1)}))
		}},
		{"Modify QP", verbs.ErrShrink, func(k *kit) error {
			check(k.t, of(k.qp.Modify(verbs.Idle, verbs.QPModify{SendDepth: new(2)})))
			check(k.t, of(k.qp.PostSends([]verbs.SendWR{{Op: verbs.OpSend}, {Op: verbs.OpSend}})))
			return of(k.qp.Modify(verbs.Idle, verbs.QPModify{SendDepth: new(1)}))
		}},
		{"Modify QP", verbs.ErrRQLimit, func(k *kit) error {
			return of(k.shared.Modify(verbs.Idle, verbs.QPModify{RQLimit: new(9)}))
		}},
		{"Modify QP", verbs.ErrModifier, func(k *kit) error {
			return of(k.shared.Modify(verbs.Idle, verbs.QPModify{RecvDepth: new(2)}))
		}},
		{"Modify QP", verbs.ErrFlushing, func(k *kit) error {
			peer := newSide(k.t, verbs.QPConfig{})
			x, y := nettest.Pipe()
			nc := &stuck{Conn: x, entered: make(chan struct{}), release: make(chan struct{})}
			join(k.t, k.qp, peer.qp, nc, y, cm.Params{})
			nc.stuck.Store(true)
			check(k.t, k.qp.PostSend(verbs.SendWR{Op: verbs.OpSend}))
			<-nc.entered
			defer close(nc.release)
			check(k.t, of(k.qp.Modify(verbs.Error, verbs.QPModify{})))
			return of(k.qp.Modify(verbs.Idle, verbs.QPModify{}))
		}},
		{"Modify QP", verbs.ErrResources, func(k *kit) error {
			rnic := must(verbs.Open(verbs.Config{Limits: verbs.Limits{TotalIRD: 2}}))(k.t)
			defer rnic.Close()
			cq := must(rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(k.t)
			qp := must(must(rnic.AllocPD())(k.t).CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, IRD: 2}))(k.t)
			return of(qp.Modify(verbs.Idle, verbs.QPModify{IRD: new(3)}))
		}},
	}
	for _, m := range []struct {
		want   error
		change verbs.QPModify
	}{
		{verbs.ErrWRMax, verbs.QPModify{SendDepth: new(17)}},
		{verbs.ErrWRMax, verbs.QPModify{RecvDepth: new(17)}},
		{verbs.ErrORD, verbs.QPModify{ORD: new(5)}},
		{verbs.ErrIRD, verbs.QPModify{IRD: new(5)}},
	} {
		all = append(all, result{"Modify QP", m.want, func(k *kit) error { return of(k.qp.Modify(verbs.Idle, m.change)) }})
	}
	return all
}

// A stuck connection does not let go of what is written to it.
type stuck struct {
	*nettest.Conn
	stuck            atomic.Bool
	entered, release chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	if s.stuck.CompareAndSwap(true, false) {
		close(s.entered)
		<-s.release
	}
	return s.Conn.Write(b)
}
