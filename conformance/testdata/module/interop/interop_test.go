package interop

import "testing"

// Claims: A-8
func TestPeer(t *testing.T) { t.Log() }
