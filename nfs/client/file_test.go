package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// random returns n octets without repetition.
func random(n int) []byte {
	p := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(p)
	return p
}

// limits are the ways in which servers split requests.
var limits = map[string]func(*fakeServer){
	"all at once":         func(*fakeServer) {},
	"short requests":      func(s *fakeServer) { s.readMost, s.writeMost = 1000, 1000 },
	"an end without sign": func(s *fakeServer) { s.noEOF = true },
}

func eachLimit(t *testing.T, test func(t *testing.T, s *fakeServer, f *FS)) {
	nettest.CheckLeaks(t)
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			ways(t, func(t *testing.T, places bool) {
				s := newFakeServer()
				limit(s)
				test(t, s, dial(t, s, placing(places)))
			})
		})
	}
}

var sizes = []int{0, 1, 3, 4095, 4096, 4097, 8192, 100_001}

// RFC 5667 §3: the memory for a result has the greatest length of the result.
//
// Claims: P5667-3-1
func TestReadAtReadsWhatThereIs(t *testing.T) {
	content := random(100_001)
	eachLimit(t, func(t *testing.T, s *fakeServer, f *FS) {
		s.put(nfs.TypeReg, "/file", string(content))
		file, err := f.Open(t.Context(), "file")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range sizes {
			for _, off := range []int{0, 1, 4096, 50_000, 100_000, 100_001, 200_000} {
				p := bytes.Repeat([]byte{0xee}, n+8)
				got, err := file.ReadAt(t.Context(), p[:n:n], int64(off))
				from := min(off, len(content))
				want := content[from:min(from+n, len(content))]
				wantErr := error(nil)
				if len(want) < n {
					wantErr = io.EOF
				}
				if err != wantErr || !bytes.Equal(p[:got], want) {
					t.Fatalf("%d octets at %d: %d, %v; want %d, %v", n, off, got, err, len(want), wantErr)
				}
				if !bytes.Equal(p[n:], bytes.Repeat([]byte{0xee}, 8)) {
					t.Fatalf("%d octets at %d: more was read than there was room for", n, off)
				}
			}
		}
	})
}

func TestWriteAtWritesAllOfItSafely(t *testing.T) {
	content := random(100_001)
	eachLimit(t, func(t *testing.T, s *fakeServer, f *FS) {
		for _, n := range sizes {
			for _, off := range []int{0, 1, 4096} {
				name := fmt.Sprintf("file %d at %d", n, off)
				file, err := f.Create(t.Context(), name, nfs.Guarded, Mode(0o644))
				if err != nil {
					t.Fatal(err)
				}
				if got, err := file.WriteAt(t.Context(), content[:n], int64(off)); err != nil || got != n {
					t.Fatalf("%d octets at %d: %d, %v", n, off, got, err)
				}
				want := append(make([]byte, off), content[:n]...)
				if n == 0 {
					want = nil
				}
				if got, stable := s.content(name); !bytes.Equal(got, want) || !stable {
					t.Fatalf("%d octets at %d: %d octets written, stable %v", n, off, len(got), stable)
				}
			}
		}
	})
}

func TestOneWriteIsStableByItselfAndManyByACOMMIT(t *testing.T) {
	s := newFakeServer()
	f := dial(t, s, nil)
	file, err := f.Create(t.Context(), "file", nfs.Unchecked, Mode(0o644))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(t.Context(), make([]byte, 4096), 0); err != nil {
		t.Fatal(err)
	}
	if s.stable[nfs.FileSync] != 1 || s.called(nfs.ProcCommit) != 0 {
		t.Errorf("WRITEs %v, %d COMMITs", s.stable, s.called(nfs.ProcCommit))
	}
	if _, err := file.WriteAt(t.Context(), make([]byte, 8192), 0); err != nil {
		t.Fatal(err)
	}
	if s.stable[nfs.Unstable] != 2 || s.called(nfs.ProcCommit) != 1 {
		t.Errorf("WRITEs %v, %d COMMITs", s.stable, s.called(nfs.ProcCommit))
	}
}

