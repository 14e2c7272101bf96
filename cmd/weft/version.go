// This file returns the version.

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// packaged is the version of the package that the command is part of, set by the
// linker (packaging/build.go).
var packaged string

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

// fullVersion returns the text of --version: the version of the module, the commit, Go
// and the platform.
func fullVersion() string {
	parts := []string{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if b, ok := debug.ReadBuildInfo(); ok {
		if commit := commitOf(b.Settings); commit != "" {
			parts = append([]string{commit}, parts...)
		}
	}
	return fmt.Sprintf("%s (%s)", version(), strings.Join(parts, ", "))
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
