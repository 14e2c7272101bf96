// This file builds the programs and libraries of the package.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// This file builds what the package holds.

// libraries are the files of the library, as `weft run --build` makes them.
var libraries = []string{"libibverbs.so.1", "libweft-engine.so", "libweft-view.so"}

// A target is a processor that a package is for.
type target struct {
	arch   string // as Go and Debian call it
	prefix string // of the tools that build for it
}

func targetOf(arch string) (target, error) {
	prefixes := map[string]string{"amd64": "x86_64-linux-gnu-", "arm64": "aarch64-linux-gnu-"}
	prefix, ok := prefixes[arch]
	switch {
	case !ok:
		return target{}, fmt.Errorf("-arch %s: expected amd64 or arm64", arch)
	case arch == runtime.GOARCH:
		prefix = ""
	}
	return target{arch, prefix}, nil
}

// A builder builds in a directory of its own.
type builder struct {
	root, stage string
	target      target
	version     string    // of the package
	at          time.Time // of the commit
}

func (b *builder) file(name string) string { return filepath.Join(b.stage, name) }

func (b *builder) build(ctx context.Context) error {
	if err := b.identify(ctx); err != nil {
		return err
	}
	if err := b.command(ctx); err != nil {
		return err
	}
	if err := b.library(ctx); err != nil {
		return err
	}
	return b.manual(ctx)
}

// command builds weft: for the package, and for this machine, which builds the rest.
func (b *builder) command(ctx context.Context) error {
	for name, arch := range map[string]string{"weft": b.target.arch, "native": runtime.GOARCH} {
		_, err := b.execute(ctx, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch}, "go", "build",
			"-trimpath", "-buildvcs=false", "-ldflags=-s -w -X main.packaged="+b.version, "-o", b.file(name), "./cmd/weft")
		if err != nil {
			return err
		}
	}
	return nil
}

// library builds the library, in a cache that nobody else has.
func (b *builder) library(ctx context.Context) error {
	goCache, err := b.execute(ctx, nil, "go", "env", "GOCACHE")
	if err != nil {
		return err
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = b.target.prefix + "gcc"
	}
	// Where the sources are, and when they were built, must not be seen in what is built.
	dir, err := b.execute(ctx, []string{
		"XDG_CACHE_HOME=" + b.file("cache"), "GOCACHE=" + goCache, "GOARCH=" + b.target.arch, "CC=" + cc,
		"CFLAGS=-ffile-prefix-map=" + b.root + "=.", "GOFLAGS=-buildvcs=false",
	}, b.file("native"), "run", "--build", "--source", b.root)
	if err != nil {
		return err
	}
	for _, name := range libraries {
		if _, err := b.execute(ctx, nil, b.target.prefix+"strip", "--strip-unneeded", "-o", b.file(name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// execute runs a command in the root of the repository and returns what it prints.
func (b *builder) execute(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), env...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err), errors.New(strings.TrimSpace(complaint.String())))
	}
	return strings.TrimSpace(string(out)), nil
}
