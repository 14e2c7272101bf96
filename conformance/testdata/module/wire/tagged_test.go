//go:build never

package wire

import "testing"

// Claims: B-21
func TestNeverBuilt(t *testing.T) { t.Log() }
