package client

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

func TestPathsAreResolvedThroughSymbolicLinks(t *testing.T) {
	s := newFakeServer()
	file := s.put(nfs.TypeReg, "/a/b/file", "x")
	dir := s.put(nfs.TypeDir, "/a/dir", "")
	odd := s.put(nfs.TypeReg, "/a/\xff name", "x")
	link := s.put(nfs.TypeLnk, "/link", "a/b/file")
	s.put(nfs.TypeLnk, "/a/up", "../a/b/../b")
	s.put(nfs.TypeLnk, "/a/b/absolute", "/a/b/file")
	s.put(nfs.TypeLnk, "/chain", "a/b/absolute")
	s.put(nfs.TypeLnk, "/dirlink", "a/dir/")
	loop := s.put(nfs.TypeLnk, "/loop", "loop")
	out := s.put(nfs.TypeLnk, "/a/out", "../../etc")
	dangling := s.put(nfs.TypeLnk, "/dangling", "nowhere")
	s.put(nfs.TypeLnk, "/slashed", "a/b/file/")
	f := dial(t, s, nil)

	for _, tt := range []struct {
		path        string
		stat, lstat any // a file id, or an error
	}{
		{"/a/b/file", file, file},
		{"a/b/file", file, file},
		{"//a/./b//file", file, file},
		{"a/b/../b/file", file, file},
		{"a/\xff name", odd, odd},
		{"/", uint64(1), uint64(1)},
		{"", uint64(1), uint64(1)},
		{".", uint64(1), uint64(1)},
		{"a/..", uint64(1), uint64(1)},
		{"a/dir/", dir, dir},
		{"link", file, link},
		{"a/up/file", file, file},
		{"chain", file, any(nil)},
		{"dirlink", dir, nil},
		{"dirlink/", dir, dir}, // a slash behind it follows it
		{"dirlink/.", dir, nil},
		{"dirlink/../b/file", file, file},
		{"loop", ErrLoop, loop},
		{"a/out", ErrOutside, out},
		{"a/out/passwd", ErrOutside, ErrOutside},
		{"..", ErrOutside, ErrOutside},
		{"../etc", ErrOutside, ErrOutside},
		{"a/../../etc", ErrOutside, ErrOutside},
		{"dangling", fs.ErrNotExist, dangling},
		{"a/b/nothing", fs.ErrNotExist, fs.ErrNotExist},
		{"nothing/b", fs.ErrNotExist, fs.ErrNotExist},
		{"a/b/file/x", nfs.ErrNotDir, nfs.ErrNotDir},
		{"a/b/file/", nfs.ErrNotDir, nfs.ErrNotDir},
		{"slashed", nfs.ErrNotDir, nil},
	} {
		for _, way := range []struct {
			name string
			look func(context.Context, string) (*Info, error)
			want any
		}{{"Stat", f.Stat, tt.stat}, {"Lstat", f.Lstat, tt.lstat}} {
			if way.want == nil {
				continue
			}
			info, err := way.look(t.Context(), tt.path)
			switch want := way.want.(type) {
			case error:
				var e *Error
				if !errors.Is(err, want) || !errors.As(err, &e) {
					t.Errorf("%s %q: %v, want %v", way.name, tt.path, err, want)
				}
			default:
				if err != nil || info.Attr.FileID != want {
					t.Errorf("%s %q: %+v, %v, want file %d", way.name, tt.path, info, err, want)
				}
			}
		}
	}
}

