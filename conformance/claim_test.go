package conformance

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const fixture = "testdata/module"

func TestClaimsAreReadFromEveryFormThatGoTestRuns(t *testing.T) {
	claims, _, err := Claims(fixture)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range claims {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", c.ID, c.Test, c.Module)))
	}
	slices.Sort(got)
	want := []string{
		"A-1 wire.TestOne",
		"A-1 wire.TestTwo",
		"A-2 wire.TestOne",
		"A-3 wire.TestOne",
		"A-4 wire.TestOne",
		"A-5 wire.FuzzFromFiles",
		"A-5 wire.FuzzSeeded",
		"A-5 wire.FuzzSeededByHelper",
		"A-6 wire.Example",
		"A-6 wire.TestSkipsSomewhere",
		"A-7 fixture.TestAtTheRoot",
		"A-7 sub/deep.TestDeep",
		"A-8 interop.TestPeer interop",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func TestAClaimWhereGoTestRunsNothingIsAProblem(t *testing.T) {
	_, problems, err := Claims(fixture)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	want := []string{
		"wire/other_windows_test.go:5: the claim is in a file that is not built for tests on linux/amd64",
		"wire/stray_test.go:5: helper is not a test: the claim belongs on a Test, Fuzz or Example function",
		"wire/stray_test.go:8: the claim is not in the doc comment of a test",
		"wire/stray_test.go:11: TestAlwaysSkips always skips",
		"wire/stray_test.go:16: TestEmpty has no body",
		"wire/stray_test.go:19: FuzzUnseeded has no seeds: go test runs a fuzz target on its seeds only",
		"wire/stray_test.go:24: ExampleUnchecked has no // Output: comment: go test compiles such an example and does not run it",
		`wire/stray_test.go:27: "B-8" follows the claims: every line of claims begins with "Claims:", and they are the last lines`,
		"wire/stray_test.go:31: the claim names no requirement",
		"wire/stray_test.go:35: the claim is not in the doc comment of a test",
		"wire/stray_test.go:41: the claim is on a method: go test runs functions only",
		"wire/stray_test.go:44: Testify is not a test: the claim belongs on a Test, Fuzz or Example function",
		"wire/stray_test.go:47: TestTakesNothing does not take a *testing.T",
		"wire/stray_test.go:50: BenchmarkIt is not a test: the claim belongs on a Test, Fuzz or Example function",
		"wire/tagged_test.go:7: the claim is in a file that is not built for tests on linux/amd64",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestRootIsTheNearestFolderUpwardsWithAModule(t *testing.T) {
	for _, tt := range []struct{ dir, want string }{
		{fixture, fixture},
		{fixture + "/sub/deep", fixture},
		{fixture + "/interop", fixture + "/interop"},
		{".", ".."},
	} {
		got, err := Root(tt.dir)
		if err != nil {
			t.Fatal(err)
		}
		if want, _ := filepath.Abs(tt.want); got != want {
			t.Errorf("Root(%s) = %s, want %s", tt.dir, got, want)
		}
	}
}

func TestRootSaysWhenThereIsNoModule(t *testing.T) {
	dir := t.TempDir()
	if root, err := Root(dir); err == nil {
		t.Errorf("Root(%s) = %s, want an error", dir, root)
	}
}

func TestClaimsNameTheirFiles(t *testing.T) {
	claims, _, err := Claims(fixture)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, c := range claims {
		got[c.Test] = c.File
	}
	for test, want := range map[string]string{
		"fixture.TestAtTheRoot": "root_test.go", "sub/deep.TestDeep": "sub/deep/deep_test.go", "interop.TestPeer": "interop/interop_test.go",
	} {
		if got[test] != want {
			t.Errorf("%s is in %q, expected %q", test, got[test], want)
		}
	}
}
