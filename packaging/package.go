// This file puts the package together.

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the format
	"github.com/goreleaser/nfpm/v2/files"
)

// This file puts what was built into a package.

const description = `software RDMA: iWARP, and RDMA programs without RDMA hardware
 The weft command serves and copies files over RDMA, measures connections, and
 runs programs that use libibverbs and librdmacm on machines that have no RDMA
 device. It needs neither kernel modules nor root.`

// pack writes the package into a directory and returns its path.
func (b *builder) pack(out string) (string, error) {
	contents, err := b.contents()
	if err != nil {
		return "", err
	}
	libc, err := libcOf(b.libraries()...)
	if err != nil {
		return "", err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "weft", Arch: b.target.arch, Platform: "linux", Version: b.version, VersionSchema: "none",
		Section: "net", Priority: "optional", License: "Apache-2.0", Description: description,
		Maintainer: "The Weft authors <https://github.com/weft-rdma/weft>", Homepage: "https://github.com/weft-rdma/weft", MTime: b.at,
		Overridables: nfpm.Overridables{
			Contents: contents, Umask: 0o022, Depends: []string{"libc6 (>= " + libc + ")"},
			Recommends: []string{"librdmacm1"}, Suggests: []string{"ibverbs-utils", "rdmacm-utils", "perftest"},
		},
	})
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return "", err
	}
	packager, err := nfpm.Get("deb")
	if err != nil {
		return "", err
	}
	var pkg bytes.Buffer
	if err := packager.Package(info, &pkg); err != nil {
		return "", err
	}
	path := filepath.Join(out, packager.ConventionalFileName(info))
	return path, os.WriteFile(path, pkg.Bytes(), 0o644)
}

// identify finds out the time of the commit and Debian's version of it: by the tag that it
// has, or one that sorts before all tags.
func (b *builder) identify(ctx context.Context) error {
	shown, err := b.execute(ctx, nil, "git", "show", "-s", "--format=%ct %h")
	if err != nil {
		return err
	}
	seconds, commit, _ := strings.Cut(shown, " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	b.at = time.Unix(unix, 0).UTC()
	tag, err := b.execute(ctx, nil, "git", "describe", "--tags", "--exact-match", "--match", "v[0-9]*")
	if err != nil { // it has none
		b.version = "0~" + b.at.Format("20060102150405") + "." + commit
		return nil
	}
	b.version = strings.ReplaceAll(strings.TrimPrefix(tag, "v"), "-", "~")
	return nil
}

func (b *builder) libraries() (paths []string) {
	for _, name := range libraries {
		paths = append(paths, b.file(name))
	}
	return paths
}

// contents are the files of the package. The library is where `weft run` looks for it:
// in lib/weft beside the directory of the command.
func (b *builder) contents() (files.Contents, error) {
	var all files.Contents
	add := func(source, destination string, mode os.FileMode) {
		all = append(all, &files.Content{
			Source: source, Destination: destination,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: b.at},
		})
	}
	add(b.file("weft"), "/usr/bin/weft", 0o755)
	for _, path := range b.libraries() {
		add(path, "/usr/lib/weft/"+filepath.Base(path), 0o644)
	}
	docs, err := filepath.Glob(filepath.Join(b.root, "docs", "*.md"))
	if err != nil || len(docs) == 0 {
		return nil, fmt.Errorf("there is no documentation in %s", b.root)
	}
	for _, path := range docs {
		if filepath.Base(path) != "conformance.md" { // about the sources
			add(path, "/usr/share/doc/weft/docs/"+filepath.Base(path), 0o644)
		}
	}
	add(filepath.Join(b.root, "README.md"), "/usr/share/doc/weft/README.md", 0o644)
	add(filepath.Join(b.root, "LICENSE"), "/usr/share/doc/weft/copyright", 0o644)
	for source, destination := range map[string]string{
		b.file("weft.1"): "/usr/share/man/man1/weft.1.gz", filepath.Join(b.root, "CHANGELOG.md"): "/usr/share/doc/weft/changelog.gz",
	} {
		packed := b.file(filepath.Base(destination))
		if err := compress(source, packed); err != nil {
			return nil, err
		}
		add(packed, destination, 0o644)
	}
	return all, nil
}

// compress compresses a file, without its name and time.
func compress(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, packed.Bytes(), 0o644)
}

// libcOf is the oldest glibc that has what the files ask of it.
func libcOf(paths ...string) (string, error) {
	var newest []int
	for _, path := range paths {
		f, err := elf.Open(path)
		if err != nil {
			return "", err
		}
		symbols, err := f.ImportedSymbols()
		_ = f.Close() // read only
		if err != nil {
			return "", err
		}
		for _, s := range symbols {
			if v, ok := strings.CutPrefix(s.Version, "GLIBC_"); ok && slices.Compare(numbers(v), newest) > 0 {
				newest = numbers(v)
			}
		}
	}
	if newest == nil {
		return "", fmt.Errorf("%s: nothing of glibc is used", strings.Join(paths, ", "))
	}
	var text []string
	for _, n := range newest {
		text = append(text, strconv.Itoa(n))
	}
	return strings.Join(text, "."), nil
}

// numbers are those of a version; what is no number counts as 0.
func numbers(version string) (all []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part)
		all = append(all, n)
	}
	return all
}