func TestAnAbsoluteLinkIsFollowedAsFarAsItStaysInTheExport(t *testing.T) {
	s := newFakeServer()
	s.exports = nfs.ExportList{{Path: "/srv/data"}}
	file := s.put(nfs.TypeReg, "/a/file", "x")
	s.put(nfs.TypeLnk, "/in", "/srv/data/a/file")
	s.put(nfs.TypeLnk, "/root", "/srv/data")
	s.put(nfs.TypeLnk, "/out", "/etc/passwd")
	s.put(nfs.TypeLnk, "/near", "/srv/database")
	s.put(nfs.TypeLnk, "/sly", "/srv/data/../../etc/passwd")
	f := dial(t, s, func(cfg *Config) { cfg.Export = "/srv/data" })
	for path, want := range map[string]any{
		"in": file, "root/a/file": file, "out": ErrOutside, "near": ErrOutside, "sly": ErrOutside,
	} {
		info, err := f.Stat(t.Context(), path)
		if wantErr, ok := want.(error); ok {
			if !errors.Is(err, wantErr) {
				t.Errorf("%s: %v, want %v", path, err, want)
			}
		} else if err != nil || info.Attr.FileID != want {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}

func TestAnInfoIsAFileInfo(t *testing.T) {
	s := newFakeServer()
	s.put(nfs.TypeReg, "/a/file", "12345")
	f := dial(t, s, nil)
	info, err := f.Stat(t.Context(), "a/file")
	if err != nil {
		t.Fatal(err)
	}
	if info.Name() != "file" || info.Size() != 5 || info.Mode() != 0o644 || info.IsDir() || !info.ModTime().Equal(time.Unix(1e9, 0)) {
		t.Errorf("got %v", fs.FormatFileInfo(info))
	}
	if a, ok := info.Sys().(*nfs.Attributes); !ok || a.Size != 5 {
		t.Errorf("Sys is %v", info.Sys())
	}
}

func TestFilesAreFoundThoughOnlyGETATTRTellsAttributes(t *testing.T) {
	s := newFakeServer()
	s.bare = true
	s.put(nfs.TypeReg, "/a/file", "12345")
	f := dial(t, s, nil)
	if info, err := f.Stat(t.Context(), "a/file"); err != nil || info.Size() != 5 {
		t.Errorf("got %v, %v", info, err)
	}
	if list, err := f.ReadDir(t.Context(), "a"); err != nil || len(list) != 1 || list[0].Size() != 5 {
		t.Errorf("listed %v, %v", list, err)
	}
	if file, err := f.Create(t.Context(), "new", nfs.Guarded, Mode(0o600)); err != nil || file.Path() != "new" {
		t.Errorf("made %v, %v", file, err)
	}
}

func TestErrorsNameTheProcedureAndTheFile(t *testing.T) {
	s := newFakeServer()
	f := dial(t, s, nil)
	_, err := f.Stat(t.Context(), "nothing/here")
	if got, want := err.Error(), "LOOKUP /nothing: no such file or directory (NFS3ERR_NOENT)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// RFC 1813 §2.6: after NFS3ERR_JUKEBOX the client waits and tries again.
func TestACallThatTheServerCannotAnswerYetIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		s.put(nfs.TypeReg, "/file", "x")
		f := dial(t, s, nil)
		s.before = func(p nfs.Proc, n int) nfs.Stat {
			if p == nfs.ProcLookup && n < 10 {
				return nfs.ErrJukebox
			}
			return nfs.OK
		}
		start := time.Now()
		if _, err := f.Stat(context.Background(), "file"); err != nil {
			t.Error(err)
		}
		if n := s.called(nfs.ProcLookup); n != 10 {
			t.Errorf("%d LOOKUPs, want 10", n)
		}
		if d := time.Since(start); d < 10*time.Second || d > time.Minute {
			t.Errorf("waited %v in all", d)
		}
	})
}

func TestWaitingForAServerEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		f := dial(t, s, nil)
		s.before = func(nfs.Proc, int) nfs.Stat { return nfs.ErrJukebox }
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		_, err := f.Stat(ctx, "file")
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, nfs.ErrJukebox) {
			t.Errorf("got %v", err)
		}
	})
}

func TestResultsThatCannotBeDecodedAreAnError(t *testing.T) {
	s := newFakeServer()
	s.put(nfs.TypeReg, "/file", strings.Repeat("x", 100))
	f := dial(t, s, nil)
	file, err := f.Open(t.Context(), "file")
	if err != nil {
		t.Fatal(err)
	}
	for name, tamper := range map[string]func(nfs.Proc, []byte) []byte{
		"cut":     func(_ nfs.Proc, b []byte) []byte { return b[:len(b)-4] },
		"longer":  func(_ nfs.Proc, b []byte) []byte { return append(b, 0, 0, 0, 0) },
		"nothing": func(nfs.Proc, []byte) []byte { return nil },
	} {
		s.tamper = tamper
		_, stat := f.Stat(t.Context(), "file")
		_, list := f.ReadDir(t.Context(), "/")
		_, read := file.ReadAt(t.Context(), make([]byte, 10), 0)
		_, write := file.WriteAt(t.Context(), make([]byte, 10), 0)
		for what, err := range map[string]error{"Stat": stat, "ReadDir": list, "ReadAt": read, "WriteAt": write} {
			var d *oncrpc.DecodeError
			if !errors.Is(err, ErrServer) || !errors.As(err, &d) {
				t.Errorf("%s, results %s: %v", what, name, err)
			}
		}
	}
}
