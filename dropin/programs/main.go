// Command programs runs RDMA programs that nobody here wrote, in pairs, on the drop-in
// library, and prints a table: which program, as which persona, and what came of it.
//
//	go run ./programs [flags] [NAME...]     in the folder dropin
//
// A row passes when both ends end with status 0 (a server that never ends is ended) and
// said what they should. Programs that are not installed are named with the command that
// installs them. The exit status is 0 when all that ran passed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	limit := flag.Duration("limit", time.Minute, "how long a pair may take")
	markdown := flag.Bool("markdown", false, "print the table for docs/programs.md")
	flag.Parse()
	table, err := run(context.Background(), *limit, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "programs:", err)
		os.Exit(2)
	}
	if *markdown {
		fmt.Print(table.markdown())
	}
	if table.summary(os.Stdout) {
		os.Exit(1)
	}
}

// run runs the rows that are named, or all.
func run(ctx context.Context, limit time.Duration, names []string) (results, error) {
	b, err := prepare(ctx)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(b.dir)
	b.limit = limit
	var table results
	for _, r := range rows {
		if len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(r.name, n) }) {
			continue
		}
		for _, persona := range r.personas {
			res := b.try(ctx, &r, persona)
			fmt.Println(res)
			table = append(table, res)
		}
	}
	return table, nil
}

// A bench is where programs are run.
type bench struct {
	dir    string // scratch
	weft   string // the command
	libDir string
	limit  time.Duration
}

// prepare builds the command and the library.
func prepare(ctx context.Context) (*bench, error) {
	dir, err := os.MkdirTemp("", "weft-programs-")
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir, weft: filepath.Join(dir, "weft")}
	root, err := output(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/weft-rdma/weft"))
	if err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", b.weft, "./cmd/weft")
	build.Dir = root
	if _, err := output(build); err != nil {
		return nil, err
	}
	b.libDir, err = output(exec.CommandContext(ctx, b.weft, "run", "--build", "--source", root))
	return b, err
}

// output is what a command prints.
func output(cmd *exec.Cmd) (string, error) {
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}
