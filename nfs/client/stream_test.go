package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"
	"testing/fstest"
	"testing/iotest"
	"testing/synctest"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
)

func TestAReaderDeliversTheFileInOrder(t *testing.T) {
	content := random(100_001)
	eachLimit(t, func(t *testing.T, s *fakeServer, f *FS) {
		for _, n := range sizes {
			s.put(nfs.TypeReg, "/file", string(content[:n]))
			file, err := f.Open(t.Context(), "file")
			if err != nil {
				t.Fatal(err)
			}
			for _, off := range []int{0, 1, 5000} {
				want := content[min(off, n):n]

				r := file.NewReader(t.Context(), int64(off))
				if err := iotest.TestReader(r, want); err != nil {
					t.Errorf("%d octets from %d: %v", n, off, err)
				}
				r.Close()

				r = file.NewReader(t.Context(), int64(off))
				var got bytes.Buffer
				written, err := r.WriteTo(&got)
				if err != nil || written != int64(len(want)) || !bytes.Equal(got.Bytes(), want) {
					t.Errorf("%d octets from %d: WriteTo wrote %d, %v", n, off, written, err)
				}
				r.Close()
			}
		}
	})
}

func TestAReaderSeesWhatAFileHasGainedAndLost(t *testing.T) {
	nettest.CheckLeaks(t)
	content := random(100_000)
	for _, now := range []int{0, 1, 4096, 30_000, 60_000, 100_000} {
		s := newFakeServer()
		id := s.put(nfs.TypeReg, "/file", string(content[:50_000]))
		f := dial(t, s, nil)
		file, err := f.Open(t.Context(), "file")
		if err != nil {
			t.Fatal(err)
		}
		s.files[id].data = content[:now]
		r := file.NewReader(t.Context(), 0)
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, content[:now]) {
			t.Errorf("a file of 50000 octets that has %d now: read %d, %v", now, len(got), err)
		}
		r.Close()
	}
}

func TestASmallFileIsReadByOneREAD(t *testing.T) {
	for _, n := range []int{0, 1, 4096} {
		s := newFakeServer()
		s.put(nfs.TypeReg, "/file", string(make([]byte, n)))
		f := dial(t, s, nil)
		if _, err := fs.ReadFile(f.IOFS(t.Context()), "file"); err != nil {
			t.Fatal(err)
		}
		if got := s.called(nfs.ProcRead); got != 1 {
			t.Errorf("%d octets took %d READs", n, got)
		}
	}
}

func TestAReadThatFailsDeliversWhatCameBefore(t *testing.T) {
	nettest.CheckLeaks(t)
	content := random(50_000)
	s := newFakeServer()
	s.put(nfs.TypeReg, "/file", string(content))
	f := dial(t, s, nil)
	file, err := f.Open(t.Context(), "file")
	if err != nil {
		t.Fatal(err)
	}
	s.readMost = 4096
	s.tamper = func(p nfs.Proc, b []byte) []byte {
		if p == nfs.ProcRead && bytes.Contains(b, content[20_480:20_490]) {
			return []byte{0, 0, 0, 5, 0, 0, 0, 0} // NFS3ERR_IO without attributes
		}
		return b
	}
	r := file.NewReader(t.Context(), 0)
	got, err := io.ReadAll(r)
	if !errors.Is(err, nfs.ErrIO) || !bytes.Equal(got, content[:20_480]) {
		t.Errorf("streamed %d octets, %v", len(got), err)
	}
	if _, again := r.Read(make([]byte, 1)); again != err {
		t.Errorf("then %v", again)
	}
	r.Close()
	p := make([]byte, len(content))
	n, err := file.ReadAt(t.Context(), p, 0)
	if !errors.Is(err, nfs.ErrIO) || n != 20_480 || !bytes.Equal(p[:n], content[:n]) {
		t.Errorf("ReadAt read %d octets, %v", n, err)
	}
}

func TestAReaderEndsWithItsContextAndAfterClose(t *testing.T) {
	nettest.CheckLeaks(t)
	s := newFakeServer()
	s.put(nfs.TypeReg, "/file", string(make([]byte, 1<<20)))
	f := dial(t, s, nil)
	file, err := f.Open(t.Context(), "file")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := file.NewReader(ctx, 0)
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}

	r = file.NewReader(t.Context(), 0)
	if _, err := r.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if n, err := r.Read(make([]byte, 10)); err == nil {
		t.Errorf("after Close it read %d octets", n)
	}
}

