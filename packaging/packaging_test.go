package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestAManualHasTheTextAsItIs(t *testing.T) {
	var page strings.Builder
	section(&page, "weft run", "  --flag \\ x\n.dot\n'quote")
	const want = ".SH \"weft run\"\n.nf\n  \\-\\-flag \\e x\n\\&.dot\n\\&'quote\n.fi\n"
	if page.String() != want {
		t.Errorf("%q, expected %q", page.String(), want)
	}
}

func TestSubcommandsAreThoseThatTheHelpLists(t *testing.T) {
	const help = "Text.\n\n  indented text\n\nServe:\n  none  a heading that is none\n\nFile commands:\n  ls          list\n  cp          copy\n\n" +
		"Additional Commands:\n  completion  shells\n  help        help\n  run         run\n\nFlags:\n  -h, --help   help\n"
	if got := subcommands(help); !slices.Equal(got, []string{"ls", "cp", "run"}) {
		t.Error(got)
	}
}

func TestTheOldestGlibcIsByNumber(t *testing.T) {
	if slices.Compare(numbers("2.4"), numbers("2.34")) >= 0 || slices.Compare(numbers("2.2.5"), numbers("2.34")) >= 0 {
		t.Error("2.4 and 2.2.5 are older than 2.34")
	}
	if _, err := libcOf("packaging_test.go"); err == nil {
		t.Error("a text has no symbols")
	}
	if libc, err := libcOf("/bin/sh"); err == nil && !strings.HasPrefix(libc, "2.") {
		t.Errorf("/bin/sh needs glibc %q", libc)
	}
}

func TestATargetHasItsTools(t *testing.T) {
	for arch, known := range map[string]bool{"amd64": true, "arm64": true, "s390x": false, "": false} {
		if got, err := targetOf(arch); (err == nil) != known || known && got.prefix != "" && !strings.HasSuffix(got.prefix, "-linux-gnu-") {
			t.Errorf("%q: %+v, %v", arch, got, err)
		}
	}
}

func TestCompressedFilesAreTheSameEachTime(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a", []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("b", []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	var packed [2][]byte
	for i, name := range []string{"a", "b"} {
		if err := compress(name, name+".gz"); err != nil {
			t.Fatal(err)
		}
		packed[i], _ = os.ReadFile(name + ".gz")
	}
	if len(packed[0]) == 0 || !slices.Equal(packed[0], packed[1]) {
		t.Errorf("%x and %x", packed[0], packed[1])
	}
}
