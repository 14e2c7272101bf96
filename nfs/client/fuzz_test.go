package client

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// A tamperer changes a server's replies as directed by octets: in each reply it overwrites up
// to three words, or it cuts the reply.
type tamperer struct {
	orders []byte
}

// octet returns the next directive, or 0 if there are no more.
func (m *tamperer) octet() byte {
	if len(m.orders) == 0 {
		return 0
	}
	b := m.orders[0]
	m.orders = m.orders[1:]
	return b
}

func (m *tamperer) tamper(results []byte) []byte {
	how := m.octet()
	for range how & 3 {
		at := 4 * int(m.octet())
		word := []byte{0, 0, 0, m.octet()}
		if how&4 != 0 {
			word = []byte{m.octet(), m.octet(), m.octet(), word[3]}
		}
		if at+4 <= len(results) {
			copy(results[at:], word)
		}
	}
	if how&8 != 0 {
		results = results[:min(len(results), int(m.octet()))]
	}
	if how&16 != 0 { // results of another call
		results = append(results, bytes.Repeat([]byte{0, 0, 0, m.octet()}, 8)...)
	}
	return results
}

// maxFuzzCalls exceeds the calls of a client in the fuzz target, including those that it
// repeats.
const maxFuzzCalls = 5000

// FuzzHostileServer uses all of a client with a server whose replies are fuzzed. Every method
// returns, with an error or plausible results: no name is a path, and no more is kept than is
// allowed.
func FuzzHostileServer(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add(bytes.Repeat([]byte{1, 0, 70}, 30), false)                    // NFS3ERR_STALE for all
	f.Add(append(make([]byte, 6), 5, 1, 0xff, 0xff, 0xff, 0xff), false) // a length without end
	f.Add(bytes.Repeat([]byte{0, 0, 8, 12}, 40), true)                  // cut off
	f.Add(append(make([]byte, 9), bytes.Repeat([]byte{2, 9, 1, 11, 2}, 20)...), true)
	f.Add(bytes.Repeat([]byte{16, 7}, 60), false)
	for at := range byte(40) {
		f.Add(append(make([]byte, at), 1, at, 0xff), at%2 == 0)
		f.Add(append(make([]byte, at), 7, 22, 1, 0xff, 0xff, 0xff, 23, 2, 0x80, 0, 0, 24, 3, 0, 0, 0), at%2 == 1)
	}
	f.Fuzz(func(t *testing.T, orders []byte, places bool) {
		if len(orders) > 1<<12 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			s := newFakeServer()
			s.put(nfs.TypeReg, "/dir/file", strings.Repeat("content ", 1000))
			s.put(nfs.TypeLnk, "/dir/link", "file")
			s.put(nfs.TypeReg, "/dir/sub/other", "x")
			m := &tamperer{orders}
			var calls atomic.Int32
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			s.tamper = func(_ nfs.Proc, results []byte) []byte { return m.tamper(results) }
			caller := &direct{handler: s.mux(), places: places, fail: func(*oncrpc.ClientCall) error {
				if calls.Add(1) > maxFuzzCalls {
					t.Error("the client calls without end")
					cancel()
				}
				return nil
			}}
			abuse(t, ctx, caller)
		})
	})
}

// abuse calls all methods of a client.
func abuse(t *testing.T, ctx context.Context, caller *direct) {
	fs, err := Dial(ctx, Config{NFS: caller, Entries: 100, Requests: 4, Memory: 1 << 16})
	if err != nil {
		return
	}
	defer fs.Close()
	for _, name := range []string{"/", "/dir", "/dir/sub"} {
		list, err := fs.ReadDir(ctx, name)
		if err != nil {
			continue
		}
		if len(list) > 100 {
			t.Errorf("%d entries", len(list))
		}
		for _, i := range list {
			if n := i.Name(); n == "" || n == "." || n == ".." || strings.ContainsAny(n, "/\x00") {
				t.Errorf("a file is named %q", n)
			}
		}
	}
	if name, info, err := fs.Resolve(ctx, "/dir/link"); err == nil && (info == nil || !strings.HasPrefix(name, "/")) {
		t.Errorf("resolved to %q, %v", name, info)
	}
	fs.Readlink(ctx, "/dir/link")
	fs.StatFS(ctx, "/")
	fs.PathConf(ctx, "/dir")
	fs.Access(ctx, "/dir/file", nfs.AccessRead)
	if file, err := fs.Open(ctx, "/dir/file"); err == nil {
		r := file.NewReader(ctx, 0)
		if n, err := io.Copy(io.Discard, io.LimitReader(r, 1<<20)); err == nil && n > 1<<20 {
			t.Errorf("%d octets were read", n)
		}
		r.Close()
	}
	if file, err := fs.Create(ctx, "/dir/new", nfs.Exclusive, nfs.SetAttributes{}); err == nil {
		w := file.NewWriter(ctx, 0)
		w.Write(binary.BigEndian.AppendUint64(make([]byte, 20000), 1))
		w.Close()
	}
	fs.Mkdir(ctx, "/dir/made", Mode(0o700))
	fs.Symlink(ctx, "target", "/dir/symlink")
	fs.Link(ctx, "/dir/file", "/dir/hard")
	fs.Rename(ctx, "/dir/new", "/dir/old")
	fs.Truncate(ctx, "/dir/old", 5)
	fs.SetAttr(ctx, "/dir/old", Mode(0o600))
	fs.Remove(ctx, "/dir/old")
	fs.Rmdir(ctx, "/dir/made")
}
