package main

import (
	"strings"
	"testing"
)

// The peers in C are for Linux.

func TestAMissingCompilerIsNamedWithTheRemedy(t *testing.T) {
	t.Setenv("CC", "no-such-compiler")
	p, err := findPeers(t.Context(), func(p Peer) bool { return p == TCPC || p == Fabric }, "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if !p.missing(TCPC) || !p.missing(Fabric) || p.missing(Weft) {
		t.Errorf("missing = %+v", p.Missing)
	}
	for _, m := range p.Missing {
		if !strings.Contains(m.Why, "no-such-compiler") || !strings.HasPrefix(m.Remedy, "apt-get install") {
			t.Errorf("missing = %+v", m)
		}
	}
}
