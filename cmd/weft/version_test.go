package main

import (
	"runtime/debug"
	"testing"
)

func TestTheCommitIsWhatTheBuildKnows(t *testing.T) {
	for want, settings := range map[string][]debug.BuildSetting{
		"": {{Key: "GOOS", Value: "linux"}},
		"commit 0123456789ab of 2026-01-02T03:04:05Z, modified": {
			{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"},
			{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
		},
		"commit 0123": {{Key: "vcs.revision", Value: "0123"}, {Key: "vcs.modified", Value: "false"}},
	} {
		if got := commitOf(settings); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
