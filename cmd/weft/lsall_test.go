package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
)

// An endless tree has so many directories in each directory.
type endless struct {
	files.Local
	directories, asked int
}

func (e *endless) ReadDir(context.Context, string) ([]*files.Info, error) {
	e.asked++
	var list []*files.Info
	for i := range e.directories {
		list = append(list, &files.Info{Name: fmt.Sprintf("%0100d", i), Mode: fs.ModeDir | 0o755})
	}
	return list, nil
}

// What is kept of directories that are still to be listed is bounded, and so is how deep
// they are.
func TestFoldersWithoutEndAreNotListedForEver(t *testing.T) {
	for _, tt := range []struct {
		directories, most int
		says              string
	}{
		{1, maxListDepth + 2, "deep"},
		{1000, maxListPending/1000/100 + 2, "too many directories"},
	} {
		var notices strings.Builder
		l := &ls{mounts: mounts{cmd: &cobra.Command{Use: "ls"}}}
		l.cmd.SetErr(&notices)
		tree := &endless{directories: tt.directories}
		err := l.listAll(t.Context(), io.Discard, "nfs://host/", tree, "/")
		if err == nil || !strings.Contains(err.Error()+notices.String(), tt.says) || tree.asked > tt.most {
			t.Errorf("%d directories in each: %d listed, %v, want an error with %q", tt.directories, tree.asked, err, tt.says)
		}
	}
}
