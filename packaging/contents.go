// This file says which files are in the packages.

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2/files"
)

// A list is the contents of the packages.
type list struct {
	files.Contents
	b *builder
}

func (l *list) add(source, destination string, mode os.FileMode) *files.Content {
	c := &files.Content{
		Source: source, Destination: destination,
		FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: l.b.at},
	}
	l.Contents = append(l.Contents, c)
	return c
}

// addText adds a text that is written here, for the packages of one kind, or all if kind is empty.
func (l *list) addText(kind, text, destination string) error {
	source := filepath.Join(l.b.stage, "texts", kind, destination)
	if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		return err
	}
	if filepath.Ext(destination) == ".gz" {
		if err := compress(source, source); err != nil {
			return err
		}
	}
	l.add(source, destination, 0o644).Packager = kind
	return nil
}

// addPacked adds a file compressed.
func (l *list) addPacked(source, destination string) error {
	packed := l.b.file(filepath.Base(destination))
	l.add(packed, destination, 0o644)
	return compress(source, packed)
}

// contents are the files of the packages. The library is where `weft run` looks for it:
// in lib/weft beside the directory of the command.
func (b *builder) contents(ctx context.Context) (files.Contents, error) {
	l := list{b: b}
	l.add(b.file("weft"), "/usr/bin/weft", 0o755)
	for _, path := range b.libraries() {
		l.add(path, "/usr/lib/weft/"+filepath.Base(path), 0o644)
	}
	for _, page := range b.pages {
		if err := l.addPacked(page, "/usr/share/man/man1/"+filepath.Base(page)+".gz"); err != nil {
			return nil, err
		}
	}
	l.addDirectories()
	l.addCompletions()
	if err := l.addUnits(); err != nil {
		return nil, err
	}
	if err := l.addDocumentation(); err != nil {
		return nil, err
	}
	return l.Contents, l.addLegal(ctx)
}

// addDirectories adds the directories that are only for this package: RPM removes those that it
// is told of, dpkg those that are empty.
func (l *list) addDirectories() {
	for _, dir := range []string{"/etc/weft", "/usr/lib/weft", "/usr/share/doc/weft", "/usr/share/doc/weft/docs", "/usr/share/licenses/weft"} {
		c := l.add("", dir, 0o755)
		c.Type, c.Packager = files.TypeDir, "rpm"
	}
}

func (l *list) addCompletions() {
	dirs := map[string][]struct{ kind, dir string }{
		"weft":      {{"", "/usr/share/bash-completion/completions/"}},
		"_weft":     {{"deb", "/usr/share/zsh/vendor-completions/"}, {"rpm", "/usr/share/zsh/site-functions/"}},
		"weft.fish": {{"", "/usr/share/fish/vendor_completions.d/"}},
	}
	for _, file := range l.b.completions {
		for _, place := range dirs[filepath.Base(file)] {
			l.add(file, place.dir+filepath.Base(file), 0o644).Packager = place.kind
		}
	}
}

// addUnits adds systemd's units, and the configuration that they read, which stays as its owner
// changes it.
func (l *list) addUnits() error {
	for pattern, dir := range map[string]string{
		"systemd/*.service": "/usr/lib/systemd/system/", "systemd/*.socket": "/usr/lib/systemd/system/", "etc/*": "/etc/weft/",
	} {
		found, err := filepath.Glob(filepath.Join(l.b.root, "packaging", pattern))
		if err != nil {
			return err
		}
		for _, file := range found {
			c := l.add(file, dir+filepath.Base(file), 0o644)
			if dir == "/etc/weft/" {
				c.Type = files.TypeConfigNoReplace
			}
		}
	}
	return nil
}

func (l *list) addDocumentation() error {
	docs, err := filepath.Glob(filepath.Join(l.b.root, "docs", "*.md"))
	if err != nil || len(docs) == 0 {
		return fmt.Errorf("there is no documentation in %s", l.b.root)
	}
	for _, path := range append(docs, filepath.Join(l.b.root, "docs", "grafana.json")) {
		if filepath.Base(path) != "conformance.md" { // about the sources
			l.add(path, "/usr/share/doc/weft/docs/"+filepath.Base(path), 0o644)
		}
	}
	l.add(filepath.Join(l.b.root, "README.md"), "/usr/share/doc/weft/README.md", 0o644)
	return l.addPacked(filepath.Join(l.b.root, "CHANGELOG.md"), "/usr/share/doc/weft/CHANGELOG.md.gz")
}

// addLegal adds the licenses, and for Debian what its policy wants.
func (l *list) addLegal(ctx context.Context) error {
	notices, err := l.b.notices(ctx, l.b.target.arch, "linux/"+l.b.target.arch)
	if err != nil {
		return err
	}
	l.add(filepath.Join(l.b.root, "LICENSE"), "/usr/share/licenses/weft/LICENSE", 0o644).Packager = "rpm"
	for _, text := range []struct{ kind, text, destination string }{
		{"", notices, "/usr/share/doc/weft/third-party.txt.gz"},
		{"deb", copyright, "/usr/share/doc/weft/copyright"},
		{"deb", l.b.debianChangelog(), "/usr/share/doc/weft/changelog.gz"},
		{"deb", lintianOverrides, "/usr/share/lintian/overrides/weft"},
	} {
		if err := l.addText(text.kind, text.text, text.destination); err != nil {
			return err
		}
	}
	return nil
}

const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Weft
Source: ` + homepage + `

Files: *
Copyright: 2026 The Weft authors
License: Apache-2.0
Comment: The licenses of the modules that are linked into the command and the library are in
 /usr/share/doc/weft/third-party.txt.gz.

License: Apache-2.0
 On Debian systems the text of this license is in /usr/share/common-licenses/Apache-2.0.
`

// The command is one file for every system, as Go links programs that have no C in them.
const lintianOverrides = "weft: statically-linked-binary [usr/bin/weft]\n"

func (b *builder) debianChangelog() string {
	return fmt.Sprintf("weft (%s) unstable; urgency=medium\n\n  * Commit %s. See CHANGELOG.md.gz.\n\n -- %s  %s\n",
		b.packageVersion(), b.commit, maintainer, b.at.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
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
