// This file makes the packages for Linux distributions.

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // a format
	_ "github.com/goreleaser/nfpm/v2/rpm" // a format
)

const (
	homepage   = "https://github.com/weft-rdma/weft"
	maintainer = "The Weft authors <weft-rdma@users.noreply.github.com>"
	summary    = "software RDMA: iWARP, and RDMA programs without RDMA hardware"
	about      = `The weft command serves and copies files over RDMA, measures connections, and
runs programs that use libibverbs and librdmacm on machines that have no RDMA
device. It needs neither kernel modules nor root.`
)

// deb makes the package for Debian.
func (b *builder) deb(ctx context.Context) ([]string, error) {
	libc, err := libcOf(b.libraries()...)
	if err != nil {
		return nil, err
	}
	return b.pack(ctx, "deb", nfpm.Overridables{
		Depends: []string{"libc6 (>= " + libc + ")"}, Recommends: []string{"librdmacm1"},
		Suggests: []string{"ibverbs-utils", "rdmacm-utils", "perftest"},
	})
}

// rpm makes the package for distributions with RPM. What it needs of glibc it says as they
// do, by the versions of its symbols.
func (b *builder) rpm(ctx context.Context) ([]string, error) {
	libc, err := libcOf(b.libraries()...)
	if err != nil {
		return nil, err
	}
	return b.pack(ctx, "rpm", nfpm.Overridables{
		Depends: []string{"libc.so.6(GLIBC_" + libc + ")(64bit)"}, Recommends: []string{"librdmacm"},
		Suggests: []string{"libibverbs-utils", "librdmacm-utils", "perftest"},
		RPM:      nfpm.RPM{Summary: summary, BuildHost: "localhost"},
	})
}

// pack puts what was built into a package of a kind.
func (b *builder) pack(ctx context.Context, kind string, differing nfpm.Overridables) ([]string, error) {
	contents, err := b.contents(ctx)
	if err != nil {
		return nil, err
	}
	differing.Contents, differing.Umask = contents, 0o022
	differing.Scripts = b.scripts()
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "weft", Arch: b.target.arch, Platform: "linux", Version: b.packageVersion(), VersionSchema: "none",
		Section: "net", Priority: "optional", License: "Apache-2.0", Description: summary + "\n" + about,
		Maintainer: maintainer, Homepage: homepage, MTime: b.at, Overridables: differing,
	})
	if err := nfpm.PrepareForPackager(info, kind); err != nil {
		return nil, err
	}
	packager, err := nfpm.Get(kind)
	if err != nil {
		return nil, err
	}
	var pkg bytes.Buffer
	if err := packager.Package(info, &pkg); err != nil {
		return nil, err
	}
	path := filepath.Join(b.out, packager.ConventionalFileName(info))
	return []string{path}, os.WriteFile(path, pkg.Bytes(), 0o644)
}

// scripts are what the package managers run.
func (b *builder) scripts() nfpm.Scripts {
	script := func(name string) string { return filepath.Join(b.root, "packaging", "scripts", name) }
	return nfpm.Scripts{PostInstall: script("postinstall"), PreRemove: script("preremove"), PostRemove: script("postremove")}
}

func (b *builder) libraries() (paths []string) {
	for _, name := range libraries {
		paths = append(paths, b.file(name))
	}
	return paths
}
