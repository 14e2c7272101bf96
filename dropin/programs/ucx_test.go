package main

import "testing"

func TestTheProgramOfACommandIsBehindItsVariables(t *testing.T) {
	for command, want := range map[string]string{"a -b c=d": "a", "env A=1 B=2 a c=d": "a", "": ""} {
		if got := program(command); got != want {
			t.Errorf("%q: %q, expected %q", command, got, want)
		}
	}
}
