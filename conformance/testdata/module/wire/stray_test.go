package wire

import "testing"

// Claims: B-1
func helper(t *testing.T) { t.Log() }

// Claims: B-2
var table = 1

// Claims: B-3
func TestAlwaysSkips(t *testing.T) {
	t.Skip("not today")
}

// Claims: B-4
func TestEmpty(t *testing.T) {}

// Claims: B-5
func FuzzUnseeded(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {})
}

// Claims: B-6
func ExampleUnchecked() { println() }

// Claims: B-7
// B-8
func TestLosesALine(t *testing.T) { t.Log() }

// Claims:
func TestNamesNothing(t *testing.T) { t.Log() }

func TestInside(t *testing.T) {
	// Claims: B-9
	t.Log()
}

type suite struct{}

// Claims: B-10
func (suite) TestMethod(t *testing.T) { t.Log() }

// Claims: B-11
func Testify(t *testing.T) { t.Log() }

// Claims: B-12
func TestTakesNothing() { println() }

// Claims: B-13
func BenchmarkIt(b *testing.B) { b.Log() }
