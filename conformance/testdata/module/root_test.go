package fixture_test

import "testing"

// Claims: A-7
func TestAtTheRoot(t *testing.T) { t.Log() }
