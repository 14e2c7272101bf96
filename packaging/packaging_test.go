package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
)

const exampleHelp = `Text that is filled,
in two lines.

List:
  indented  as it is
.dot and 'quote' and \ and ~

Usage:
  weft cert [NAME...] [flags]
  weft cert [command]

Examples:
  weft cert    for this host

File commands:
  ls          list
  cp          copy

Additional Commands:
  completion  shells
  help        help

Flags:
  -o, --out DIR   put the files into DIR
                  and more
      --force     replace

Use "weft cert [command] --help" for more information about a command.
`

func TestAManualPageHasEveryPartOfTheHelp(t *testing.T) {
	id := identity{version: "1.2.3", at: time.Unix(0, 0).UTC()}
	got := parseHelp(exampleHelp).page([]string{"weft", "cert"}, "make certificates", id)
	want := `.TH WEFT-CERT 1 1970-01-01 "weft 1.2.3" Weft
.SH NAME
weft\-cert \- make certificates
.SH SYNOPSIS
.nf
weft cert [NAME...] [flags]
weft cert [command]
.fi
.SH DESCRIPTION
Text that is filled,
in two lines.
.PP
.nf
List:
  indented  as it is
\&.dot and \(aqquote\(aq and \e and \(ti
.fi
.SH COMMANDS
Each has a page of its own.
.TP
.BR weft\-cert\-ls (1)
list
.TP
.BR weft\-cert\-cp (1)
copy
.SH OPTIONS
.TP
.B \-o, \-\-out DIR
put the files into DIR and more
.TP
.B \-\-force
replace
.SH EXAMPLES
.nf
weft cert    for this host
.fi
.SH SEE ALSO
.BR weft (1),
the documentation in /usr/share/doc/weft
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAVersionIsItsTagAndTheLibrarysModuleHasOneToo(t *testing.T) {
	for _, c := range []struct {
		tags          []string
		version, deb  string
		complainsHere bool
	}{
		{tags: nil, version: "0.0.0-20260102030405.abc", deb: "0.0.0~20260102030405.abc"},
		{tags: []string{"v1.2.3", "dropin/v1.2.3"}, version: "1.2.3", deb: "1.2.3"},
		{tags: []string{"dropin/v1.2.3-rc.1", "other", "v1.2.3-rc.1"}, version: "1.2.3-rc.1", deb: "1.2.3~rc.1"},
		{tags: []string{"verified", "v"}, version: "0.0.0-20260102030405.abc", deb: "0.0.0~20260102030405.abc"},
		{tags: []string{"v1.2.3"}, complainsHere: true},
		{tags: []string{"v1.2.3", "dropin/v1.2.4"}, complainsHere: true},
	} {
		got, err := versionOf(c.tags, "20260102030405.abc")
		if deb := (identity{version: got}).packageVersion(); got != c.version || deb != c.deb || (err != nil) != c.complainsHere {
			t.Errorf("%q: %s, %s, %v", c.tags, got, deb, err)
		}
	}
}

func TestProductsAreMadeByName(t *testing.T) {
	for asked, want := range map[string]string{"": "deb rpm", "image deb": "deb image", "binaries": "binaries", "deb cake": ""} {
		chosen, err := choose(strings.Fields(asked))
		var got []string
		for _, p := range chosen {
			got = append(got, p.name)
		}
		if strings.Join(got, " ") != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", asked, got, err)
		}
	}
}

func TestArchivesAreTheSameEachTime(t *testing.T) {
	at := time.Unix(1_000_000_000, 0)
	members := []member{{name: "dir/", mode: 0o755}, {name: "dir/a", mode: 0o644, data: []byte("text")}, {name: "b", mode: 0o755, id: nobody}}
	for name, write := range map[string]func([]member, time.Time) ([]byte, error){"tar": writeTar, "tar.gz": writeTarGz, "zip": writeZip} {
		first, err := write(members, at)
		if err != nil {
			t.Fatal(err)
		}
		second, err := write(members, at.In(time.FixedZone("", 3600)))
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s: %x and %x, %v", name, first, second, err)
		}
	}
}

func TestChecksumsOfFilesThatAreGoneGo(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(path(name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeSums(dir, []string{path("c"), path("a"), path("b")}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path("a")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path("c"), []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeSums(dir, []string{path("c")}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path("SHA256SUMS"))
	const want = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d  b\n" +
		"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  c\n"
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

func TestABillOfMaterialsListsTheModulesOfAFile(t *testing.T) {
	b := builder{identity: identity{version: "1.2.3", at: time.Unix(0, 0).UTC()}}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var texts [2][]byte
	for i := range texts {
		if texts[i], err = b.sbom(self, "linux", "amd64"); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("two that differ")
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(texts[0]), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	has := make(map[string]bool)
	for _, c := range *bom.Components {
		has[c.Name] = c.Version != "" && strings.HasPrefix(c.PackageURL, "pkg:golang/"+c.Name+"@")
	}
	if !has["std"] || !has["github.com/goreleaser/nfpm/v2"] || !strings.Contains(bom.Metadata.Component.PackageURL, "@v1.2.3?") {
		t.Errorf("%s", texts[0])
	}
}

func TestNothingIsShippedWithoutItsLicense(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("license.go", "package x")
	write("README.md", "about")
	if _, err := licensesIn(dir); err == nil {
		t.Error("a module without a license is shipped")
	}
	write("README.md", "about\n\n# License\n\nMIT")
	if got, err := licensesIn(dir); err != nil || got != "about\n\n# License\n\nMIT\n" {
		t.Errorf("%q, %v", got, err)
	}
	write("LICENSE", "one")
	write("COPYING.md", "two")
	if got, err := licensesIn(dir); err != nil || got != "two\n\none\n" {
		t.Errorf("%q, %v", got, err)
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
