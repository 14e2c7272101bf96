package nettest

import (
	"io"
	"testing"
)

func TestLoopbackPairsTalk(t *testing.T) {
	CheckLeaks(t)
	for _, network := range Networks() {
		a, b := TCPPair(t, network)
		if _, err := io.WriteString(a, "hello"); err != nil {
			t.Fatal(err)
		}
		if err := a.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(b); string(got) != "hello" || err != nil {
			t.Errorf("%s: %q, %v", network, got, err)
		}
	}
}
