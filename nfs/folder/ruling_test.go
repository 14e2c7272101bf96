package folder

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-rdma/weft/nfs"
)

func TestRulingsLastUntilTheAttributesChange(t *testing.T) {
	var r rulings
	asked := 0
	old, new := nfs.Time{Sec: 1000}, nfs.Time{Sec: 1000, Nsec: 1}
	later := old.Time().Add(time.Hour)
	a, b, c := &creds{uid: 1, gid: 2}, &creds{uid: 1, gid: 2, gids: []uint32{3}}, &creds{uid: 4, gid: 2}
	for i, tc := range []struct {
		creds  *creds
		rights uint32
		ctime  nfs.Time
		now    time.Time
		says   error
		want   error
		asks   bool
	}{
		{a, mayRead, old, later, nfs.ErrAcces, nfs.ErrAcces, true},
		{a, mayRead, old, later, nil, nfs.ErrAcces, false},
		{a, mayWrite, old, later, nil, nil, true}, // another right
		{b, mayRead, old, later, nil, nil, true},  // another group
		{c, mayRead, old, later, nil, nil, true},  // another user
		{a, mayRead, old, later, nil, nfs.ErrAcces, false},
		{a, mayRead, new, later, nil, nil, true}, // changed meanwhile
		{c, mayRead, new, later, nfs.ErrAcces, nfs.ErrAcces, true},
		{a, mayRead, new, later, nfs.ErrAcces, nil, false},
		{b, mayRead, new, later, nfs.ErrIO, nfs.ErrIO, true}, // an error is no ruling
		{b, mayRead, new, later, nil, nil, true},
		{a, mayRead, new, new.Time().Add(ctimeAge - 1), nfs.ErrAcces, nfs.ErrAcces, true}, // a change may follow in the same tick
	} {
		before := asked
		st := info{Attributes: nfs.Attributes{Ctime: tc.ctime}}
		err := r.ask(tc.creds, &st, tc.rights, tc.now, func() error { asked++; return tc.says })
		if !errors.Is(err, tc.want) || asked-before > 0 != tc.asks {
			t.Errorf("step %d: %v, asked %v, want %v, %v", i, err, asked > before, tc.want, tc.asks)
		}
	}
}
