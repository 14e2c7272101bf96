package rpcrdma

import (
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

func newTestPool(t *testing.T, idle int) (*pool, *verbs.RNIC) {
	t.Helper()
	rnic := must(verbs.Open(verbs.Config{}))(t)
	t.Cleanup(func() { _ = rnic.Close() })
	return newPool(must(rnic.AllocPD())(t), idle), rnic
}

func TestABufferIsOfTheLeastSizeThatFits(t *testing.T) {
	p, _ := newTestPool(t, 0)
	for _, c := range []struct{ n, want int }{
		{0, 4 << 10}, {1, 4 << 10}, {4096, 4 << 10}, {4097, 8 << 10}, {32 << 10, 32 << 10}, {32<<10 + 1, 68 << 10},
		{64<<10 + 4096, 68 << 10}, {64<<10 + 4097, 132 << 10}, {1<<20 + 128, 1<<20 + 4096}, {1<<20 + 4097, 2<<20 + 4096},
		{8<<20 + 4096, 8<<20 + 4096}, {8<<20 + 4097, 8<<20 + 4097}, {20 << 20, 20 << 20},
	} {
		b := must(p.get(c.n))(t)
		if len(b.b) != c.want || b.mr.Len() != uint64(c.want) {
			t.Errorf("%d octets got %d, want %d", c.n, len(b.b), c.want)
		}
		p.put(b)
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
}

// A buffer that is used again is registered already.
//
// Claims: P-7-4
func TestAPoolKeepsNoMoreThanItMay(t *testing.T) {
	p, rnic := newTestPool(t, 3*4096)
	var buffers []*buffer
	for range 5 {
		buffers = append(buffers, must(p.get(1))(t))
	}
	long := must(p.get(9 << 20))(t)
	last := buffers[2]
	for _, b := range buffers {
		p.put(b)
	}
	p.put(long)
	if u := rnic.Usage(); u.Regions != 3 || p.idle != 3*4096 {
		t.Errorf("%d regions and %d octets are kept, want 3 and %d", u.Regions, p.idle, 3*4096)
	}
	if b := must(p.get(4000))(t); b == last && p.idle == 2*4096 {
		p.put(b)
	} else {
		t.Errorf("%d octets are idle of three buffers less one, want %d", p.idle, 2*4096)
	}
	if b := must(p.get(4000))(t); b != last {
		t.Error("the buffer put back last is not the first to be used again")
	} else if err := p.close(); err != nil {
		t.Error(err)
	} else if p.put(b); rnic.Usage().Regions != 0 {
		t.Errorf("left after close: %+v", rnic.Usage())
	}
}

// What servers act on lies in the pool, and that no peer can write to it at any
// time is more than that it cannot any longer. Replies are sent from it.
//
// Claims: S-A-1
func TestNoPeerReachesThePool(t *testing.T) {
	p, _ := newTestPool(t, 0)
	b := must(p.get(1))(t)
	defer p.put(b)
	if a := must(b.mr.Query())(t); a.Access&(verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic) != 0 || a.RemoteAccess {
		t.Errorf("a peer may have %v", a.Access)
	}
}
