// This file reports partial files, and says where account of them is kept.

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
)

// account keeps account of the files in part of a copy, after removing what copies
// before it have left. The returned function ends it, and names what is left.
func (c *cp) account(ctx context.Context) (end func()) {
	l := files.OpenLeftovers(accountDir())
	c.copier.Leftovers = l
	var trees []files.Tree
	for _, m := range c.trees {
		trees = append(trees, m.tree)
	}
	for _, p := range l.Sweep(ctx, trees...) {
		c.notice(fmt.Sprintf("removed %v, left behind by an earlier copy", p))
	}
	atAbruptEnd(ctx, c.tellLeft)
	return func() {
		c.tellLeft()
		l.Close()
	}
}

// tellLeft names what is left.
func (c *cp) tellLeft() {
	text := "left behind: %v"
	if c.copier.Leftovers.Kept() {
		text += "; the next weft cp with this server will remove it"
	}
	for _, p := range c.copier.Leftovers.Left() {
		c.notice(fmt.Sprintf(text, p))
	}
}

// accountDir is a folder of this user's that outlasts processes: the one for state,
// or without a home one among temporary files.
func accountDir() string {
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
