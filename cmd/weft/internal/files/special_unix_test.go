//go:build unix

// Devices and symbolic links, which Windows has not, or not for everybody.

package files

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func TestADeviceIsWrittenToAndStaysOne(t *testing.T) {
	src := tree(t, map[string]string{"file": "data"})
	if failed, err := run(t, new(Copier), Local{}, Local{}, os.DevNull, filepath.Join(src, "file")); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("the device is %v, %v", info, err)
	}
}

// A server that lists a symbolic link and then a directory or a file of the same name
// gets nothing written to where the link leads; neither does one whose directories have
// the names of links that are there already.
func TestWhatIsInAFolderIsNotWrittenThroughLinks(t *testing.T) {
	at := filepath.Join(t.TempDir(), "d") // outside
	outside := map[string]string{"victim": "good", "sub/": ""}
	for name, tc := range map[string]struct {
		lists map[string][]string
		there map[string]string // in the destination before
		from  []string
	}{
		"a directory behind a link of its name":   {lists: map[string][]string{"src": {"a -> " + at, "a/"}, "a": {"victim", "new", "sub/"}}},
		"a file behind a link of its name":        {lists: map[string][]string{"src": {"a -> " + filepath.Join(at, "victim"), "a"}}},
		"a file behind a link to no file":         {lists: map[string][]string{"src": {"a -> " + filepath.Join(at, "new"), "a"}}},
		"a directory that is a link here":         {lists: map[string][]string{"src": {"a/"}, "a": {"victim", "new"}}, there: map[string]string{"src/a": "-> " + at}},
		"a file that is a link here":              {lists: map[string][]string{"src": {"a"}}, there: map[string]string{"src/a": "-> " + filepath.Join(at, "victim")}},
		"a directory by the name of another link": {lists: map[string][]string{"one": {"a -> " + at}, "two": {"a/"}, "a": {"victim"}}, from: []string{"one/.", "two/."}},
		"a source that is a link here":            {lists: map[string][]string{"src": {"victim", "new"}}, there: map[string]string{"src": "-> " + at}},
	} {
		t.Run(name, func(t *testing.T) {
			base := tree(t, map[string]string{"src/": "", "one/": "", "two/": ""})
			if tc.there == nil {
				tc.there = map[string]string{"src/": ""}
			}
			if tc.from == nil {
				tc.from = []string{"src"}
			}
			for i := range tc.from {
				tc.from[i] = base + string(filepath.Separator) + tc.from[i]
			}
			if err := os.RemoveAll(at); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(tree(t, outside), at); err != nil {
				t.Fatal(err)
			}
			for _, preserve := range []bool{false, true} {
				dst := tree(t, tc.there)
				if _, err := run(t, &Copier{Recursive: true, Preserve: preserve}, &hostile{lists: tc.lists}, Local{}, dst, tc.from...); err != nil {
					t.Error(err)
				}
				if got := listTree(t, at); !maps.Equal(got, outside) {
					t.Fatalf("outside of the directory there is now %q", got)
				}
			}
		})
	}
}
