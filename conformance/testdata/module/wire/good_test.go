package wire

import "testing"

// TestOne holds something.
//
// Claims: A-1 A-2
// Claims: A-3,A-4
func TestOne(t *testing.T) { t.Log() }

// Claims: A-1
func TestTwo(t *testing.T) { t.Log() }

// Claims: A-5
func FuzzSeeded(f *testing.F) {
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {})
}

// Claims: A-5
func FuzzSeededByHelper(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {})
}

// Claims: A-5
func FuzzFromFiles(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {})
}

func seeds(f *testing.F) { f.Add([]byte{2}) }

// A conditional skip is a matter of the machine.
//
// Claims: A-6
func TestSkipsSomewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
}

// Claims: A-6
func Example() {
	println()
	// Output:
}
