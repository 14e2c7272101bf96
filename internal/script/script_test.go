package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const example = `# About the file.

# A step.
say one
say two three
----
one
two three

say
----
`

func TestAScriptIsItsStepsAndWhatComesOfThem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "example.txt")
	if err := os.WriteFile(file, []byte(example), 0o666); err != nil {
		t.Fatal(err)
	}
	var did []string
	Run(t, file, func(command string, args []string) string {
		did = append(did, command+" "+strings.Join(args, "+"))
		return strings.Join(args, " ")
	})
	if got := strings.Join(did, ", "); got != "say one, say two+three, say " {
		t.Errorf("the commands are %q", got)
	}
}

func TestAScriptIsWrittenAsItWasRead(t *testing.T) {
	steps, err := parse(example)
	if err != nil || format(steps) != example {
		t.Errorf("%v:\n%s", err, format(steps))
	}
}

func TestAStepThatExpectsNothingAtAllIsAMistake(t *testing.T) {
	if _, err := parse("say one\n\nsay two\n----\n"); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("%v, expected an error that names line 1", err)
	}
}