func TestAWriterWritesWhatItWasGivenWhereverItsPiecesEnd(t *testing.T) {
	nettest.CheckLeaks(t)
	content := random(100_001)
	for _, n := range sizes {
		for name, write := range map[string]func(w *Writer, p []byte) error{
			"an octet at a time": func(w *Writer, p []byte) error {
				_, err := io.Copy(struct{ io.Writer }{w}, iotest.OneByteReader(bytes.NewReader(p)))
				return err
			},
			"by halves": func(w *Writer, p []byte) error {
				if _, err := w.Write(p[:len(p)/2]); err != nil {
					return err
				}
				_, err := w.ReadFrom(iotest.HalfReader(bytes.NewReader(p[len(p)/2:])))
				return err
			},
			"with the end": func(w *Writer, p []byte) error {
				_, err := w.ReadFrom(iotest.DataErrReader(bytes.NewReader(p)))
				return err
			},
		} {
			s := newFakeServer()
			f := dial(t, s, func(cfg *Config) { cfg.Requests = 3 })
			file, err := f.Create(t.Context(), "file", nfs.Unchecked, Mode(0o644))
			if err != nil {
				t.Fatal(err)
			}
			w := file.NewWriter(t.Context(), 7)
			if err := errors.Join(write(w, content[:n]), w.Close()); err != nil {
				t.Fatal(err)
			}
			want := append(make([]byte, 7), content[:n]...)
			if n == 0 {
				want = nil
			}
			if got, stable := s.content("file"); !bytes.Equal(got, want) || !stable {
				t.Errorf("%d octets %s: %d written, stable %v", n, name, len(got), stable)
			}
			if n < 4096 && n > 0 && (s.stable[nfs.FileSync] != 1 || s.called(nfs.ProcCommit) != 0) {
				t.Errorf("%d octets %s took WRITEs %v and %d COMMITs", n, name, s.stable, s.called(nfs.ProcCommit))
			}
		}
	}
}

func TestAWriterKeepsNoMoreThanItMay(t *testing.T) {
	s := newFakeServer()
	f := dial(t, s, func(cfg *Config) { cfg.Memory = 8 * 4096 })
	file, err := f.Create(t.Context(), "file", nfs.Unchecked, Mode(0o644))
	if err != nil {
		t.Fatal(err)
	}
	w := file.NewWriter(t.Context(), 0)
	most := 0
	for range 1000 {
		if _, err := w.Write(make([]byte, 4096)); err != nil {
			t.Fatal(err)
		}
		most = max(most, w.blocks)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if most > 8 {
		t.Errorf("%d blocks of 4096 octets, in memory for 8", most)
	}
}

func TestAWriterTellsOfAFailureThatCameWhileNobodyAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		f := dial(t, s, func(cfg *Config) { cfg.Requests = 2 })
		file, err := f.Create(t.Context(), "file", nfs.Unchecked, Mode(0o644))
		if err != nil {
			t.Fatal(err)
		}
		s.before = func(nfs.Proc, int) nfs.Stat { return nfs.ErrNoSpc }
		w := file.NewWriter(t.Context(), 0)
		if _, err := w.Write(make([]byte, 2*4096)); err != nil && !errors.Is(err, nfs.ErrNoSpc) {
			t.Fatal(err)
		}
		synctest.Wait() // both WRITEs have failed, and nothing is under way
		if _, err := w.Write([]byte{1}); !errors.Is(err, nfs.ErrNoSpc) {
			t.Errorf("the next Write: %v", err)
		}
		if err := w.Close(); !errors.Is(err, nfs.ErrNoSpc) {
			t.Errorf("Close: %v", err)
		}
	})
}

func TestAWriterThatIsAbortedLeavesNothingBehind(t *testing.T) {
	nettest.CheckLeaks(t)
	s := newFakeServer()
	f := dial(t, s, nil)
	file, err := f.Create(t.Context(), "file", nfs.Unchecked, Mode(0o644))
	if err != nil {
		t.Fatal(err)
	}
	w := file.NewWriter(t.Context(), 0)
	if _, err := w.Write(make([]byte, 1<<18)); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	w.Abort()
	if n, err := w.Write([]byte{1}); err == nil {
		t.Errorf("%d octets were taken after the end", n)
	}
}

