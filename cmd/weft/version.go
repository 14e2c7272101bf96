// This file returns the version.

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// What the linker says of a command that is part of a release (packaging/build.go): its
// version, the hash of its commit, and the commit's time as RFC 3339 has it.
var packaged, packagedCommit, packagedTime string

// version returns the version of the package or of the module, as far as the build knows
// it.
func version() string {
	if packaged != "" {
		return packaged
	}
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "(devel)"
}

// fullVersion returns the text of --version: the version, the commit and its time,
// Go and the platform.
func fullVersion() string {
	parts := []string{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if commit := commitOf(settings()); commit != "" {
		parts = append([]string{commit}, parts...)
	}
	return fmt.Sprintf("%s (%s)", version(), strings.Join(parts, ", "))
}

// settings are what is known of the build: from the linker or else from the go command.
func settings() []debug.BuildSetting {
	if packagedCommit != "" {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: packagedCommit}, {Key: "vcs.time", Value: packagedTime}}
	}
	if b, ok := debug.ReadBuildInfo(); ok {
		return b.Settings
	}
	return nil
}

// commitOf returns the commit, if the build has recorded it.
func commitOf(settings []debug.BuildSetting) string {
	vcs := make(map[string]string)
	for _, s := range settings {
		vcs[s.Key] = s.Value
	}
	commit := vcs["vcs.revision"]
	if commit == "" {
		return ""
	}
	text := "commit " + commit[:min(len(commit), 12)]
	if when := vcs["vcs.time"]; when != "" {
		text += " of " + when
	}
	if vcs["vcs.modified"] == "true" {
		text += ", modified"
	}
	return text
}
