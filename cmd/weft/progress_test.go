package main

import "testing"

func TestTitlesOfABarHaveAWidth(t *testing.T) {
	for path, want := range map[string]string{
		"short":             "short     ",
		"just right":        "just right",
		"a/longer/path":     "...er/path",
		"caf\u00e9/\u00e9t": "caf\u00e9/\u00e9t   ",
		"a\nb":              "a?b       ",
		"\x1b[2Jabcdefgh":   "...bcdefgh",
		"\x1b[2J\u202e\xff": "?[2J?\ufffd    ",
	} {
		if got := shorten(path, 10); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
