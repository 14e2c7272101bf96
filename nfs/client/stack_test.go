package client_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/rpctest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/binding"
	"github.com/weft-rdma/weft/nfs/client"
	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpctcp"
)

// serveFolder returns Weft's server of a directory as a handler.
func serveFolder(t testing.TB, dir string) oncrpc.Handler {
	t.Helper()
	server, err := folder.New(folder.Config{Root: dir, SingleUser: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	mounts, err := mount.New(mount.Export{Path: filepath.ToSlash(dir), Handle: server.Handle})
	if err != nil {
		t.Fatal(err)
	}
	return oncrpc.Mux{{Prog: nfs.Program, Low: nfs.V3, High: nfs.V3, Handler: server}, mounts.Program()}
}

func eachTransport(t *testing.T, test func(t *testing.T, dir string, f *client.FS)) {
	nettest.CheckLeaks(t)
	for name, over := range rpctest.Transports {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			caller := over(t, serveFolder(t, dir))
			f, err := client.Dial(t.Context(), client.Config{NFS: caller})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			test(t, dir, f)
		})
	}
}

func TestFilesOfAFolderAreReadAndWritten(t *testing.T) {
	eachTransport(t, func(t *testing.T, dir string, f *client.FS) {
		for _, n := range []int{0, 1, 1000, 4000, 1<<20 - 1, 1 << 20, 5<<20 + 3} {
			content := make([]byte, n)
			rand.NewChaCha8([32]byte{byte(n)}).Read(content)
			name := fmt.Sprint("file ", n)

			file, err := f.Create(t.Context(), name, nfs.Guarded, client.Mode(0o644))
			if err != nil {
				t.Fatal(err)
			}
			w := file.NewWriter(t.Context(), 0)
			if _, err := w.ReadFrom(bytes.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			onDisk, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !bytes.Equal(onDisk, content) {
				t.Fatalf("%d octets were written as %d others, %v", n, len(onDisk), err)
			}

			if file, err = f.Open(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			r := file.NewReader(t.Context(), 0)
			sum := sha256.New()
			if got, err := io.Copy(sum, r); err != nil || got != int64(n) || [32]byte(sum.Sum(nil)) != sha256.Sum256(content) {
				t.Errorf("%d octets were read as %d, or others, %v", n, got, err)
			}
			r.Close()
			p := make([]byte, n+1)
			if got, err := file.ReadAt(t.Context(), p, 0); err != io.EOF || !bytes.Equal(p[:got], content) {
				t.Errorf("%d octets were read at once as %d, or others, %v", n, got, err)
			}
		}
	})
}

func TestAFolderIsAFileSystemOfGo(t *testing.T) {
	eachTransport(t, func(t *testing.T, dir string, f *client.FS) {
		for _, name := range []string{"a/b/c/file", "a/other", "top"} {
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := fstest.TestFS(f.IOFS(t.Context()), "a/b/c/file", "a/other", "top"); err != nil {
			t.Error(err)
		}
	})
}

func TestALargeFolderIsListed(t *testing.T) {
	eachTransport(t, func(t *testing.T, dir string, f *client.FS) {
		for i := range 1000 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file number %04d", i)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		list, err := f.ReadDir(t.Context(), "/")
		if err != nil || len(list) != 1000 || list[0].Name() != "file number 0000" || list[999].Name() != "file number 0999" {
			t.Errorf("%d entries, %v", len(list), err)
		}
	})
}

func TestAFolderIsChanged(t *testing.T) {
	eachTransport(t, func(t *testing.T, dir string, f *client.FS) {
		ctx := t.Context()
		_, mkdir := f.Mkdir(ctx, "d", client.Mode(0o755))
		_, create := f.Create(ctx, "d/file", nfs.Exclusive, client.Mode(0o640))
		err := errors.Join(mkdir, create, f.Rename(ctx, "d/file", "moved"), f.Truncate(ctx, "moved", 10_000), f.Rmdir(ctx, "d"))
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, "moved"))
		if err != nil || info.Size() != 10_000 {
			t.Errorf("got %v, %v", info, err)
		}
		if err := f.Remove(ctx, "moved"); err != nil {
			t.Fatal(err)
		}
		if err := f.Remove(ctx, "moved"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("removing it again: %v", err)
		}
	})
}

// A program lists an export and reads a file of it.
func ExampleDial() {
	ctx := context.Background()
	server := "192.0.2.1"
	caller, err := rpcrdma.NewClient(rpcrdma.ClientConfig{
		Address:  net.JoinHostPort(server, fmt.Sprint(nfs.PortRDMA)),
		Bindings: binding.NFS(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer caller.Close()
	export, err := client.Dial(ctx, client.Config{
		NFS:      caller,
		Export:   "/srv",
		MountTCP: client.MountOverTCP(server, 0, rpctcp.ClientConfig{}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer export.Close()

	files, err := export.ReadDir(ctx, "/")
	for _, file := range files {
		fmt.Println(file.Mode(), file.Size(), file.Name())
	}
	if err != nil {
		fmt.Println(err)
	}
	file, err := export.Open(ctx, "README.md")
	if err != nil {
		fmt.Println(err)
		return
	}
	r := file.NewReader(ctx, 0)
	defer r.Close()
	if _, err := io.Copy(os.Stdout, r); err != nil {
		fmt.Println(err)
	}
}

// BenchmarkReader streams a file of a directory, with requests of the server's preferred size.
func BenchmarkReader(b *testing.B) {
	for name, over := range rpctest.Transports {
		b.Run(name, func(b *testing.B) {
			const size = 64 << 20
			dir := b.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, size), 0o644); err != nil {
				b.Fatal(err)
			}
			f, err := client.Dial(b.Context(), client.Config{NFS: over(b, serveFolder(b, dir))})
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			file, err := f.Open(b.Context(), "file")
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				r := file.NewReader(b.Context(), 0)
				if n, err := io.Copy(io.Discard, r); err != nil || n != size {
					b.Fatal(n, err)
				}
				r.Close()
			}
		})
	}
}
