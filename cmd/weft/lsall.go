// This file lists directories recursively.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
)

// Limits of ls -R, against a server whose tree has no end: the depth, and the memory
// for the directories that are still to be listed, in bytes.
const (
	maxListDepth   = 1000
	maxListPending = 64 << 20
	pendingSize    = 64
)

// A pendingDir is a directory to be listed: its name for the user, and its path.
type pendingDir struct {
	title, path string
	depth       int
}

func (d *pendingDir) bytes() int { return pendingSize + len(d.title) + len(d.path) }

// listAll lists a directory and all below it.
func (l *ls) listAll(ctx context.Context, w io.Writer, arg string, tree files.Tree, dir string) error {
	stack := []pendingDir{{title: strings.TrimSuffix(arg, "/"), path: dir}}
	room := maxListPending
	failed, first := 0, true
	for len(stack) > 0 {
		d := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		room += d.bytes()
		if !l.asJSON {
			if !first {
				fmt.Fprint(w, l.end())
			}
			fmt.Fprintf(w, "%s:%s", l.shown(w, d.title), l.end())
		}
		first = false
		below, err := l.listOne(ctx, w, tree, &d)
		if err != nil {
			if ctx.Err() != nil || files.Fatal(err) {
				return fmt.Errorf("%s: %w", d.title, err)
			}
			l.report(fmt.Errorf("%s: %w", d.title, err))
			failed++
		}
		slices.Reverse(below)
		for i := range below {
			if room -= below[i].bytes(); room < 0 {
				return fmt.Errorf("%s: %w", d.title, errors.New("too many directories to list at once; list them in parts"))
			}
		}
		stack = append(stack, below...)
	}
	if failed > 0 {
		return fmt.Errorf("%s: could not list %d of its directories", arg, failed)
	}
	return nil
}

// listOne lists a directory and returns its subdirectories.
func (l *ls) listOne(ctx context.Context, w io.Writer, tree files.Tree, d *pendingDir) (below []pendingDir, err error) {
	list, err := tree.ReadDir(ctx, d.path)
	if err != nil {
		return nil, err
	}
	list = l.visible(list)
	if err := l.print(ctx, w, tree, d.path, list); err != nil {
		return nil, err
	}
	for _, i := range list {
		if !i.Mode.IsDir() {
			continue
		}
		if d.depth == maxListDepth {
			return nil, fmt.Errorf("directories more than %d levels deep", maxListDepth)
		}
		name, err := tree.Join(d.path, i.Name)
		if err != nil {
			return nil, err
		}
		below = append(below, pendingDir{d.title + "/" + i.Name, path.Clean(name), d.depth + 1})
	}
	return below, nil
}

// shown returns a name as it is printed. On a terminal it is quoted, so that it cannot
// control the terminal.
func (l *ls) shown(w io.Writer, name string) string {
	if !l.zero && onTerminal(w) {
		return printable(name)
	}
	return name
}
