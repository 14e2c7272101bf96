package wire

import "testing"

// Claims: B-20
func TestElsewhere(t *testing.T) { t.Log() }
