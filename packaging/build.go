// This file builds the programs and libraries of the products.

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
)

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

// A builder builds in a directory of its own, the stage, and puts what is done into
// another one.
type builder struct {
	root, stage, out string
	target           target
	platforms        []string
	identity
	pages, completions []string // files on the stage
}

func (b *builder) file(name string) string { return filepath.Join(b.stage, name) }

// build builds what several products have in them.
func (b *builder) build(ctx context.Context, withLibrary bool) (err error) {
	if b.identity, err = identify(ctx, b.root); err != nil {
		return err
	}
	if err := b.command(ctx, runtime.GOOS, runtime.GOARCH, b.file("native")); err != nil {
		return err
	}
	if err := b.command(ctx, "linux", b.target.arch, b.file("weft")); err != nil {
		return err
	}
	if b.pages, err = b.manuals(ctx); err != nil {
		return err
	}
	if b.completions, err = b.complete(ctx); err != nil {
		return err
	}
	if !withLibrary {
		return nil
	}
	return b.dropin(ctx)
}

// command builds weft.
func (b *builder) command(ctx context.Context, goos, goarch, file string) error {
	flags := fmt.Sprintf("-ldflags=-s -w -X main.packaged=%s -X main.packagedCommit=%s -X main.packagedTime=%s",
		b.version, b.commit, b.at.Format("2006-01-02T15:04:05Z"))
	_, err := execute(ctx, b.root, []string{"CGO_ENABLED=0", "GOOS=" + goos, "GOARCH=" + goarch},
		"go", "build", "-trimpath", "-buildvcs=false", flags, "-o", file, "./cmd/weft")
	return err
}

// dropin builds the library of `weft run`, in a cache that nobody else has.
func (b *builder) dropin(ctx context.Context) error {
	if strings.ContainsAny(b.root, " \t") {
		return fmt.Errorf("%s: CFLAGS can hold no path with a blank: build elsewhere", b.root)
	}
	goCache, err := execute(ctx, b.root, nil, "go", "env", "GOCACHE")
	if err != nil {
		return err
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = b.target.prefix + "gcc"
	}
	// Where the sources are, and when they were built, must not be seen in what is built.
	dir, err := execute(ctx, b.root, []string{
		"XDG_CACHE_HOME=" + b.file("cache"), "GOCACHE=" + goCache, "GOARCH=" + b.target.arch, "CC=" + cc,
		"CFLAGS=-ffile-prefix-map=" + b.root + "=.", "GOFLAGS=-buildvcs=false",
	}, b.file("native"), "run", "--build", "--source", b.root)
	if err != nil {
		return err
	}
	for _, name := range libraries {
		_, err := execute(ctx, b.root, nil, b.target.prefix+"strip", "--strip-unneeded", "-o", b.file(name), filepath.Join(dir, name))
		if err != nil {
			return err
		}
	}
	return nil
}

// execute runs a command in a directory and returns what it prints.
func execute(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err), errors.New(strings.TrimSpace(complaint.String())))
	}
	return strings.TrimSpace(string(out)), nil
}
