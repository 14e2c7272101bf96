// This file makes trees of standard input and output. Each has one file without a name,
// which can be read or written once.

package files

import (
	"context"
	"fmt"
	"io"
	"io/fs"
)

// A Stdin is a source that reads from R.
type Stdin struct {
	stream
	R io.Reader
}

// A Stdout is a destination that writes to W.
type Stdout struct {
	stream
	W io.Writer
}

var _, _ Tree = (*Stdin)(nil), (*Stdout)(nil)

// Base returns ".", as standard input has no name.
func (*Stdin) Base(string) string { return "." }

func (*Stdin) Show(string) string { return "standard input" }

func (*Stdin) Lstat(context.Context, string) (*Info, error) {
	return &Info{Name: "-", Mode: 0o666 &^ Umask()}, nil
}

// Open reads until the context ends, even if a read of R does not.
func (s *Stdin) Open(ctx context.Context, _ string) (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() {
		_, err := io.CopyBuffer(w, struct{ io.Reader }{s.R}, make([]byte, 256<<10))
		w.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	return r, nil
}

func (*Stdout) Show(string) string { return "standard output" }

func (*Stdout) Resolve(context.Context, string) (string, *Info, error) {
	return "-", &Info{Name: "-", Mode: fs.ModeNamedPipe | 0o666}, nil
}

func (s *Stdout) Write(ctx context.Context, _ string) (Output, error) {
	return &streamOutput{s.W, ctx}, nil
}

// A streamOutput writes until the context ends.
type streamOutput struct {
	w   io.Writer
	ctx context.Context
}

func (o *streamOutput) Write(p []byte) (int, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	return o.w.Write(p)
}

func (o *streamOutput) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{o}, r, make([]byte, 256<<10))
}

func (o *streamOutput) Skip(n int64) error {
	for n > 0 {
		wrote, err := o.Write(zeros[:min(n, grain)])
		if err != nil {
			return err
		}
		n -= int64(wrote)
	}
	return nil
}

func (o *streamOutput) Close() error { return nil }
func (o *streamOutput) Abort()       {}

// A stream implements the methods of Tree that a stream does not have.
type stream struct{}

func (stream) none() error {
	return fmt.Errorf("standard input and output are not directories: %w", fs.ErrInvalid)
}

func (s stream) Join(string, string) (string, error) { return "", s.none() }
func (stream) Dir(string) string                     { return "-" }
func (stream) Base(string) string                    { return "-" }
func (stream) Inside(string, string) bool            { return true }

func (s stream) Resolve(context.Context, string) (string, *Info, error) { return "", nil, s.none() }
func (s stream) Lstat(context.Context, string) (*Info, error)           { return nil, s.none() }
func (s stream) ReadDir(context.Context, string) ([]*Info, error)       { return nil, s.none() }
func (s stream) Readlink(context.Context, string) (string, error)       { return "", s.none() }
func (s stream) Open(context.Context, string) (io.ReadCloser, error)    { return nil, s.none() }
func (s stream) Create(context.Context, string, fs.FileMode) (Output, error) {
	return nil, s.none()
}
func (s stream) Write(context.Context, string) (Output, error)            { return nil, s.none() }
func (s stream) Mkdir(context.Context, string, fs.FileMode) error         { return s.none() }
func (s stream) Symlink(context.Context, string, string) error            { return s.none() }
func (s stream) Rename(context.Context, string, string) error             { return s.none() }
func (s stream) Remove(context.Context, string) error                     { return s.none() }
func (s stream) Link(context.Context, string, string) error               { return s.none() }
func (s stream) Mknod(context.Context, string, fs.FileMode, Device) error { return s.none() }
func (s stream) Set(context.Context, string, Meta) error                  { return s.none() }
