// Command packaging makes what users install: packages, binaries and images of the weft
// command and of the library that `weft run` gives to programs.
//
//	go run . [-o DIR] [-arch arm64] [PRODUCT...]     in the directory packaging
//
// Without a PRODUCT it makes the packages. The products are
//
//	deb          a package for Debian and its descendants
//	rpm          a package for Fedora, RHEL, openSUSE and the like
//	binaries     an archive with the static command for each platform, with an SBOM each
//	image        a container image with nothing but the static command
//	image-run    a container image of Debian with the deb and common RDMA programs
//	third-party  a text with the licenses of what is linked into all of these
//
// and SHA256SUMS has the checksum of each file. A deb, an rpm and image-run need what `weft run
// --build` needs, and strip of binutils; for another processor a cross compiler (on Debian
// gcc-aarch64-linux-gnu). Image-run also needs mmdebstrap, takes Debian from where the
// machine's own apt takes it, and is for the machine's own processor. The others need the
// go command only.
//
// The same commit, built by the same compilers, gives the same octets; image-run does as
// long as the archive of Debian is the same.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out := flag.String("o", ".", "put the files into `DIR`")
	arch := flag.String("arch", runtime.GOARCH, "build packages and images for this `processor`: amd64 or arm64")
	platforms := flag.String("platforms", strings.Join(everyPlatform, ","), "build binaries for these `platforms`")
	flag.Parse()
	b := builder{out: *out, platforms: strings.Split(*platforms, ",")}
	if err := run(ctx, &b, *arch, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

// A product is something that this command makes.
type product struct {
	name   string
	dropin bool // it has the library of `weft run` in it
	make   func(b *builder, ctx context.Context) ([]string, error)
}

var products = []product{
	{"deb", true, (*builder).deb},
	{"rpm", true, (*builder).rpm},
	{"binaries", false, (*builder).binaries},
	{"image", false, (*builder).scratchImage},
	{"image-run", true, (*builder).debianImage},
	{"third-party", false, (*builder).thirdParty},
}

// choose returns the products of these names, and the packages if there is none.
func choose(names []string) (chosen []product, err error) {
	if len(names) == 0 {
		names = []string{"deb", "rpm"}
	}
	for _, p := range products {
		if slices.Contains(names, p.name) {
			chosen = append(chosen, p)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(products, func(p product) bool { return p.name == name }) {
			return nil, fmt.Errorf("there is no product %s: expected deb, rpm, binaries, image, image-run or third-party", name)
		}
	}
	return chosen, nil
}

// run makes the products and prints the paths of their files.
func run(ctx context.Context, b *builder, arch string, names []string) (err error) {
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	if b.target, err = targetOf(arch); err != nil {
		return err
	}
	if b.root, err = filepath.Abs(".."); err != nil {
		return err
	}
	if b.out, err = filepath.Abs(b.out); err != nil {
		return err
	}
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	if b.stage, err = os.MkdirTemp("", "weft-packaging-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.stage)
	if err := b.build(ctx, slices.ContainsFunc(chosen, func(p product) bool { return p.dropin })); err != nil {
		return err
	}
	var made []string
	for _, p := range chosen {
		files, err := p.make(b, ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		made = append(made, files...)
	}
	fmt.Println(strings.Join(made, "\n"))
	return writeSums(b.out, made)
}
