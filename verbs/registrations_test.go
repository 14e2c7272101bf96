package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// list is a Page List of n pages, b octets of the first left out.
func list(n, fbo int, length uint64) *verbs.BufferList {
	return &verbs.BufferList{Buffers: memory.Pages(n, memory.MinPageSize), Size: memory.MinPageSize, FBO: fbo, Length: length}
}

// registrations are the mistakes that a registration can have, of whatever verb.
func registrations(b *bench) map[string]struct {
	cfg    verbs.MRConfig
	result error
} {
	type mistake = struct {
		cfg    verbs.MRConfig
		result error
	}
	with := func(l *verbs.BufferList, change func(*verbs.BufferList)) *verbs.BufferList {
		change(l)
		return l
	}
	const page = memory.MinPageSize
	return map[string]mistake{
		"no rights":                        {verbs.MRConfig{Buf: b.buf}, verbs.ErrAccess},
		"no local right":                   {verbs.MRConfig{Buf: b.buf, Access: verbs.RemoteRead}, verbs.ErrAccess},
		"remote without local":             {verbs.MRConfig{Buf: b.buf, Access: verbs.LocalRead | verbs.RemoteWrite}, verbs.ErrAccess},
		"remote, which is forbidden":       {verbs.MRConfig{Buf: b.buf, Access: verbs.LocalRead | verbs.RemoteRead, RemoteAccess: verbs.RemoteForbidden}, verbs.ErrAccess},
		"no octets":                        {verbs.MRConfig{Access: verbs.LocalRead}, verbs.ErrLength},
		"a list of no octets":              {verbs.MRConfig{List: list(1, 0, 0), Access: verbs.LocalRead}, verbs.ErrLength},
		"a list that is too short":         {verbs.MRConfig{List: list(2, 1, 2*page), Access: verbs.LocalRead}, verbs.ErrLength},
		"an offset beyond 2^64":            {verbs.MRConfig{Buf: b.buf[:16], VA: 1<<64 - 15, Access: verbs.LocalRead}, verbs.ErrVA},
		"a VA that does not fit":           {verbs.MRConfig{List: list(1, 1, 8), VA: page, Access: verbs.LocalRead}, verbs.ErrVA},
		"an offset behind the page":        {verbs.MRConfig{List: list(2, page, 8), Access: verbs.LocalRead, ZeroBased: true}, verbs.ErrFBO},
		"a negative offset":                {verbs.MRConfig{List: list(2, -1, 8), Access: verbs.LocalRead, ZeroBased: true}, verbs.ErrFBO},
		"a page size of 3000":              {verbs.MRConfig{List: with(list(1, 0, 8), func(l *verbs.BufferList) { l.Size = 3000 }), Access: verbs.LocalRead}, verbs.ErrBufferSize},
		"a page size of 2 KiB":             {verbs.MRConfig{List: with(list(1, 0, 8), func(l *verbs.BufferList) { l.Size = 2048 }), Access: verbs.LocalRead}, verbs.ErrBufferSize},
		"pages of different size":          {verbs.MRConfig{List: with(list(2, 0, 8), func(l *verbs.BufferList) { l.Buffers[1] = l.Buffers[1][:8] }), Access: verbs.LocalRead}, verbs.ErrBufferEntry},
		"a page at an odd address":         {verbs.MRConfig{List: with(list(2, 0, 8), func(l *verbs.BufferList) { l.Buffers = [][]byte{memory.Pages(1, 2*page)[0][1 : page+1]} }), Access: verbs.LocalRead}, verbs.ErrBufferEntry},
		"more pages than the limit":        {verbs.MRConfig{List: list(5, 0, 5*page), Access: verbs.LocalRead}, verbs.ErrResources},
		"more octets than the limit":       {verbs.MRConfig{Buf: make([]byte, 1<<20), Access: verbs.LocalRead}, verbs.ErrResources},
		"for a queue pair that is no more": {verbs.MRConfig{Buf: b.buf, Access: verbs.LocalRead, QP: b.dead}, verbs.ErrQP},
	}
}

// Register refuses each mistake and changes nothing. Reregister refuses the same,
// and then the region is no more: only for what is no region of that kind, or has
// windows bound to it, it stays what it was (Verbs §7.3.2.3).
//
// Claims: V-9.2.6.2-7 V-9.2.6.2-8 V-7.3.2.3-3
// Claims: V-9.2.6.2-10 V-9.2.6.5-7 V-9.5.1.6-1
func TestRegistrationsHaveEachOfTheirResults(t *testing.T) {
	for name, tt := range registrations(newBench(t)) {
		t.Run("register, "+name, func(t *testing.T) {
			b := newBench(t)
			b.prepared()
			_, err := b.pd.RegisterMR(registrations(b)[name].cfg)
			wantError(t, err, tt.result)
			b.unchanged()
		})
		t.Run("reregister, "+name, func(t *testing.T) {
			b := newBench(t)
			b.prepared()
			mr := must(b.pd.Register(make([]byte, 100), allRights))(t)
			wantError(t, mr.Reregister(b.pd, registrations(b)[name].cfg), tt.result)
			if _, err := mr.Query(); err == nil || mr.Valid() {
				t.Error("the region is there still")
			}
			b.unchanged()
		})
	}
	t.Run("reregister, another domain that is no more", func(t *testing.T) {
		b := newBench(t)
		b.prepared()
		mr := must(b.pd.Register(make([]byte, 100), allRights))(t)
		wantError(t, mr.Reregister(b.gone, verbs.MRConfig{Buf: b.buf, Access: allRights}), verbs.ErrPD)
		wantError(t, fails(mr.Query()), verbs.ErrSTag)
		b.unchanged()
	})
}
