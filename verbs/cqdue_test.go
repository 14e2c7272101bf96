package verbs_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// warnings counts what the RNIC is warned of, and keeps the numbers of the last.
type warnings struct {
	slog.Handler
	n    int
	last map[string]int64
}

func (w *warnings) Enabled(context.Context, slog.Level) bool { return true }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn {
		w.n++
		w.last = map[string]int64{}
		r.Attrs(func(a slog.Attr) bool {
			w.last[a.Key] = a.Value.Int64()
			return true
		})
	}
	return nil
}

// want fails the test unless one warning has come since, with these numbers; of 0
// entries it is none.
func (w *warnings) want(t *testing.T, what string, entries, due int64) {
	t.Helper()
	switch {
	case entries == 0 && w.n != 0:
		t.Errorf("%s: warned %d times, expected none: %v", what, w.n, w.last)
	case entries != 0 && (w.n != 1 || w.last["entries"] != entries || w.last["workRequests"] != due):
		t.Errorf("%s: warned %d times, of %v, expected once, of %d and %d", what, w.n, w.last, entries, due)
	}
	w.n = 0
}

// A CQ into which more may complete than it holds is not refused: the consumer may
// know better. The log says so, once.
func TestACQThatIsSmallerThanItsQueuesIsLogged(t *testing.T) {
	w := &warnings{Handler: slog.DiscardHandler}
	r := must(verbs.Open(verbs.Config{Logger: slog.New(w)}))(t)
	defer r.Close()
	pd := must(r.AllocPD())(t)
	small := must(r.CreateCQ(verbs.CQConfig{Entries: 31}))(t)
	w.want(t, "no queues", 0, 0)

	cfg := verbs.QPConfig{SendCQ: small, RecvCQ: small} // 16 each
	one := must(pd.CreateQP(cfg))(t)
	w.want(t, "one entry too few", 31, 32)
	two := must(pd.CreateQP(cfg))(t)
	w.want(t, "it is known", 0, 0)
	must(small.Resize(64))(t)
	w.want(t, "it grew", 0, 0)
	must(small.Resize(63))(t)
	w.want(t, "it shrank", 63, 64)
	check(t, two.Destroy())
	must(small.Resize(32))(t)
	w.want(t, "one queue pair less", 0, 0)
	must(one.Modify(verbs.Idle, verbs.QPModify{RecvDepth: new(20)}))(t)
	w.want(t, "a deeper queue", 32, 36)
	must(one.Modify(verbs.Idle, verbs.QPModify{RecvDepth: new(16)}))(t)
	must(one.Modify(verbs.Idle, verbs.QPModify{SendDepth: new(17)}))(t)
	w.want(t, "the other one", 32, 33)

	srq := must(pd.CreateSRQ(verbs.SRQConfig{WRs: 100}))(t)
	large := must(r.CreateCQ(verbs.CQConfig{Entries: 131}))(t)
	shared := verbs.QPConfig{SendCQ: large, RecvCQ: large, SRQ: srq, SendDepth: 10}
	var last *verbs.QP
	for range 3 { // the receives are the same 100
		last = must(pd.CreateQP(shared))(t)
	}
	w.want(t, "shared receives", 0, 0)
	check(t, last.Destroy())
	must(pd.CreateQP(shared))(t)
	w.want(t, "shared receives", 0, 0)
	must(pd.CreateQP(shared))(t)
	w.want(t, "shared receives", 131, 140)
}
