package main

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
)

// Whatever bytes a server has in names, they can be had from the JSON.
func TestNamesInJSONAreExact(t *testing.T) {
	tree := &files.Remote{Name: "nfs://host:1/srv", Server: "nfs://host:1"}
	for _, name := range []string{"plain", "a \"b\"\\", "new\nline\x1b[2J", "<&>", "caf\u00e9", "caf\xe9", "\xff", "\ufffd", "\u2028"} {
		info := &files.Info{Name: name, Mode: fs.ModeSymlink | 0o777, Mtime: time.Unix(1, 5)}
		var text strings.Builder
		if err := fileEncoder(&text).Encode(describeFile(tree, "/d/"+name, info, name)); err != nil {
			t.Fatal(err)
		}
		if strings.Count(text.String(), "\n") != 1 {
			t.Errorf("%q takes several lines: %s", name, &text)
		}
		var got struct {
			URL, Name, Target string
			Mtime             time.Time
			NameBytes         []byte `json:"name_base64"`
			TargetBytes       []byte `json:"target_base64"`
		}
		if err := json.Unmarshal([]byte(text.String()), &got); err != nil {
			t.Fatal(err)
		}
		if got.NameBytes != nil {
			got.Name = string(got.NameBytes)
		}
		if got.TargetBytes != nil {
			got.Target = string(got.TargetBytes)
		}
		u, err := files.ParseURL(got.URL)
		if err != nil || u.Path != "/srv/d/"+name || got.Name != name || got.Target != name || !got.Mtime.Equal(info.Mtime) {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
}

func TestKindsAndPermissionsAreTold(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{
		0o644:                                    "file 0644",
		fs.ModeDir | fs.ModeSticky | 0o777:       "directory 1777",
		fs.ModeSymlink | 0o777:                   "symlink 0777",
		fs.ModeNamedPipe:                         "fifo 0000",
		fs.ModeSocket | 0o7:                      "socket 0007",
		fs.ModeDevice | 0o660:                    "block 0660",
		fs.ModeDevice | fs.ModeCharDevice | 0o60: "char 0060",
		fs.ModeIrregular:                         "unknown 0000",
		fs.ModeSetuid | fs.ModeSetgid | 0o755:    "file 6755",
	} {
		if got := kinds[kindAt(mode)].word + " " + octal(mode); got != want {
			t.Errorf("%v: %s, want %s", mode, got, want)
		}
	}
}
