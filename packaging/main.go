// Command packaging makes a Debian package of the weft command and of the library that
// `weft run` gives to programs.
//
//	go run . [-o DIR] [-arch arm64]     in the directory packaging
//
// It needs what `weft run --build` needs, and strip of binutils; for another processor a
// cross compiler (on Debian gcc-aarch64-linux-gnu). The same commit, built by the same
// compilers, gives the same octets.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out := flag.String("o", ".", "put the package into `DIR`")
	arch := flag.String("arch", runtime.GOARCH, "build for this `processor`: amd64 or arm64")
	flag.Parse()
	file, err := run(ctx, *out, *arch)
	if err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
	fmt.Println(file)
}

func run(ctx context.Context, out, arch string) (string, error) {
	t, err := targetOf(arch)
	if err != nil {
		return "", err
	}
	root, err := filepath.Abs("..")
	if err != nil {
		return "", err
	}
	stage, err := os.MkdirTemp("", "weft-packaging-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(stage)
	b := builder{root: root, stage: stage, target: t}
	if err := b.build(ctx); err != nil {
		return "", err
	}
	return b.pack(out)
}
