// This file makes the image in which RDMA programs run: Debian, with the package.

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// debianImage makes it, of the Debian that the machine itself has, from where the machine has it.
func (b *builder) debianImage(ctx context.Context) ([]string, error) {
	if b.target.arch != runtime.GOARCH {
		return nil, fmt.Errorf("image-run is for the machine's own processor, %s", runtime.GOARCH)
	}
	suite, err := suiteOf("/etc/os-release")
	if err != nil {
		return nil, err
	}
	sources, err := aptSources("/etc/apt")
	if err != nil {
		return nil, err
	}
	kept := b.out
	b.out = b.stage
	made, err := b.deb(ctx)
	b.out = kept
	if err != nil {
		return nil, err
	}
	root := b.file("root.tar")
	args := []string{
		"--variant=apt", "--format=tar", "--quiet", "--include=ibverbs-utils,rdmacm-utils,perftest",
		"--customize-hook=upload " + made[0] + " /weft.deb", `--customize-hook=chroot "$1" dpkg --install /weft.deb`,
		// The user of the image, and its home.
		`--customize-hook=printf 'weft:x:65532:\n' >>"$1/etc/group"`,
		`--customize-hook=printf 'weft:x:65532:65532:Weft:/home/weft:/bin/sh\n' >>"$1/etc/passwd"`,
		`--customize-hook=install -d -m 700 -o 65532 -g 65532 "$1/home/weft"`,
		// What differs from one time to the next.
		`--customize-hook=rm -rf "$1"/weft.deb "$1"/var/log/* "$1"/var/cache/* "$1"/etc/machine-id "$1"/etc/hostname "$1"/etc/resolv.conf`,
		suite, root,
	}
	env := []string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", b.at.Unix())}
	if _, err := execute(ctx, b.stage, env, "mmdebstrap", append(args, sources...)...); err != nil {
		return nil, err
	}
	return b.image("weft-run-image", root, "RDMA programs without RDMA hardware: Debian with weft run", v1.Config{Cmd: []string{"weft", "--help"}})
}

// suiteOf returns the name of the release.
func suiteOf(osRelease string) (string, error) {
	text, err := os.ReadFile(osRelease)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "VERSION_CODENAME="); ok && strings.Contains(string(text), "ID=debian\n") {
			return name, nil
		}
	}
	return "", fmt.Errorf("%s is not of a release of Debian", osRelease)
}

// aptSources are the files that say where apt takes packages from.
func aptSources(dir string) (files []string, err error) {
	for _, pattern := range []string{"sources.list", "sources.list.d/*.list", "sources.list.d/*.sources"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("apt has no sources in %s", dir)
	}
	return files, nil
}