// writes are the ways to write.
var writes = map[string]func(ctx context.Context, f *File, p []byte) error{
	"WriteAt": func(ctx context.Context, f *File, p []byte) error {
		_, err := f.WriteAt(ctx, p, 0)
		return err
	},
	"Writer": func(ctx context.Context, f *File, p []byte) error {
		w := f.NewWriter(ctx, 0)
		_, err := io.Copy(struct{ io.Writer }{w}, struct{ io.Reader }{bytes.NewReader(p)}) // by Write
		return errors.Join(err, w.Close())
	},
	"Writer.ReadFrom": func(ctx context.Context, f *File, p []byte) error {
		w := f.NewWriter(ctx, 0)
		n, err := w.ReadFrom(bytes.NewReader(p))
		if err == nil && n != int64(len(p)) {
			err = fmt.Errorf("%d octets of %d were read", n, len(p))
		}
		return errors.Join(err, w.Close())
	},
}

func eachWrite(t *testing.T, test func(t *testing.T, write func(context.Context, *File, []byte) error)) {
	nettest.CheckLeaks(t)
	for name, write := range writes {
		t.Run(name, func(t *testing.T) { test(t, write) })
	}
}

// RFC 1813 §4.8: a server that restarts loses what is not on stable storage. The verifier shows
// that, and the client writes the data again.
func TestWhatTheServerLosesIsWrittenAgain(t *testing.T) {
	content := random(150_000)
	eachWrite(t, func(t *testing.T, write func(context.Context, *File, []byte) error) {
		for restart := 1; restart < 60; restart += 7 {
			for _, short := range []int{0, 1500} {
				s := newFakeServer()
				s.writeMost = short
				f := dial(t, s, func(cfg *Config) { cfg.Requests = 5 })
				file, err := f.Create(t.Context(), "file", nfs.Unchecked, Mode(0o644))
				if err != nil {
					t.Fatal(err)
				}
				calls := 0
				s.before = func(p nfs.Proc, _ int) nfs.Stat {
					if calls++; calls == restart || calls == restart+20 {
						s.forget()
					}
					return nfs.OK
				}
				if err := write(t.Context(), file, content); err != nil {
					t.Fatal(err)
				}
				got, stable := s.content("file")
				if !bytes.Equal(got, content) || !stable {
					t.Errorf("restarts before call %d: right %v, stable %v", restart, bytes.Equal(got, content), stable)
				}
			}
		}
	})
}

