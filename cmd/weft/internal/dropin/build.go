package dropin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The files of the library.
const (
	Library = "libibverbs.so.1"
	Engine  = "libweft-engine.so"
	View    = "libweft-view.so" // what --view preloads
)

var files = []string{Library, Engine, View}

// complete reports that a folder has the library.
func complete(dir string) bool {
	for _, name := range files {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// Installed returns a folder that has the library, as an absolute path.
func Installed(dir string) (string, error) {
	if !complete(dir) {
		return "", fmt.Errorf("%s does not hold %s", dir, strings.Join(files, ", "))
	}
	return filepath.Abs(dir)
}

// A Builder builds the library from its sources, with the compiler CC and its options
// CFLAGS, for the processor GOARCH, if the environment has them.
type Builder struct {
	Source string // the root of the repository
	Cache  string // where the library is kept
	Say    func(format string, args ...any)
}

// Build returns the folder with the library of the sources as they are, which it builds
// if it is not there.
func (b *Builder) Build(ctx context.Context) (dir string, err error) {
	if err := Private(b.Cache); err != nil {
		return "", err
	}
	print, err := fingerprint(b.Source)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(b.Cache, print)
	if complete(dir) {
		b.use(print, time.Now())
		return dir, nil
	}
	if err := checkTools(ctx); err != nil {
		return "", err
	}
	// Beside its place, so that it gets there in one step, and whole.
	fresh, err := os.MkdirTemp(b.Cache, "building-")
	if err != nil {
		return "", elsewhere(err)
	}
	defer os.RemoveAll(fresh)
	b.Say("building the library (once for this state of the sources)")
	if err := b.compile(ctx, fresh); err != nil {
		return "", err
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, dir); err != nil && !complete(dir) { // somebody else may have been first
		return "", err
	}
	b.use(print, time.Now())
	return dir, nil
}

// compile builds all files into dir.
func (b *Builder) compile(ctx context.Context, dir string) error {
	module := filepath.Join(b.Source, "dropin")
	cc, err := compiler()
	if err != nil {
		return err
	}
	for _, l := range libraries {
		sources, err := l.sources(filepath.Join(module, "c"))
		if err != nil {
			return err
		}
		args := append(Flags(l.name, filepath.Join(module, "c", l.versions)), "-o", filepath.Join(dir, l.name))
		args = append(args, strings.Fields(os.Getenv("CFLAGS"))...)
		if err := execute(ctx, module, nil, cc, append(args, sources...)...); err != nil {
			return err
		}
	}
	if err := execute(ctx, module, b.modules(ctx), "go", "build", "-trimpath", "-buildmode=c-shared", ldflags, "-o", filepath.Join(dir, Engine), "./engine"); err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, strings.TrimSuffix(Engine, ".so")+".h")) // nobody includes it
}

// ldflags keeps the engine's runtime from sending signals to the program's threads, by which it
// would preempt them while they are in the engine: a signal that comes a moment later interrupts
// the program's own system calls. The runtime reads GODEBUG in the environment that the
// process was started with, so that the library cannot set it when it loads the engine; this
// is its default, as the go command sets it for a main package. The build ID is left out, so
// that the same sources give the same engine.
const ldflags = "-ldflags=-buildid= -X=runtime.godebugDefault=asyncpreemptoff=1"

// A library is one that is compiled from C.
type library struct {
	name     string
	versions string   // file of the symbols that it exports
	patterns []string // of its sources
}

// The view has the device's description in common with the library, so that both say
// the same of it.
var libraries = []library{
	{Library, "abi.map", []string{"*.c"}},
	{View, filepath.Join("view", "view.map"), []string{filepath.Join("view", "*.c"), "sysfs.c", "query.c", "gid.c", "options.c"}},
}

// sources are the library's files in dir.
func (l *library) sources(dir string) (sources []string, err error) {
	for _, pattern := range l.patterns {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("there are no sources in %s", filepath.Join(dir, pattern))
		}
		sources = append(sources, found...)
	}
	return sources, nil
}

// Flags are those with which a library of the C part is compiled, and linked with its
// versions.
func Flags(name, versions string) []string {
	return []string{
		"-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-fPIC", "-Wall", "-Wextra", "-shared", "-pthread",
		"-Wl,-soname," + name, "-Wl,--version-script=" + versions, "-Wl,-z,relro,-z,now,-z,nodelete", "-Wl,--no-undefined",
	}
}

// keptFor is how long a library is kept that nobody uses.
const keptFor = 30 * 24 * time.Hour

// use notes that a library is used, by the time of its folder, and removes those that
// nobody has used for long: each checkout has its own.
func (b *Builder) use(print string, now time.Time) {
	_ = os.Chtimes(filepath.Join(b.Cache, print), now, now) // at worst it is built again
	entries, err := os.ReadDir(b.Cache)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() && e.Name() != print && now.Sub(info.ModTime()) > keptFor {
			_ = os.RemoveAll(filepath.Join(b.Cache, e.Name())) // what is left is no harm
		}
	}
}

// execute runs a command, and returns what it said if it fails, a line each.
func execute(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=1", "GOOS=", "GOWORK=off"), env...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	said := []error{fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)}
	for line := range strings.Lines(string(out)) {
		said = append(said, errors.New(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "  ")))
	}
	return errors.Join(said...)
}

// modules is what the go command is told of where it keeps modules: a folder beside the
// library, if it has none of its own that it can write to.
func (b *Builder) modules(ctx context.Context) []string {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if dir := strings.TrimSpace(string(out)); err == nil && dir != "" && os.MkdirAll(dir, 0o755) == nil {
		return nil
	}
	return []string{"GOMODCACHE=" + b.Cache + "-modules", "GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" -modcacherw")}
}

// compiler is the machine's C compiler.
func compiler() (string, error) {
	for _, name := range []string{os.Getenv("CC"), "cc", "gcc", "clang"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no C compiler")
}
