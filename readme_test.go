// The README is held to what is there: its commands, its program.

package weft_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

func TestTheReadmesFirstProgramIsTheExample(t *testing.T) {
	// The example runs with the tests; as a program it has another head.
	want := strings.NewReplacer("package weft_test", "package main", "func Example()", "func main()").Replace(read(t, "example_test.go"))
	_, got, _ := strings.Cut(read(t, "README.md"), "```go\n")
	got, _, _ = strings.Cut(got, "```\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the first block of Go in README.md is not example_test.go (-want +got):\n%s", diff)
	}
}

func TestTheReadmesTestCommandIsTheOneThatIsChecked(t *testing.T) {
	const command = "go test ./..."
	for _, name := range []string{"README.md", ".ci/run"} {
		if !regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(command) + `\s*(#.*)?$`).MatchString(read(t, name)) {
			t.Errorf("%s does not give the command %q on a line of its own", name, command)
		}
	}
}
