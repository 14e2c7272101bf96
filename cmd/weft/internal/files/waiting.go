// This file holds what of this machine's files makes others wait: opening a pipe
// waits for its other end, reading and writing pipes and terminals for what is
// there.

package files

import (
	"context"
	"os"
	"time"
)

// openExisting opens an existing file. It waits no longer than the context lasts.
func openExisting(ctx context.Context, name string, flag int) (*os.File, error) {
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened)
	go func() {
		f, err := os.OpenFile(name, flag, 0)
		select {
		case done <- opened{f, err}:
		case <-ctx.Done():
			if err == nil {
				f.Close()
			}
		}
	}()
	select {
	case o := <-done:
		return o.f, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bound makes reads and writes of f, such as a pipe, fail when the context ends, until
// release is called.
func bound(ctx context.Context, f *os.File) (release func() bool) {
	return context.AfterFunc(ctx, func() { f.SetDeadline(time.Unix(1, 0)) })
}

// because returns the error of the context in place of err, if the context has ended.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
