// This file is weft ls.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
)

// ls holds the flags of `weft ls`.
type ls struct {
	mounts
	long, all, self bool

	recursive, human, zero, asJSON bool
}

func newLs() *cobra.Command {
	l := new(ls)
	cmd := &cobra.Command{
		Use:   "ls [flags] URL...",
		Short: "List directories of an NFS server",
		Long: `Ls lists directories of NFS servers, one name per line, without a mount.

` + urlHelp + `

On a terminal, a name with special characters is quoted as GNU ls does it. Elsewhere
names are the server's bytes; with --zero each ends with NUL.

` + jsonHelp + `

The status is 1 if something could not be listed; the rest is listed.`,
		Example: `  weft ls nfs://127.0.0.1/                 what weft serve . serves
  weft ls -l nfs://192.0.2.7/srv/data
  weft ls -ld nfs://192.0.2.7/srv/data     the directory itself
  weft ls -lhR nfs://192.0.2.7/srv/data    the whole tree, with readable sizes
  weft ls -R --json nfs://192.0.2.7/srv | jq -r 'select(.size > 1e9) | .url'`,
		Args: arguments(1, 0, "a URL, such as nfs://127.0.0.1/"),
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&l.long, "long", "l", false, "show mode, links, owner, group, size and time of modification")
	f.BoolVarP(&l.all, "all", "a", false, "include names that begin with a dot")
	f.BoolVarP(&l.self, "directory", "d", false, "list directories themselves, not their contents")
	f.BoolVarP(&l.recursive, "recursive", "R", false, "list subdirectories, too")
	f.BoolVarP(&l.human, "human-readable", "h", false, "with -l, show sizes such as 1.5G, in powers of 1,024")
	f.BoolVar(&l.asJSON, "json", false, "print one JSON object per line for each file")
	f.BoolVar(&l.zero, "zero", false, "end each name with NUL instead of a line feed, and quote nothing")
	f.Bool("help", false, "help for ls")
	l.register(cmd)
	return cmd
}

// needURLs checks that all arguments are URLs.
func needURLs(args []string) error {
	for _, arg := range args {
		if _, err := files.ParseURL(arg); err != nil {
			return usagef("%v", err)
		}
	}
	return nil
}

// needNames is needURLs for files that are removed or renamed. It refuses . and .. at
// the end, as rm(1) does: a/.. would be the directory of a.
func needNames(args []string) error {
	if err := needURLs(args); err != nil {
		return err
	}
	for _, arg := range args {
		if files.EndsInDots(arg) {
			return usagef("%s ends in . or ..: name the directory itself", arg)
		}
	}
	return nil
}

func (l *ls) run(cmd *cobra.Command, args []string) (err error) {
	if err := needURLs(args); err != nil {
		return err
	}
	if err := l.open(cmd); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	failed := 0
	for i, arg := range args {
		if len(args) > 1 && i > 0 && !l.asJSON {
			fmt.Fprint(cmd.OutOrStdout(), l.end())
		}
		if err := l.list(cmd.Context(), cmd.OutOrStdout(), arg, len(args) > 1); err != nil {
			if len(args) == 1 || cmd.Context().Err() != nil || files.Fatal(err) {
				return err
			}
			l.report(err)
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d could not be listed", failed, len(args))
	}
	return nil
}

// end returns the end of a line.
func (l *ls) end() string {
	if l.zero {
		return "\x00"
	}
	return "\n"
}

// list lists the file or directory of an argument, with a title if there are several.
func (l *ls) list(ctx context.Context, w io.Writer, arg string, titled bool) error {
	p, err := l.place(ctx, arg)
	if err != nil {
		return err
	}
	tree := p.Tree
	path, info, err := tree.Resolve(ctx, p.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", arg, err)
	}
	if !info.Mode.IsDir() || l.self {
		if !l.self { // a link is shown as what it leads to
			path = p.Path
		}
		info.Name = tree.Base(path)
		return l.print(ctx, w, tree, tree.Dir(path), []*files.Info{info})
	}
	if l.recursive {
		return l.listAll(ctx, w, arg, tree, path)
	}
	list, err := tree.ReadDir(ctx, path)
	if err != nil {
		return fmt.Errorf("%s: %w", arg, err)
	}
	if titled && !l.asJSON {
		fmt.Fprintf(w, "%s:%s", arg, l.end())
	}
	return l.print(ctx, w, tree, path, l.visible(list))
}

// visible returns the files that are shown.
func (l *ls) visible(list []*files.Info) []*files.Info {
	if l.all {
		return list
	}
	return slices.DeleteFunc(list, func(i *files.Info) bool { return strings.HasPrefix(i.Name, ".") })
}

func (l *ls) print(ctx context.Context, w io.Writer, tree files.Tree, dir string, list []*files.Info) error {
	if l.asJSON {
		return printJSON(ctx, w, tree.(*files.Remote), dir, list)
	}
	show, end := func(name string) string { return l.shown(w, name) }, l.end()
	if !l.long {
		for _, i := range list {
			if _, err := fmt.Fprint(w, show(i.Name), end); err != nil {
				return err
			}
		}
		return nil
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 1, ' ', tabwriter.AlignRight)
	for _, i := range list {
		fmt.Fprintf(table, "%d\t%d\t%d\t%s\t\n", i.Links, i.UID, i.GID, l.size(i))
	}
	table.Flush()
	columns := strings.Split(text.String(), "\n")
	for n, i := range list {
		name := show(i.Name)
		if i.Mode&os.ModeSymlink != 0 {
			if link, err := tree.Join(dir, i.Name); err == nil {
				target, err := tree.Readlink(ctx, link)
				if err != nil {
					return err
				}
				name += " -> " + show(target)
			}
		}
		if _, err := fmt.Fprintf(w, "%s%s %s %s%s", modeOf(i.Mode), columns[n], i.Mtime.Format(time.DateTime), name, end); err != nil {
			return err
		}
	}
	return nil
}

// size formats the column of the size.
func (l *ls) size(i *files.Info) string {
	if l.human {
		return human(uint64(i.Size))
	}
	return fmt.Sprint(i.Size)
}

// modeOf formats a mode as ls(1) does.
func modeOf(mode os.FileMode) string {
	kind := byte('-')
	for _, k := range [...]struct {
		bit  os.FileMode
		kind byte
	}{
		{os.ModeDir, 'd'}, {os.ModeSymlink, 'l'}, {os.ModeNamedPipe, 'p'}, {os.ModeSocket, 's'},
		{os.ModeDevice, 'b'}, {os.ModeCharDevice, 'c'}, // which has both bits
	} {
		if mode&k.bit != 0 {
			kind = k.kind
		}
	}
	text := []byte(mode.Perm().String())
	text[0] = kind
	for _, special := range [...]struct {
		bit  os.FileMode
		at   int
		mark byte
	}{{os.ModeSetuid, 3, 's'}, {os.ModeSetgid, 6, 's'}, {os.ModeSticky, 9, 't'}} {
		if mode&special.bit == 0 {
			continue
		}
		if text[special.at] == '-' { // without the right to execute, in capitals
			special.mark -= 'a' - 'A'
		}
		text[special.at] = special.mark
	}
	return string(text)
}
