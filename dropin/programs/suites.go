package main

// This file builds programs that Debian 12 has no package of, or not with RDMA, from the
// source packages of Debian's newest release: for that it asks apt-get with a configuration of its
// own, so it needs no root and changes nothing of the system.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A suite is programs that are built from source.
type suite struct {
	name, source string   // the folder, and Debian's source package
	needs        string   // Debian's packages to build it
	headers      []string // of these packages
	tools        []string // of these packages
	commands     []string // in the folder of the sources, by a shell; $OUT is where the programs go
}

var suites = []suite{
	{
		name: "valkey", source: "valkey", needs: "make gcc libc6-dev pkgconf libibverbs-dev librdmacm-dev",
		headers: []string{"rdma/rdma_cma.h"}, tools: []string{"make", "gcc"},
		commands: []string{
			"make -j2 BUILD_RDMA=yes MALLOC=libc OPTIMIZATION=-O2",
			"make -C tests/rdma",
			"mkdir -p $OUT/src $OUT/tests/rdma",
			"cp src/valkey-server src/valkey-benchmark src/valkey-cli $OUT/src",
			"cp runtest-rdma $OUT && cp tests/rdma/rdma-test tests/rdma/run.py tests/rdma/Makefile tests/rdma/rdma-test.c $OUT/tests/rdma",
		},
	},
	{
		name: "fabtests", source: "libfabric", needs: "make gcc libc6-dev autoconf automake libtool libibverbs-dev librdmacm-dev python3",
		headers: []string{"rdma/rdma_cma.h"}, tools: []string{"make", "gcc", "autoreconf", "libtoolize", "python3"},
		commands: []string{
			"autoreconf -if",
			"./configure --prefix=$OUT --disable-static --enable-verbs=yes --disable-psm2 --disable-psm3 --disable-usnic --disable-efa --disable-opx --disable-udp " +
				"--disable-sockets --disable-shm --disable-sm2 --disable-rxd --disable-mrail --disable-perf --disable-lpp --disable-ucx --disable-lnx --disable-cxi",
			"make -j2 install",
			"cd fabtests && autoreconf -if && ./configure --prefix=$OUT --with-libfabric=$OUT && make -j2 install && cp -r test_configs $OUT/",
		},
	},
	{
		name: "perftest", source: "perftest", needs: "make gcc libc6-dev autoconf automake libtool libibverbs-dev librdmacm-dev libibumad-dev libpci-dev",
		headers: []string{"rdma/rdma_cma.h", "infiniband/umad.h", "pci/pci.h"}, tools: []string{"make", "gcc", "autoreconf", "libtoolize"},
		commands: []string{"./autogen.sh", "./configure --prefix=$OUT", "make -j2 install"},
	},
}

// suitesCache is where suites are kept.
func suitesCache() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "weft", "programs"), err
}

func suiteBuilt(name string) bool {
	cache, err := suitesCache()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(cache, name))
	return err == nil
}

// copySuites copies the suites that were built to where all users may read them.
func copySuites(dir string) error {
	cache, err := suitesCache()
	if err != nil {
		return err
	}
	for _, s := range suites {
		if suiteBuilt(s.name) {
			if err := os.CopyFS(filepath.Join(dir, s.name), os.DirFS(filepath.Join(cache, s.name))); err != nil {
				return err
			}
		}
	}
	return nil
}

// buildSuites builds those that are not there. One that cannot be built does not keep
// the others from it.
func buildSuites(ctx context.Context) (err error) {
	for _, s := range suites {
		if suiteBuilt(s.name) {
			fmt.Println(s.name, "is built")
			continue
		}
		fmt.Println("building", s.name, "(this takes minutes)")
		if e := s.build(ctx); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", s.name, e))
		}
	}
	return err
}

func (s *suite) build(ctx context.Context) error {
	if err := s.lacks(); err != nil {
		return err
	}
	cache, err := suitesCache()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(cache, "building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	tree, err := s.fetch(ctx, work)
	if err != nil {
		return err
	}
	out := filepath.Join(work, "out")
	for _, line := range s.commands {
		cmd := command(ctx, tree, "sh", "-ec", line)
		cmd.Env = append(os.Environ(), "OUT="+out)
		if _, err := output(cmd); err != nil {
			return err
		}
	}
	return os.Rename(out, filepath.Join(cache, s.name))
}

// lacks is what is not installed to build a suite.
func (s *suite) lacks() error {
	for _, name := range append(append([]string{"apt-get", "tar", "xz"}, s.tools...), headerFiles(s.headers)...) {
		if !installed(name) {
			return fmt.Errorf("it lacks %s: apt-get install %s", name, s.needs)
		}
	}
	return nil
}

// headerFiles are patterns of headers, whose folder may be that of the architecture.
func headerFiles(names []string) (files []string) {
	for _, name := range names {
		pattern := filepath.Join("/usr/include", name)
		if !installed(pattern) {
			pattern = filepath.Join("/usr/include/*-linux-gnu", name)
		}
		files = append(files, pattern)
	}
	return files
}

// fetch fetches and unpacks a source package, and returns the folder of the sources.
func (s *suite) fetch(ctx context.Context, work string) (string, error) {
	config, err := aptConfig(ctx, work)
	if err != nil {
		return "", err
	}
	// The description of a package is not always on all servers, and needed for patches alone.
	for _, args := range [][]string{{"update"}, {"source", "--download-only", "--tar-only", s.source}} {
		cmd := command(ctx, work, "apt-get", append([]string{"-q"}, args...)...)
		cmd.Env = append(os.Environ(), "APT_CONFIG="+config)
		if _, err := output(cmd); err != nil {
			return "", err
		}
	}
	archives, err := filepath.Glob(filepath.Join(work, "*.orig.tar.*[a-z0-9]"))
	if err != nil {
		return "", err
	}
	tree := filepath.Join(work, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return "", err
	}
	for _, archive := range archives {
		if strings.HasSuffix(archive, ".asc") {
			continue
		}
		_, err := output(exec.CommandContext(ctx, "tar", "-xf", archive, "-C", tree, "--strip-components=1"))
		return tree, err
	}
	return "", fs.ErrNotExist
}

// aptConfig writes a configuration of apt-get for the sources of Debian's unstable, from
// where this machine has its packages.
func aptConfig(ctx context.Context, work string) (string, error) {
	sites, err := output(exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Origin: Debian", "Label: Debian"))
	if err != nil {
		return "", err
	}
	site, _, _ := strings.Cut(sites, "\n")
	if site == "" {
		return "", errors.New("apt-get knows no archive of Debian: apt-get update")
	}
	for _, dir := range []string{"lists/partial", "archives/partial", "parts"} {
		if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
			return "", err
		}
	}
	config := filepath.Join(work, "apt.conf")
	if err := os.WriteFile(filepath.Join(work, "sources.list"),
		[]byte("deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "+site+" sid main\n"), 0o644); err != nil {
		return "", err
	}
	return config, os.WriteFile(config, fmt.Appendf(nil, `Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "%[1]s/parts";
Dir::State::lists "%[1]s/lists";
Dir::Cache "%[1]s";
`, work), 0o644)
}
