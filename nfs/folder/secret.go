// This file keeps the key that file handles are sealed with, outside of the folder
// that is served.

package folder

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	secretFile  = "handles.key"
	secretLen   = 32
	leastSecret = 16 // octets of a key that a program brings along
)

// A refusedError says that a key is there and must not be used, or that it lies
// where others might exchange it.
type refusedError struct{ path, why, todo string }

func (e *refusedError) Error() string {
	return fmt.Sprintf("folder: the key of file handles: %s: %s: %s", e.path, e.why, e.todo)
}

// secret is the key of file handles. Where it cannot be kept, of which lost tells
// why, it is one that lasts as long as the server.
func (c *Config) secret() (key []byte, lost, err error) {
	switch {
	case len(c.HandleKey) >= leastSecret:
		return c.HandleKey, nil, nil
	case len(c.HandleKey) > 0:
		return nil, nil, fmt.Errorf("folder: HandleKey has %d octets: want %d at least", len(c.HandleKey), leastSecret)
	case c.StateDir == "":
		return newSecret(), errors.New("no folder was named to keep it in"), nil
	}
	key, err = loadSecret(c.StateDir, c.Root)
	var refused *refusedError
	if err == nil || errors.As(err, &refused) {
		return key, nil, err
	}
	return newSecret(), err, nil
}

func newSecret() []byte {
	key := make([]byte, secretLen)
	rand.Read(key)
	return key
}

// loadSecret returns the key that lies in dir, and makes one if there is none. What
// lies below root is no place for it.
func loadSecret(dir, root string) ([]byte, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	switch in, err := within(dir, root); {
	case err != nil:
		return nil, err
	case in:
		return nil, fmt.Errorf("%s is in the folder that is served: clients could read the key", dir)
	}
	if err := makeState(dir); err != nil {
		return nil, err
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := checkState(r, dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, secretFile)
	key, err := readSecret(r, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeSecret(r); err == nil || errors.Is(err, fs.ErrExist) {
			key, err = readSecret(r, path) // the one of whoever came first
		}
	}
	return key, err
}

// within reports whether dir, or the first directory above it that there is, is
// root or below it.
func within(dir, root string) (bool, error) {
	top, err := os.Stat(root)
	if err != nil {
		return false, err
	}
	real, err := filepath.EvalSymlinks(dir)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		real, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return false, err
	}
	for {
		fi, err := os.Stat(real)
		if err != nil {
			return false, err
		}
		if os.SameFile(fi, top) {
			return true, nil
		}
		above := filepath.Dir(real)
		if above == real {
			return false, nil
		}
		real = above
	}
}

// makeState makes the directory if there is none.
func makeState(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// checkState refuses a directory that others may change.
func checkState(r *os.Root, dir string) error {
	named, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if named.Mode()&fs.ModeSymlink != 0 {
		return &refusedError{dir, "it is a symbolic link", "name the folder itself"}
	}
	opened, err := r.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(named, opened) {
		return &refusedError{dir, "it was exchanged while it was opened", "choose a folder that nobody else may change"}
	}
	if why := foreign(opened, 0o022); why != "" {
		return &refusedError{dir, why, "its owner has to be the user that serves, and nobody else may write to it"}
	}
	return nil
}

// readSecret reads the key, unless others may know or have chosen it.
func readSecret(r *os.Root, path string) ([]byte, error) {
	fi, err := r.Lstat(secretFile)
	if err != nil {
		return nil, err
	}
	const todo = "remove it, and handles of before become stale; or see to it that it is a file of the user that serves, of mode 0600"
	if !fi.Mode().IsRegular() {
		return nil, &refusedError{path, "it is no regular file", todo}
	}
	if why := foreign(fi, 0o077); why != "" {
		return nil, &refusedError{path, why, todo}
	}
	f, err := r.Open(secretFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(fi, opened) {
		return nil, &refusedError{path, "it was exchanged while it was opened", todo}
	}
	key, err := io.ReadAll(io.LimitReader(f, secretLen+1))
	if err == nil && len(key) != secretLen {
		err = &refusedError{path, fmt.Sprintf("it has not the %d octets of a key", secretLen), "remove it, and handles of before become stale"}
	}
	if err != nil {
		return nil, err
	}
	return key, nil
}

// makeSecret makes a key. It gets its name when it is whole, and fails with
// fs.ErrExist if another server was first.
func makeSecret(r *os.Root) error {
	part := "." + secretFile + "-" + rand.Text()
	f, err := r.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer r.Remove(part)
	_, err = f.Write(newSecret())
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = r.Link(part, secretFile)
	}
	if err != nil {
		return err
	}
	if d, err := r.Open("."); err == nil {
		d.Sync() // not every system can; without, a crash may have the key made anew
		d.Close()
	}
	return nil
}
