package dropin

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// An UnsafeError is that somebody else could put files of theirs where this user's
// library is looked for.
type UnsafeError struct {
	Path string
	Why  string
}

func (e *UnsafeError) Error() string {
	return fmt.Sprintf("%s %s, so another user could put a library there. Change that, or set XDG_CACHE_HOME to a folder of your own", e.Path, e.Why)
}

// Private makes the folder if it is not there, and returns an error if anybody but this
// user and root could write in it or put another in its place.
func Private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return elsewhere(err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if err := onlyOurs(real); err != nil {
		return err
	}
	// Who owns a folder on the way may be anybody: a home is not always its user's in
	// containers. What they put in the folder's place would not be this user's.
	for at := parent(real); at != ""; at = parent(at) {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		if why := writers(info); why != "" && info.Mode()&fs.ModeSticky == 0 {
			return &UnsafeError{at, why}
		}
	}
	return nil
}

// elsewhere says of an error in the cache what the user can change.
func elsewhere(err error) error {
	return fmt.Errorf("%w: set XDG_CACHE_HOME to a folder that can be written to", err)
}

// onlyOurs returns an error if a file or folder is another user's, or can be written by
// one.
func onlyOurs(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if owner, ok := ownerOf(info); ok && owner != os.Geteuid() && owner != 0 {
		return &UnsafeError{path, fmt.Sprintf("belongs to the user %d", owner)}
	}
	if why := writers(info); why != "" {
		return &UnsafeError{path, why}
	}
	return nil
}

// writers says who else may write; a group that is the user's alone, of the same number,
// is nobody else.
func writers(info fs.FileInfo) string {
	switch mode := info.Mode().Perm(); {
	case mode&0o002 != 0:
		return "can be written by anybody (chmod o-w)"
	case mode&0o020 != 0 && !ownGroup(info):
		return "can be written by its group (chmod g-w)"
	}
	return ""
}
