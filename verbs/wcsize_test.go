package verbs

import (
	"testing"
	"unsafe"
)

// Every completion is copied into its queue and out again.
func TestACompletionIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(WC{}); n > 64 {
		t.Errorf("a WC has %d octets, at most 64 are expected", n)
	}
}