func TestAServerThatKeepsLosingDataIsGivenUp(t *testing.T) {
	eachWrite(t, func(t *testing.T, write func(context.Context, *File, []byte) error) {
		s := newFakeServer()
		s.dropped = true
		f := dial(t, s, nil)
		file, err := f.Create(t.Context(), "file", nfs.Unchecked, Mode(0o644))
		if err != nil {
			t.Fatal(err)
		}
		if err := write(t.Context(), file, make([]byte, 10_000)); !errors.Is(err, ErrLost) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAWriteThatFailsSaysWhyAndLeavesNothingBehind(t *testing.T) {
	eachWrite(t, func(t *testing.T, write func(context.Context, *File, []byte) error) {
		for _, failing := range []nfs.Proc{nfs.ProcWrite, nfs.ProcCommit} {
			for n := 1; n < 20; n += 3 {
				s := newFakeServer()
				f := dial(t, s, func(cfg *Config) { cfg.Requests = 6 })
				file, err := f.Create(t.Context(), "file", nfs.Unchecked, Mode(0o644))
				if err != nil {
					t.Fatal(err)
				}
				failed := false
				s.before = func(p nfs.Proc, i int) nfs.Stat {
					if p == failing && i >= n {
						failed = true
						return nfs.ErrNoSpc
					}
					return nfs.OK
				}
				err = write(t.Context(), file, make([]byte, 100_000))
				var e *Error
				if failed && (!errors.Is(err, nfs.ErrNoSpc) || !errors.As(err, &e) || e.Proc != failing.String() || e.Path != "file") || !failed && err != nil {
					t.Errorf("%v number %d failed: got %v", failing, n, err)
				}
			}
		}
	})
}

func TestAWriteEndsWithItsContext(t *testing.T) {
	eachWrite(t, func(t *testing.T, write func(context.Context, *File, []byte) error) {
		s := newFakeServer()
		f := dial(t, s, nil)
		file, err := f.Create(t.Context(), "file", nfs.Unchecked, Mode(0o644))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s.before = func(_ nfs.Proc, n int) nfs.Stat {
			if n == 5 {
				cancel()
			}
			return nfs.OK
		}
		if err := write(ctx, file, make([]byte, 1<<20)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTransfersKeepToTheRequestsAndTheMemoryAllowed(t *testing.T) {
	for _, tt := range []struct{ requests, memory, want int }{
		{7, 1 << 20, 7},
		{100, 5 * 4096, 5},
		{1, 1 << 20, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newFakeServer()
			s.put(nfs.TypeReg, "/file", string(make([]byte, 400_000)))
			slow := &slowCaller{Caller: &direct{handler: s.mux()}}
			f := dial(t, s, func(cfg *Config) { cfg.NFS, cfg.Requests, cfg.Memory = slow, tt.requests, tt.memory })
			file, err := f.Open(t.Context(), "file")
			if err != nil {
				t.Fatal(err)
			}
			r := file.NewReader(t.Context(), 0)
			if n, err := io.Copy(io.Discard, r); err != nil || n != 400_000 {
				t.Errorf("%d octets, %v", n, err)
			}
			r.Close()
			if got := int(slow.most.Load()); got != tt.want {
				t.Errorf("%d requests in %d octets: %d READs at a time, want %d", tt.requests, tt.memory, got, tt.want)
			}
		})
	}
}

// A slowCaller takes a second for each call, and counts the calls in flight.
type slowCaller struct {
	oncrpc.Caller
	now, most atomic.Int32
}

func (s *slowCaller) Call(ctx context.Context, c *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for most := s.most.Load(); most < n && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	time.Sleep(time.Second)
	return s.Caller.Call(ctx, c)
}

func TestOffsetsThatThereAreNotAreRefused(t *testing.T) {
	s := newFakeServer()
	s.put(nfs.TypeReg, "/file", "x")
	f := dial(t, s, nil)
	file, err := f.Open(t.Context(), "file")
	if err != nil {
		t.Fatal(err)
	}
	for _, off := range []int64{-1, 1<<63 - 1} {
		if _, err := file.ReadAt(t.Context(), make([]byte, 2), off); !errors.Is(err, nfs.ErrInval) {
			t.Errorf("read at %d: %v", off, err)
		}
		if _, err := file.WriteAt(t.Context(), make([]byte, 2), off); !errors.Is(err, nfs.ErrInval) {
			t.Errorf("write at %d: %v", off, err)
		}
	}
	r := file.NewReader(t.Context(), -1)
	defer r.Close()
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, nfs.ErrInval) {
		t.Errorf("read on from -1: %v", err)
	}
	w := file.NewWriter(t.Context(), -1)
	if _, err := w.Write([]byte{1}); !errors.Is(err, nfs.ErrInval) {
		t.Errorf("write on from -1: %v", err)
	}
	if err := w.Close(); !errors.Is(err, nfs.ErrInval) {
		t.Errorf("close after that: %v", err)
	}
}

func TestAServerThatReturnsNothingOrTooMuchIsNotBelieved(t *testing.T) {
	for name, tt := range map[string]struct {
		proc nfs.Proc
		hex  []byte
	}{
		"READ of nothing":        {nfs.ProcRead, make([]byte, 5*4)},
		"READ of too much":       {nfs.ProcRead, append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 5}, make([]byte, 8)...)},
		"WRITE of nothing":       {nfs.ProcWrite, make([]byte, 4+8+4+4+8)},
		"WRITE of too much":      {nfs.ProcWrite, append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5}, make([]byte, 12)...)},
		"WRITE of four thousand": {nfs.ProcWrite, append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, make([]byte, 12)...)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer()
			s.put(nfs.TypeReg, "/file", "abcdefgh")
			s.tamper = func(p nfs.Proc, b []byte) []byte {
				if p == tt.proc {
					return tt.hex
				}
				return b
			}
			f := dial(t, s, nil)
			file, err := f.Open(t.Context(), "file")
			if err != nil {
				t.Fatal(err)
			}
			if tt.proc == nfs.ProcRead {
				_, err = file.ReadAt(t.Context(), make([]byte, 4), 0)
			} else {
				_, err = file.WriteAt(t.Context(), make([]byte, 4), 0)
			}
			if !errors.Is(err, ErrServer) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAFileIsLookedAtAndChangedByItsHandle(t *testing.T) {
	s := newFakeServer()
	s.put(nfs.TypeReg, "/d/file", "12345")
	f := dial(t, s, nil)
	file, err := f.Open(t.Context(), "d/file")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Rename(t.Context(), "d/file", "other"); err != nil {
		t.Fatal(err)
	}
	if err := file.SetAttr(t.Context(), nfs.SetAttributes{Size: nfs.SetUint64{Set: true, Value: 3}}); err != nil {
		t.Fatal(err)
	}
	if info, err := file.Stat(t.Context()); err != nil || info.Size() != 3 || info.Name() != "file" {
		t.Errorf("got %v, %v", info, err)
	}
}
