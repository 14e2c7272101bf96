package dropin

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
)

// viewsKept is how many views of other states of the machine stay in the folder.
const viewsKept = 8

// ViewFolder returns the folder below the cache in which programs keep the files that
// they are shown of /sys and /dev, without old ones. A program writes again what is
// missing, so removing one that is in use does no harm.
func ViewFolder(cache string) (string, error) {
	dir := filepath.Join(cache, "view")
	if err := Private(dir); err != nil {
		return "", err
	}
	if err := writable(dir); err != nil {
		return "", elsewhere(err)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var infos []os.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // it may have gone meanwhile
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b os.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for i, info := range infos {
		if i >= viewsKept {
			_ = os.RemoveAll(filepath.Join(dir, info.Name())) // what is left is no harm
		}
	}
	return dir, nil
}

// writable returns an error if no file can be made in a folder.
func writable(dir string) error {
	probe, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return err
	}
	return os.Remove(probe)
}
