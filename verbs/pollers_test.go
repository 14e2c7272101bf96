package verbs

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A noter is a Poller that notes what it was told.
type noter struct {
	polls, leads, free bool
	told               []string
}

func (n *noter) note(what string)      { n.told = append(n.told, what) }
func (n *noter) Poll() bool            { n.note("poll"); return false }
func (n *noter) CanPoll() bool         { return n.polls }
func (n *noter) Leave()                { n.note("leave") }
func (n *noter) CanLead() bool         { return n.leads }
func (n *noter) Lead() bool            { n.note("lead"); return n.free }
func (n *noter) Await(context.Context) { n.note("await") }
func (n *noter) Rouse()                { n.note("rouse") }
func (n *noter) Unlead()               { n.note("unlead") }

// wait is what Wait does, once.
func wait(cq *CQ, ctx context.Context) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if brief(ctx) || !cq.lead(ctx) {
		cq.leave()
	}
}

func TestWhatPollersAreTold(t *testing.T) {
	brief, cancel := context.WithTimeout(context.Background(), awaitLate/2)
	defer cancel()
	long, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for _, v := range []struct {
		name string
		p    *noter
		do   func(cq *CQ, p *noter)
		want string
	}{
		{"a wait", &noter{leads: true, free: true}, func(cq *CQ, _ *noter) { wait(cq, context.Background()) }, "lead await unlead poll"},
		{"a long wait", &noter{leads: true, free: true}, func(cq *CQ, _ *noter) { wait(cq, long) }, "lead await unlead poll"},
		{"a brief wait", &noter{leads: true, free: true}, func(cq *CQ, _ *noter) { wait(cq, brief) }, "leave"},
		{"one in vain", &noter{leads: true}, func(cq *CQ, _ *noter) { wait(cq, long) }, "lead leave"},
		{"one beside another", &noter{leads: true}, func(cq *CQ, p *noter) {
			cq.leading = p
			wait(cq, long)
		}, "lead leave"},
		{"one while another that is gone is led", &noter{leads: true, free: true}, func(cq *CQ, _ *noter) {
			cq.leading = &noter{}
			wait(cq, long)
		}, "leave"},
		{"a completion from elsewhere", &noter{leads: true}, func(cq *CQ, p *noter) {
			cq.leading, cq.waiters = p, 1
			cq.rouse()
		}, "rouse"},
		{"one, while somebody else waits to be woken", &noter{leads: true}, func(cq *CQ, p *noter) {
			cq.leading, cq.waiters = p, 2
			cq.rouse()
		}, ""},
		{"one of two", &noter{leads: true, free: true}, func(cq *CQ, p *noter) {
			cq.watch(&noter{leads: true, free: true})
			p.told = nil
			wait(cq, long)
		}, ""},
		{"one beside a poller", &noter{polls: true}, func(cq *CQ, _ *noter) { wait(cq, long) }, "leave"},
		{"the same again", &noter{leads: true, polls: true}, func(cq *CQ, p *noter) { cq.watch(p) }, ""},
		{"another", &noter{leads: true}, func(cq *CQ, _ *noter) { cq.watch(&noter{leads: true}) }, "leave"},
		{"another while it is led", &noter{leads: true}, func(cq *CQ, p *noter) {
			cq.leading = p
			cq.watch(&noter{leads: true})
		}, "leave rouse"},
		{"a wait for the one that is left", &noter{leads: true, free: true}, func(cq *CQ, p *noter) {
			other := &noter{leads: true}
			cq.watch(other)
			cq.unwatch(other)
			p.told = nil
			wait(cq, long)
		}, "lead await unlead poll"},
		{"a wait after it is gone", &noter{leads: true, polls: true}, func(cq *CQ, p *noter) {
			cq.unwatch(p)
			wait(cq, long)
		}, ""},
	} {
		cq := &CQ{}
		cq.watch(v.p)
		v.do(cq, v.p)
		if got := strings.Join(v.p.told, " "); got != v.want {
			t.Errorf("%s: %q, expected %q", v.name, got, v.want)
		}
	}
}
