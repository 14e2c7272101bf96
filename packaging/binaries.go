// This file makes archives with the static command for each platform.

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// everyPlatform are the platforms that .ci/run compiles for, and their siblings.
var everyPlatform = []string{
	"linux/amd64", "linux/arm64", "linux/386", "linux/s390x",
	"darwin/amd64", "darwin/arm64", "windows/amd64",
}

// binaries makes an archive and an SBOM for each platform.
func (b *builder) binaries(ctx context.Context) (made []string, err error) {
	for _, platform := range b.platforms {
		goos, goarch, _ := strings.Cut(platform, "/")
		files, err := b.binary(ctx, goos, goarch)
		if err != nil {
			return nil, err
		}
		made = append(made, files...)
	}
	return made, nil
}

// binary makes those of a platform.
func (b *builder) binary(ctx context.Context, goos, goarch string) ([]string, error) {
	name, command, suffix, write := "weft_"+b.version+"_"+goos+"_"+goarch, "weft", ".tar.gz", writeTarGz
	if goos == "windows" {
		command, suffix, write = "weft.exe", ".zip", writeZip
	}
	built := filepath.Join(b.stage, name, command)
	if err := b.command(ctx, goos, goarch, built); err != nil {
		return nil, err
	}
	members, err := b.members(ctx, goos, goarch, built)
	if err != nil {
		return nil, err
	}
	archive, err := write(members, b.at)
	if err != nil {
		return nil, err
	}
	sbom, err := b.sbom(built, goos, goarch)
	if err != nil {
		return nil, err
	}
	files := []string{filepath.Join(b.out, name+suffix), filepath.Join(b.out, name+".cdx.json")}
	if err := os.WriteFile(files[0], archive, 0o644); err != nil {
		return nil, err
	}
	return files, os.WriteFile(files[1], sbom, 0o644)
}

// members are what is in the archive: the command, what explains it, and its licenses.
func (b *builder) members(ctx context.Context, goos, goarch, built string) (all []member, err error) {
	notices, err := b.notices(ctx, "", goos+"/"+goarch)
	if err != nil {
		return nil, err
	}
	add := func(name, file string, mode int64) {
		data, readErr := os.ReadFile(file)
		if readErr != nil {
			err = readErr
		}
		all = append(all, member{name: name, mode: mode, data: data})
	}
	add(filepath.Base(built), built, 0o755)
	for _, name := range []string{"README.md", "LICENSE"} {
		add(name, filepath.Join(b.root, name), 0o644)
	}
	all = append(all, member{name: "third-party.txt", mode: 0o644, data: []byte(notices)})
	if goos != "windows" {
		for _, page := range b.pages {
			add("man/man1/"+filepath.Base(page), page, 0o644)
		}
		for i, file := range b.completions {
			add("completions/"+completionFiles[i].shell+"/"+filepath.Base(file), file, 0o644)
		}
	}
	return all, err
}
