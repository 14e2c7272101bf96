package deep

import "testing"

// Claims: A-7
func TestDeep(t *testing.T) { t.Log() }
