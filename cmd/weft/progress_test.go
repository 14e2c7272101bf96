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

func TestABarFitsItsTerminal(t *testing.T) {
	for terminal, want := range map[int]int{0: 0, 60: 0, 68: 0, 69: 8, 80: 19, 89: 28, 200: 28} {
		got := titleWidth(terminal, len("2636/3001 "))
		if got != want {
			t.Errorf("%d columns: a title of %d, want %d", terminal, got, want)
		}
		if title := shorten("a/path/that/is/longer/than/a/title", got); len(title) != got {
			t.Errorf("%q has %d columns, want %d", title, len(title), got)
		}
	}
}
