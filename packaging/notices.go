// This file collects the licenses of what is linked into the command and the library.

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Names of the files whose text a license wants to be passed on, and of those that may name it.
var (
	licenseName  = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents|authors|copyright)(\.(md|txt|rst)|-[A-Za-z0-9.]+)?$`)
	readmeName   = regexp.MustCompile(`(?i)^readme(\.(md|txt|rst))?$`)
	licenseTitle = regexp.MustCompile(`(?im)^#+ *licen[sc]e`)
	anything     = regexp.MustCompile(``)
)

// notices returns the licenses of Go and of the modules that the command has in it on the
// platforms, and with the library those of the library for a processor.
func (b *builder) notices(ctx context.Context, libraryFor string, platforms ...string) (string, error) {
	goroot, err := execute(ctx, b.root, nil, "go", "env", "GOROOT")
	if err != nil {
		return "", err
	}
	dirs := map[string]string{"Go": goroot}
	for _, platform := range platforms {
		goos, goarch, _ := strings.Cut(platform, "/")
		if err := b.modules(ctx, dirs, ".", "./cmd/weft", "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch); err != nil {
			return "", err
		}
	}
	if libraryFor != "" {
		if err := b.modules(ctx, dirs, "dropin", "./engine", "CGO_ENABLED=1", "GOARCH="+libraryFor); err != nil {
			return "", err
		}
	}
	var text strings.Builder
	text.WriteString("Weft has in it the following works of others, under these licenses.\n")
	for _, module := range slices.Sorted(maps.Keys(dirs)) {
		licenses, err := licensesIn(dirs[module])
		if err != nil {
			return "", fmt.Errorf("%s: %w", module, err)
		}
		fmt.Fprintf(&text, "\n==== %s\n\n%s", module, licenses)
	}
	return text.String(), nil
}

// modules adds the modules that a package of the repository is made of, with their directories.
func (b *builder) modules(ctx context.Context, dirs map[string]string, module, pkg string, env ...string) error {
	const format = "-f={{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}"
	listed, err := execute(ctx, filepath.Join(b.root, module), env, "go", "list", "-deps", format, pkg)
	if err != nil {
		return err
	}
	for line := range strings.Lines(listed) {
		if module, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && dir != b.root {
			dirs[strings.TrimSpace(module)] = dir
		}
	}
	return nil
}

// thirdParty writes the licenses of all platforms.
func (b *builder) thirdParty(ctx context.Context) ([]string, error) {
	text, err := b.notices(ctx, b.target.arch, everyPlatform...)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.out, "third-party.txt")
	return []string{file}, os.WriteFile(file, []byte(text), 0o644)
}

// licensesIn returns the texts of the licenses in a directory. A module without a file for
// its license names it in its README.
func licensesIn(dir string) (string, error) {
	texts, err := textsOf(dir, licenseName, anything)
	if len(texts) == 0 && err == nil {
		texts, err = textsOf(dir, readmeName, licenseTitle)
	}
	if len(texts) == 0 && err == nil {
		err = fmt.Errorf("there is no license in %s", dir)
	}
	return strings.Join(texts, "\n"), err
}

// textsOf returns the texts in a directory that have such a name and hold such a line.
func textsOf(dir string, name, line *regexp.Regexp) (texts []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !name.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if line.Match(text) {
			texts = append(texts, strings.TrimSpace(string(text))+"\n")
		}
	}
	return texts, nil
}
