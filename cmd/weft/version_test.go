package main

import (
	"runtime/debug"
	"strings"
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

func TestAReleaseSaysItsVersionCommitAndTime(t *testing.T) {
	saved := [3]string{packaged, packagedCommit, packagedTime}
	t.Cleanup(func() { packaged, packagedCommit, packagedTime = saved[0], saved[1], saved[2] })
	packaged, packagedCommit, packagedTime = "1.2.3", "0123456789abcdef0123456789abcdef01234567", "2026-01-02T03:04:05Z"
	const want = "1.2.3 (commit 0123456789ab of 2026-01-02T03:04:05Z, go"
	if got := fullVersion(); !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q...", got, want)
	}
}
