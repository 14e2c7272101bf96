package main

// This file prepares what all rows share: the command, the library, and the user that
// programs run as.

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// nobody is the user and group that programs run as if root started the command.
const nobody = 65534

// A bench is where programs are run.
type bench struct {
	dir    string // scratch
	weft   string // the command
	libDir string
	limit  time.Duration
	count  int // of rows so far, each of which has a folder
}

// prepare builds the command and the library.
func prepare(ctx context.Context) (*bench, error) {
	// Children that a program leaves behind become this process's, which ends them.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("becoming the subreaper: %w", err)
	}
	dir, err := os.MkdirTemp("", "weft-programs-")
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir, weft: filepath.Join(dir, "weft"), libDir: filepath.Join(dir, "lib")}
	if err := b.build(ctx); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return b, nil
}

// build leaves all that programs need in the scratch folder: the caches of the user who
// started the command may be closed to the user that programs run as.
func (b *bench) build(ctx context.Context) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	if _, err := output(command(ctx, root, "go", "build", "-o", b.weft, "./cmd/weft")); err != nil {
		return err
	}
	lib, err := output(exec.CommandContext(ctx, b.weft, "run", "--build", "--source", root))
	if err != nil {
		return err
	}
	if err := os.CopyFS(b.libDir, os.DirFS(lib)); err != nil {
		return err
	}
	if err := copySuites(b.suiteDir("")); err != nil {
		return err
	}
	return os.Chmod(b.dir, 0o755)
}

func (b *bench) suiteDir(name string) string { return filepath.Join(b.dir, "suites", name) }

// moduleRoot is the root of the repository.
func moduleRoot(ctx context.Context) (string, error) {
	return output(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/weft-rdma/weft"))
}

// folder makes the folder of a row, which belongs to the user that programs run as.
func (b *bench) folder() (string, error) {
	b.count++
	dir := filepath.Join(b.dir, fmt.Sprint(b.count))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	if os.Geteuid() == 0 {
		return dir, os.Chown(dir, nobody, nobody)
	}
	return dir, nil
}

// drop has a command run as an ordinary user, at home in dir.
func drop(cmd *exec.Cmd, dir string) {
	if os.Geteuid() != 0 {
		return
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	cmd.Env = append(cmd.Env, "HOME="+dir, "TMPDIR="+dir, "USER=nobody", "LOGNAME=nobody", "XDG_CACHE_HOME="+dir, "XDG_RUNTIME_DIR="+dir)
}

func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	return cmd
}

// output is what a command prints.
func output(cmd *exec.Cmd) (string, error) {
	var said strings.Builder
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, &said), &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, lastLines(said.String(), 12))
	}
	return strings.TrimSpace(out.String()), nil
}
