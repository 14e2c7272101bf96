// This file writes attributes of files as JSON.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"time"
	"unicode/utf8"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
)

// jsonHelp is the part of the help about --json.
const jsonHelp = `--json prints one object per line for each file: url, name, type, mode (octal), size,
used (bytes on disk), links, uid, gid, fsid, fileid, atime, mtime and ctime; target
for a symbolic link; major and minor for a device. Every weft command takes the url,
whatever bytes are in the name. A name or target that is not UTF-8 is approximated,
and its bytes are in name_base64 or target_base64.`

// A fileJSON is a file in JSON.
type fileJSON struct {
	URL         string    `json:"url"`
	Name        string    `json:"name"`
	NameBytes   []byte    `json:"name_base64,omitempty"`
	Type        string    `json:"type"`
	Mode        string    `json:"mode"`
	Size        int64     `json:"size"`
	Used        int64     `json:"used"`
	Links       uint32    `json:"links"`
	UID         uint32    `json:"uid"`
	GID         uint32    `json:"gid"`
	FSID        uint64    `json:"fsid"`
	FileID      uint64    `json:"fileid"`
	Atime       time.Time `json:"atime"`
	Mtime       time.Time `json:"mtime"`
	Ctime       time.Time `json:"ctime"`
	Target      string    `json:"target,omitempty"`
	TargetBytes []byte    `json:"target_base64,omitempty"`
	Major       *uint32   `json:"major,omitempty"`
	Minor       *uint32   `json:"minor,omitempty"`
}

func describeFile(tree *files.Remote, path string, i *files.Info, target string) *fileJSON {
	f := &fileJSON{
		URL: tree.URL(path), Name: i.Name, Type: kinds[kindAt(i.Mode)].word, Mode: octal(i.Mode),
		Size: i.Size, Used: i.Used, Links: i.Links, UID: i.UID, GID: i.GID, FSID: i.ID.FS, FileID: i.ID.File,
		Atime: i.Atime.UTC(), Mtime: i.Mtime.UTC(), Ctime: i.Ctime.UTC(), Target: target,
		NameBytes: bytesOf(i.Name), TargetBytes: bytesOf(target),
	}
	if i.Mode&fs.ModeDevice != 0 {
		f.Major, f.Minor = &i.Device.Major, &i.Device.Minor
	}
	return f
}

// printJSON writes the files of a directory as JSON.
func printJSON(ctx context.Context, w io.Writer, tree *files.Remote, dir string, list []*files.Info) error {
	enc := fileEncoder(w)
	for _, i := range list {
		path, err := tree.Join(dir, i.Name)
		if err != nil {
			path = dir // the root has no name
		}
		target := ""
		if i.Mode&fs.ModeSymlink != 0 {
			if target, err = tree.Readlink(ctx, path); err != nil {
				return err
			}
		}
		if err := enc.Encode(describeFile(tree, path, i, target)); err != nil {
			return err
		}
	}
	return nil
}

// fileEncoder makes an encoder that does not escape for HTML.
func fileEncoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}

// bytesOf returns a name that JSON cannot hold, and nil for others.
func bytesOf(name string) []byte {
	if utf8.ValidString(name) {
		return nil
	}
	return []byte(name)
}

// kinds are the types of files; the last is for unknown ones.
var kinds = [...]struct {
	mode       fs.FileMode
	word, text string
}{
	{0, "file", "regular file"},
	{fs.ModeDir, "directory", "directory"},
	{fs.ModeSymlink, "symlink", "symbolic link"},
	{fs.ModeNamedPipe, "fifo", "fifo"},
	{fs.ModeSocket, "socket", "socket"},
	{fs.ModeDevice | fs.ModeCharDevice, "char", "character special file"},
	{fs.ModeDevice, "block", "block special file"},
	{fs.ModeIrregular, "unknown", "unknown"},
}

func kindAt(mode fs.FileMode) int {
	for i, k := range kinds {
		if mode.Type() == k.mode {
			return i
		}
	}
	return len(kinds) - 1
}

func kindOf(mode fs.FileMode) string { return kinds[kindAt(mode)].text }

// octal formats permissions in four digits.
func octal(mode fs.FileMode) string {
	bits := mode.Perm()
	for _, special := range [...]struct{ mode, bit fs.FileMode }{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if mode&special.mode != 0 {
			bits |= special.bit
		}
	}
	return fmt.Sprintf("%04o", uint32(bits))
}