func TestAReadErrorOfTheSourceIsTheWritersCallersBusiness(t *testing.T) {
	s := newFakeServer()
	f := dial(t, s, nil)
	file, err := f.Create(t.Context(), "file", nfs.Unchecked, Mode(0o644))
	if err != nil {
		t.Fatal(err)
	}
	w := file.NewWriter(t.Context(), 0)
	broken := errors.New("broken")
	n, err := w.ReadFrom(io.MultiReader(bytes.NewReader(make([]byte, 5000)), iotest.ErrReader(broken)))
	if n != 5000 || !errors.Is(err, broken) {
		t.Errorf("read %d octets, %v", n, err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("closing what was read: %v", err)
	}
}

func TestAnExportIsAFileSystemOfGo(t *testing.T) {
	nettest.CheckLeaks(t)
	s := newFakeServer()
	s.put(nfs.TypeReg, "/a/b/file", string(random(10_000)))
	s.put(nfs.TypeReg, "/a/empty", "")
	s.put(nfs.TypeLnk, "/a/link", "b/file")
	s.put(nfs.TypeDir, "/dir", "")
	f := dial(t, s, nil)
	if err := fstest.TestFS(f.IOFS(t.Context()), "a/b/file", "a/empty", "a/link", "dir"); err != nil {
		t.Error(err)
	}
	_, err := fs.Stat(f.IOFS(t.Context()), "a/nothing")
	var e *fs.PathError
	if !errors.As(err, &e) || e.Path != "a/nothing" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestAWriterLeavesOutWhatIsSkipped(t *testing.T) {
	nettest.CheckLeaks(t)
	data := bytes.Repeat([]byte("data"), 2500)
	for name, tt := range map[string]struct {
		pieces []int // octets of data, and negative of what is skipped
		writes int64 // octets of data that go to the server
	}{
		"in between":     {[]int{10_000, -5000, 3}, 10_003},
		"at the start":   {[]int{-1 << 20, 1}, 1},
		"at the end":     {[]int{1, -1 << 20}, 1},
		"nothing but":    {[]int{-4096}, 0},
		"nothing at all": {[]int{100, 0, 100}, 200},
		"several":        {[]int{-1, -4095, 4096, -1, -1, 5, -7}, 4101},
	} {
		s := newFakeServer()
		f := dial(t, s, func(cfg *Config) { cfg.Requests = 3 })
		var wrote int64
		file, err := f.Create(t.Context(), "file", nfs.Unchecked, Mode(0o644))
		if err != nil {
			t.Fatal(err)
		}
		w := file.NewWriter(t.Context(), 0)
		var want []byte
		for _, n := range tt.pieces {
			if n > 0 {
				_, err = w.Write(data[:n])
				want = append(want, data[:n]...)
				wrote += int64(n)
			} else {
				err = w.Skip(int64(-n))
				want = append(want, make([]byte, -n)...)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, stable := s.content("file"); !bytes.Equal(got, want) || !stable || wrote != tt.writes {
			t.Errorf("%s: %d octets, want %d; stable %v; %d written", name, len(got), len(want), stable, wrote)
		}
		if most := int(wrote/4096) + len(tt.pieces); s.called(nfs.ProcWrite) > most {
			t.Errorf("%s: %d WRITEs", name, s.called(nfs.ProcWrite))
		}
		if err := w.Skip(1); err == nil {
			t.Errorf("%s: skipped after the end", name)
		}
	}
}

func TestAWriterSkipsNoOctetsThatAFileCannotHave(t *testing.T) {
	s := newFakeServer()
	f := dial(t, s, nil)
	file, err := f.Create(t.Context(), "file", nfs.Unchecked, Mode(0o644))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{-1, 1<<63 - 1} {
		w := file.NewWriter(t.Context(), 1)
		if err := w.Skip(n); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%d octets: %v", n, err)
		}
		if err := w.Close(); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%d octets: closed with %v", n, err)
		}
	}
}
