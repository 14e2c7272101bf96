package main

import "testing"

func TestMessagesGiveNoOrdersToATerminal(t *testing.T) {
	for message, want := range map[string]string{
		"LOOKUP /caf\u00e9: no such file":     "LOOKUP /caf\u00e9: no such file",
		`"quoted" \ as it is`:                 `"quoted" \ as it is`,
		"READ /\x1b[2J\"a\": I/O error\nthen": `READ /\x1b[2J"a": I/O error` + "\nthen",
		"/caf\xe9 -> \u009b2J\u202e":          `/caf\xe9 -> \u009b2J\u202e`,
		"":                                    "",
	} {
		if got := plain(message); got != want {
			t.Errorf("%q is shown as %q, want %q", message, got, want)
		}
	}
}
