package verbs

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A noter is a Poller that records its calls.
type noter struct {
	free  bool // a visitor may wait
	calls []string
}

func (n *noter) note(what string) { n.calls = append(n.calls, what) }
func (n *noter) Poll() bool       { n.note("poll"); return false }
func (n *noter) Wait(context.Context) bool {
	n.note("wait")
	return n.free
}
func (n *noter) Interrupt() { n.note("interrupt") }
func (n *noter) Leave()     { n.note("leave") }

// wait is what Wait does, once.
func wait(cq *CQ, ctx context.Context) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if brief(ctx) || !cq.lead(ctx) {
		cq.leaveToReaders()
	}
}

func TestWhatPollersAreTold(t *testing.T) {
	brief, cancel := context.WithTimeout(context.Background(), briefWait/2)
	defer cancel()
	long, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for _, v := range []struct {
		name string
		spin time.Duration
		p    *noter
		do   func(cq *CQ, p *noter)
		want string
	}{
		{"a wait", 0, &noter{free: true}, func(cq *CQ, _ *noter) { wait(cq, context.Background()) }, "wait poll"},
		{"a long wait", 0, &noter{free: true}, func(cq *CQ, _ *noter) { wait(cq, long) }, "wait poll"},
		{"a brief wait", 0, &noter{free: true}, func(cq *CQ, _ *noter) { wait(cq, brief) }, "leave"},
		{"one that is refused", 0, &noter{}, func(cq *CQ, _ *noter) { wait(cq, long) }, "wait leave"},
		{"one beside another", 0, &noter{}, func(cq *CQ, p *noter) {
			cq.leading = p
			wait(cq, long)
		}, "leave"},
		{"a completion from elsewhere", 0, &noter{}, func(cq *CQ, p *noter) {
			cq.leading, cq.waiters = p, 1
			cq.wakeWaiter()
		}, "interrupt"},
		{"one, while another waits to be woken", 0, &noter{}, func(cq *CQ, p *noter) {
			cq.leading, cq.waiters = p, 2
			cq.wakeWaiter()
		}, ""},
		{"one of two", 0, &noter{free: true}, func(cq *CQ, p *noter) {
			cq.watch(&noter{free: true})
			p.calls = nil
			wait(cq, long)
		}, ""},
		{"one of two, beside pollers", 1, &noter{free: true}, func(cq *CQ, p *noter) {
			cq.watch(&noter{free: true})
			p.calls = nil
			wait(cq, long)
		}, "leave"},
		{"a look", 1, &noter{}, func(cq *CQ, _ *noter) { cq.Poll(nil) }, "poll"},
		{"a look without Spin", 0, &noter{}, func(cq *CQ, _ *noter) { cq.Poll(nil) }, ""},
		{"the same again", 0, &noter{}, func(cq *CQ, p *noter) { cq.watch(p) }, ""},
		{"another", 0, &noter{}, func(cq *CQ, _ *noter) { cq.watch(&noter{}) }, "leave"},
		{"another while it is led", 0, &noter{}, func(cq *CQ, p *noter) {
			cq.leading = p
			cq.watch(&noter{})
		}, "leave interrupt"},
		{"a wait for the one that is left", 0, &noter{free: true}, func(cq *CQ, p *noter) {
			other := &noter{}
			cq.watch(other)
			cq.unwatch(other)
			p.calls = nil
			wait(cq, long)
		}, "wait poll"},
		{"a wait after it is gone", 0, &noter{}, func(cq *CQ, p *noter) {
			cq.unwatch(p)
			wait(cq, long)
		}, ""},
	} {
		cq := &CQ{cfg: CQConfig{Spin: v.spin}}
		cq.watch(v.p)
		v.do(cq, v.p)
		if got := strings.Join(v.p.calls, " "); got != v.want {
			t.Errorf("%s: %q, expected %q", v.name, got, v.want)
		}
	}
}
