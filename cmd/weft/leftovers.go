// This file reports partial files of copies, and chooses the directory for their
// records.

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
)

// recordParts removes partial files that earlier copies have left, and records those of
// this copy. The returned function reports what is left, and closes the record.
func (c *cp) recordParts(ctx context.Context) (end func()) {
	l := files.OpenLeftovers(leftoversDir())
	c.copier.Leftovers = l
	var trees []files.Tree
	for _, m := range c.trees {
		trees = append(trees, m.tree)
	}
	for _, p := range l.Sweep(ctx, trees...) {
		c.notice(fmt.Sprintf("removed %v, left behind by an earlier copy", p))
	}
	atAbruptEnd(ctx, c.reportLeft)
	return func() {
		c.reportLeft()
		l.Close()
	}
}

// reportLeft reports partial files that may be left.
func (c *cp) reportLeft() {
	text := "left behind: %v"
	if c.copier.Leftovers.Kept() {
		text += "; the next weft cp with this server will remove it"
	}
	for _, p := range c.copier.Leftovers.Left() {
		c.notice(fmt.Sprintf(text, p))
	}
}

// leftoversDir returns the directory for the records: in the state directory of this
// user, or among temporary files if the user has no home.
func leftoversDir() string {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		state = ""
	}
	if home, err := os.UserHomeDir(); state == "" && err == nil {
		state = filepath.Join(home, ".local", "state")
		if cache, err := os.UserCacheDir(); runtime.GOOS == "windows" && err == nil {
			state = cache
		}
		if _, err := os.Stat(home); err != nil {
			state = ""
		}
	}
	if state == "" {
		return filepath.Join(os.TempDir(), fmt.Sprintf("weft-copies-%d", os.Getuid()))
	}
	return filepath.Join(state, "weft", "copies")
}
