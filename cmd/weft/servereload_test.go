package main

import (
	"slices"
	"testing"
)

func TestAReloadTellsWhatHasChanged(t *testing.T) {
	a, b := exportEntry{Path: "/a"}, exportEntry{Path: "/b", Name: "/data"}
	renamed, restricted := b, a
	renamed.Name, restricted.ReadOnly = "/other", true
	for _, c := range []struct {
		before, after []exportEntry
		want          []string
	}{
		{[]exportEntry{a, b}, []exportEntry{a, b}, []string{"nothing has changed"}},
		{[]exportEntry{a, b}, []exportEntry{a, renamed}, []string{"no longer serving /b as /data", "serving /b as /other"}},
		{[]exportEntry{a}, []exportEntry{restricted}, []string{"serving /a by other rules"}},
	} {
		if got := changes(&serveFile{Exports: c.before}, &serveFile{Exports: c.after}); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
