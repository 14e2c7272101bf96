// This file finds out which version is built.

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// An identity says what the products are made of.
type identity struct {
	version string    // such as 1.2.3 or 1.2.3-rc.1
	commit  string    // its hash
	at      time.Time // of the commit
}

// identify returns the identity of the commit that is checked out in root. Its version is
// the tag that it has, or one that sorts before all tags.
func identify(ctx context.Context, root string) (id identity, err error) {
	shown, err := execute(ctx, root, nil, "git", "show", "-s", "--format=%ct %H")
	if err != nil {
		return id, err
	}
	seconds, commit, _ := strings.Cut(shown, " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return id, err
	}
	changes, err := execute(ctx, root, nil, "git", "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return id, err
	}
	tags, err := execute(ctx, root, nil, "git", "tag", "--points-at", "HEAD")
	if err != nil {
		return id, err
	}
	id = identity{commit: commit, at: time.Unix(unix, 0).UTC()}
	id.version, err = versionOf(strings.Fields(tags), id.at.Format("20060102150405")+"."+commit[:min(len(commit), 12)])
	if changes != "" {
		id.version += "+modified"
	}
	return id, err
}

// versionOf returns the version of a commit that has these tags. The go command finds the
// library's module, dropin, by a tag of its own.
func versionOf(tags []string, otherwise string) (string, error) {
	has := make(map[string]bool)
	for _, tag := range tags {
		has[tag] = true
	}
	for _, tag := range tags {
		version, ok := strings.CutPrefix(tag, "v")
		switch {
		case !ok || version == "" || version[0] < '0' || version[0] > '9':
		case !has["dropin/"+tag]:
			return "", fmt.Errorf("the commit has the tag %s, but not dropin/%s, which `weft run` needs after go install: git tag dropin/%s", tag, tag, tag)
		default:
			return version, nil
		}
	}
	return "0.0.0-" + otherwise, nil
}

// packageVersion is the version as packages have it: what is before a release sorts before it.
func (id identity) packageVersion() string { return strings.ReplaceAll(id.version, "-", "~") }
